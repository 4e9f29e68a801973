package consent

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/builder"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/controllers/internal/pace"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// Reconciler keeps the status of Consents.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// Clock tells the time.
	Clock clock.PassiveClock
	// Every is how often the counts of a Consent are written. Zero stands for pace.Every.
	Every time.Duration

	pacer *pace.Pacer
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.pacer = pace.New(r.Clock, r.Every)
	if err := r.watch(builder.New(mgr, "consent", 1)).Complete(builder.Quiet(r)); err != nil {
		return fmt.Errorf("building the consent controller: %w", err)
	}
	return nil
}

// Reconcile brings the status of a Consent up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c := &v1alpha1.Consent{}
	if err := r.Client.Get(ctx, req.NamespacedName, c); err != nil {
		if apierrors.IsNotFound(err) {
			r.pacer.Forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading consent %s: %w", req.Name, err)
	}
	if !c.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	r.pacer.Mark(req.NamespacedName)
	f, err := r.read(ctx, c)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.write(ctx, c, status(c, f, r.Clock.Now()))
}

// facts are what the status of a Consent is made from.
type facts struct {
	// room is true when the room exists.
	room bool
	// inForce is the Consent that counts for the room and the owner.
	inForce *v1alpha1.Consent
	// plates of the owner's agents.
	plates map[string]bool
	// tasks of the room.
	tasks []v1alpha1.Task
}

func (r *Reconciler) read(ctx context.Context, c *v1alpha1.Consent) (facts, error) {
	f := facts{plates: map[string]bool{}}
	name := c.Spec.RoomRef.Name
	inRoom := []client.ListOption{
		client.InNamespace(c.Namespace), client.MatchingFields{index.Room: name}, client.UnsafeDisableDeepCopy,
	}
	key := client.ObjectKey{Namespace: c.Namespace, Name: name}
	switch err := r.Client.Get(ctx, key, &v1alpha1.Room{}, client.UnsafeDisableDeepCopy); {
	case err == nil:
		f.room = true
	case !apierrors.IsNotFound(err):
		return facts{}, fmt.Errorf("reading room %s: %w", name, err)
	}
	var consents v1alpha1.ConsentList
	if err := r.Client.List(ctx, &consents, inRoom...); err != nil {
		return facts{}, fmt.Errorf("listing the consents of room %s: %w", name, err)
	}
	f.inForce = consent.InForce(ofOwner(consents.Items, c.Spec.Owner))
	var agents v1alpha1.AgentList
	err := r.Client.List(ctx, &agents, client.MatchingFields{index.Owner: c.Spec.Owner}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return facts{}, fmt.Errorf("listing the agents of %s: %w", c.Spec.Owner, err)
	}
	for i := range agents.Items {
		f.plates[ids.Plate(&agents.Items[i])] = true
	}
	var tasks v1alpha1.TaskList
	if err := r.Client.List(ctx, &tasks, inRoom...); err != nil {
		return facts{}, fmt.Errorf("listing the tasks of room %s: %w", name, err)
	}
	f.tasks = tasks.Items
	return f, nil
}

func ofOwner(list []v1alpha1.Consent, owner string) []*v1alpha1.Consent {
	var own []*v1alpha1.Consent
	for i := range list {
		if list[i].Spec.Owner == owner {
			own = append(own, &list[i])
		}
	}
	return own
}
