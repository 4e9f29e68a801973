package roomlog_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

var batches = schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "messagebatches"}

// starting is an API server that loses the answer to a write, and then starts anew: it knows no roles for a while.
type starting struct {
	*server
	calls int
}

func (s *starting) Create(ctx context.Context, b *v1alpha1.MessageBatch) (*v1alpha1.MessageBatch, error) {
	if s.calls++; s.calls == 1 {
		_, _ = s.server.Create(ctx, b)
		return nil, errors.New("connection reset by peer")
	}
	if s.calls < 4 {
		return nil, apierrors.NewForbidden(batches, b.Name, errors.New("no role"))
	}
	return s.server.Create(ctx, b)
}

func (s *starting) Get(ctx context.Context, namespace, name string) (*v1alpha1.MessageBatch, error) {
	if s.calls < 3 {
		return nil, apierrors.NewForbidden(batches, name, errors.New("no role"))
	}
	return s.server.Get(ctx, namespace, name)
}

func TestAnAPIServerThatKnowsNoRolesYetIsWaitedFor(t *testing.T) {
	s := &starting{server: newServer()}
	c, _ := committer(s, "a")
	receipt, err := c.Send(context.Background(), room(), message("once", ""))
	if err != nil || receipt.Seq != 1 {
		t.Errorf("sending gives %+v, %v", receipt, err)
	}
	if got := bodies(t, s.server); len(got) != 1 {
		t.Errorf("the log holds %v, want the message once", got)
	}
}

// ending is an API server on which the room's namespace is being deleted.
type ending struct{ *server }

func (*ending) Create(_ context.Context, b *v1alpha1.MessageBatch) (*v1alpha1.MessageBatch, error) {
	err := apierrors.NewForbidden(batches, b.Name, errors.New("it is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	return nil, err
}

func TestANamespaceThatIsBeingDeletedIsNotWaitedFor(t *testing.T) {
	c, _ := committer(&ending{newServer()}, "a")
	if _, err := c.Send(context.Background(), room(), message("never", "")); !apierrors.IsForbidden(err) {
		t.Errorf("sending gives %v, want the API server's last word", err)
	}
}

func TestACommitterCatchesUpWithWhatItsWatchHasNotShown(t *testing.T) {
	s := newServer()
	ahead, _ := committer(s, "ahead")
	for _, body := range []string{"one", "two", "three"} {
		if _, err := ahead.Send(context.Background(), room(), message(body, "")); err != nil {
			t.Fatal(err)
		}
	}
	behind, book := committer(s, "behind")
	if err := behind.CatchUp(context.Background(), room()); err != nil {
		t.Fatal(err)
	}
	if last := book.Log(roomlog.KeyOf(room())).LastSeq(); last != 3 {
		t.Errorf("the last message that it knows is %d, want 3", last)
	}
	if err := behind.CatchUp(context.Background(), room()); err != nil {
		t.Errorf("catching up when there is nothing more gives %v", err)
	}
}
