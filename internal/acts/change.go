package acts

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// attempts bounds how often a change is tried when somebody else was faster, with growing random waits between.
var attempts = wait.Backoff{Steps: 6, Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5}

// How often and how long the outcome of an order is looked for.
const (
	lookEvery = 50 * time.Millisecond
	patience  = 10 * time.Second
)

// object is a pointer to a kind.
type object[O any] interface {
	*O
	client.Object
}

// change reads an object, lets decide change it, and writes it with the resourceVersion that was read. Nothing is written when
// decide leaves the object as it was.
func change[O any, T object[O]](
	ctx context.Context, p *Person, key client.ObjectKey, doing string, decide func(T) error,
) (T, error) {
	var latest T
	err := retry.RetryOnConflict(attempts, func() error {
		latest = new(O)
		if err := p.Client.Get(ctx, key, latest); err != nil {
			return err //nolint:wrapcheck // explained below
		}
		before := latest.DeepCopyObject()
		if err := decide(latest); err != nil {
			return err
		}
		if same(before, latest) {
			return nil
		}
		return p.Client.Update(ctx, latest) //nolint:wrapcheck // explained below
	})
	if err != nil {
		return nil, Explain(err, doing)
	}
	return latest, nil
}

// changeTask changes a task's spec.
func (p *Person) changeTask(
	ctx context.Context, key client.ObjectKey, doing string, decide func(*v1alpha1.Task) error,
) (*v1alpha1.Task, error) {
	return change(ctx, p, key, doing+" task "+quote(key.Name), decide)
}

// await reads a task until the controller has dealt with what was written to it, for some seconds at most.
func (p *Person) await(ctx context.Context, task *v1alpha1.Task, dealt func(*v1alpha1.Task) bool) (*v1alpha1.Task, error) {
	key, latest := client.ObjectKeyFromObject(task), task
	err := wait.PollUntilContextTimeout(ctx, lookEvery, patience, true, func(ctx context.Context) (bool, error) {
		t := &v1alpha1.Task{}
		if err := p.Client.Get(ctx, key, t); err != nil {
			return false, err //nolint:wrapcheck // explained below
		}
		latest = t
		return dealt(t), nil
	})
	switch {
	case wait.Interrupted(err) && ctx.Err() == nil:
		return latest, problem.New(problem.Unavailable,
			"it is written, and the manager of Agent Rooms has not dealt with it yet: is it running? kubectl rooms doctor looks")
	case apierrors.IsNotFound(err):
		return latest, problem.New(problem.NotFound, "task %s was deleted meanwhile", quote(key.Name))
	default:
		return latest, Explain(err, "reading task "+quote(key.Name))
	}
}
