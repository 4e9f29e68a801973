package task

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/events"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/controllers/internal/members"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/deps"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// scope is everything that one reconcile knows. Objects from caches must not be changed, but for next.
type scope struct {
	now time.Time
	// task as it was read.
	task *v1alpha1.Task
	// next is the task as it is to be.
	next *v1alpha1.Task
	// room of the task, nil when there is none.
	room    *v1alpha1.Room
	members members.Set
	// assignee as the spec names it.
	assignee assignee
	// assigner is who chose the assignee.
	assigner assigner
	// consents of the assignee's owner for the room.
	consents []*v1alpha1.Consent
	// lease of the task, nil when there is none.
	lease *coordinationv1.Lease
	// blockers says what the dependencies come to.
	blockers blockers

	// events and counts are sent when the status was written.
	events events.Queue
	counts []func()
}

// assignee is whom a task is assigned to.
type assignee struct {
	// plate of the agent, empty when nobody is assigned or a name means nobody.
	plate string
	// agent, nil when it does not exist.
	agent *v1alpha1.Agent
	// member is true when the agent is a member of the room.
	member bool
}

// assigner is who chose the assignee.
type assigner struct {
	// plate of the agent that did, empty when it was a person.
	plate string
	// agent that did, nil when it was a person or the agent is gone.
	agent *v1alpha1.Agent
	// label is how messages call them.
	label string
}

// blockers says what the dependencies of a task come to.
type blockers struct {
	reason string
	names  []string
}

// met says whether the task waits for nothing.
func (b blockers) met() bool {
	return b.reason == v1alpha1.NoDependenciesReason || b.reason == v1alpha1.DependenciesDoneReason
}

// read gathers what there is to know about a task.
func (r *Reconciler) read(ctx context.Context, task *v1alpha1.Task) (*scope, error) {
	s := &scope{now: r.Clock.Now(), task: task, next: task.DeepCopy()}
	for _, step := range []func(context.Context, *scope) error{
		r.readRoom, r.readAssignee, r.readAssigner, r.readConsents, r.readLease, r.readBlockers,
	} {
		if err := step(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (r *Reconciler) readRoom(ctx context.Context, s *scope) error {
	room := &v1alpha1.Room{}
	key := client.ObjectKey{Namespace: s.task.Namespace, Name: s.task.Spec.RoomRef.Name}
	if err := r.Client.Get(ctx, key, room, client.UnsafeDisableDeepCopy); err != nil {
		return ignoreNotFound(err, "reading room %s", key.Name)
	}
	set, err := members.Of(ctx, r.Client, room)
	if err != nil {
		return fmt.Errorf("reading the members of room %s: %w", room.Name, err)
	}
	s.room, s.members = room, set
	return nil
}

func (r *Reconciler) readAssignee(ctx context.Context, s *scope) error {
	name := s.task.Spec.Assignee
	if name == "" {
		return nil
	}
	ref := v1alpha1.AgentReference{Name: name}
	if ids.IsPlate(name) {
		ref = v1alpha1.AgentReference{Plate: name}
		s.assignee.plate = name
	}
	agent, err := members.Resolve(ctx, r.Client, s.task.Namespace, ref)
	if err != nil || agent == nil {
		return err
	}
	s.assignee.agent, s.assignee.plate = agent, ids.Plate(agent)
	_, s.assignee.member = s.members.Agent(s.assignee.plate)
	return nil
}

func (r *Reconciler) readAssigner(ctx context.Context, s *scope) error {
	by := consent.AssignedBy(s.task)
	switch {
	case by == nil:
		s.assigner.label = "somebody"
	case by.Plate == "":
		s.assigner.label = by.User
	default:
		s.assigner.plate, s.assigner.label = by.Plate, by.Plate
		agent, err := members.ByPlate(ctx, r.Client, by.Plate)
		if err != nil || agent == nil {
			return err
		}
		s.assigner.agent, s.assigner.label = agent, alias(agent)
	}
	return nil
}

func (r *Reconciler) readConsents(ctx context.Context, s *scope) error {
	if s.assignee.agent == nil {
		return nil
	}
	var list v1alpha1.ConsentList
	err := r.Client.List(ctx, &list, client.InNamespace(s.task.Namespace),
		client.MatchingFields{index.Room: s.task.Spec.RoomRef.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the consents of room %s: %w", s.task.Spec.RoomRef.Name, err)
	}
	for i := range list.Items {
		if c := &list.Items[i]; c.Spec.Owner == s.assignee.agent.Spec.Owner {
			s.consents = append(s.consents, c)
		}
	}
	return nil
}

func (r *Reconciler) readLease(ctx context.Context, s *scope) error {
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: s.task.Namespace, Name: ids.LeaseName(s.task.Name)}
	if err := r.Client.Get(ctx, key, lease); err != nil {
		return ignoreNotFound(err, "reading lease %s", key.Name)
	}
	s.lease = lease
	return nil
}

func (r *Reconciler) readBlockers(ctx context.Context, s *scope) error {
	var failed error
	find := func(name string) (*v1alpha1.Task, bool) {
		if name == s.task.Name {
			return s.task, true
		}
		t := &v1alpha1.Task{}
		key := client.ObjectKey{Namespace: s.task.Namespace, Name: name}
		if err := r.Client.Get(ctx, key, t, client.UnsafeDisableDeepCopy); err != nil {
			if failed == nil {
				failed = ignoreNotFound(err, "reading task %s", name)
			}
			return nil, false
		}
		return t, true
	}
	s.blockers.reason, s.blockers.names = deps.State(s.task, find)
	return failed
}

// ignoreNotFound gives nil when something does not exist, and else the error with what was tried.
func ignoreNotFound(err error, format string, args ...any) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
