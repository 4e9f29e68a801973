package rooms

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/inboxes"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// maxAttempts at a compare-and-swap before the caller is told to come again.
const maxAttempts = 8

// errLookAgain is a decision to write nothing that is made again on what the API server says, as the view may be behind.
var errLookAgain = errors.New("the inbox must be looked at again")

// changeInbox writes what decide makes of the Inbox, by compare-and-swap. A nil status writes nothing. A problem that the view
// gives is checked once against the API server.
func (t *Toolset) changeInbox(
	ctx context.Context, a *access, decide func(*v1alpha1.InboxStatus, []inboxes.Ref) (*v1alpha1.InboxStatus, error),
) error {
	name := ids.InboxName(a.room.Name, a.room.UID, a.caller.Plate)
	key := a.room.Namespace + "/" + name
	t.boxLocks.LockKey(key)
	defer func() { _ = t.boxLocks.UnlockKey(key) }()
	var last error
	fresh := false
	for attempt := range maxAttempts {
		log := t.view.Log(a.room).Refs(a.caller.Plate)
		box, known := t.view.Inbox(a.room, a.caller.Plate)
		status := v1alpha1.InboxStatus{}
		if known {
			status = box.Status
		}
		// The log was looked at before the Inbox: a mention that has left it since is in the Inbox that the write is compared with.
		next, err := decide(&status, inboxes.All(&status, log))
		_, refused := problem.As(err)
		switch again := errors.Is(err, errLookAgain); {
		case (refused || again) && !fresh:
			if fresh, err = true, t.refreshInbox(ctx, a, name); err != nil {
				return err
			}
			continue
		case again:
			return nil
		case err != nil || next == nil:
			return err
		}
		if last = t.writeInbox(ctx, a, name, box, next); last == nil {
			t.reads.written(a.room.UID, a.caller.Plate, next.LastReadSeq)
			return nil
		}
		if !contended(last) {
			break
		}
		if err := t.refreshInbox(ctx, a, name); err != nil {
			return err
		}
		fresh = true
		pause(ctx, attempt)
	}
	return gaveUp("inbox", key, last)
}

func (t *Toolset) writeInbox(ctx context.Context, a *access, name string, box *v1alpha1.Inbox, next *v1alpha1.InboxStatus) error {
	next.LastReadSeq = max(next.LastReadSeq, t.reads.get(a.room.UID, a.caller.Plate))
	var write *v1alpha1.Inbox
	if box != nil {
		write = box.DeepCopy()
	} else {
		write = &v1alpha1.Inbox{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: a.room.Namespace, Name: name, Labels: map[string]string{v1alpha1.RoomLabel: a.room.Name},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: v1alpha1.GroupVersion.String(), Kind: "Room", Name: a.room.Name, UID: a.room.UID,
				}},
			},
			Spec: v1alpha1.InboxSpec{RoomRef: v1alpha1.RoomReference{Name: a.room.Name}, Plate: a.caller.Plate},
		}
		if err := t.api.Create(ctx, write); err != nil {
			return fmt.Errorf("creating the inbox: %w", err)
		}
	}
	write.Status = *next
	if err := t.api.Status().Update(ctx, write); err != nil {
		return fmt.Errorf("updating the inbox: %w", err)
	}
	t.wrote(ctx, "inbox", write)
	return nil
}

func (t *Toolset) refreshInbox(ctx context.Context, a *access, name string) error {
	box := &v1alpha1.Inbox{}
	err := t.api.Get(ctx, client.ObjectKey{Namespace: a.room.Namespace, Name: name}, box)
	if gone(err) {
		if old, ok := t.view.Inbox(a.room, a.caller.Plate); ok {
			t.view.Gone(old)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the inbox: %w", err)
	}
	box.ManagedFields = nil
	t.view.Saw(box)
	return nil
}
