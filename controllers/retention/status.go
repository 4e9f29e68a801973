package retention

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/conditions"
	"github.com/agentrooms/agentrooms/internal/archive"
)

// settled says that the cluster holds what the retention says, if there was ever something to say.
func (r *Reconciler) settled(ctx context.Context, room *v1alpha1.Room) error {
	r.blocked.clear(client.ObjectKeyFromObject(room))
	if room.Status.Archive == nil && meta.FindStatusCondition(room.Status.Conditions, v1alpha1.HistoryBoundedCondition) == nil {
		return nil
	}
	return r.say(ctx, room, metav1.ConditionTrue, v1alpha1.WithinRetentionReason, "messages beyond the retention are in the blob store")
}

// storeFailed says that the blob store did not take a segment.
func (r *Reconciler) storeFailed(ctx context.Context, room *v1alpha1.Room, err error) error {
	message := "the blob store did not take a segment of messages: nothing is deleted, and it is tried again; the manager's log says why"
	if errors.Is(err, archive.ErrDiffers) {
		message = "the blob store holds another segment where the next one belongs, and it is not written over: look whether two clusters share a folder or bucket"
	}
	return r.say(ctx, room, metav1.ConditionFalse, v1alpha1.BlobStoreFailedReason, message)
}

// mentionsPending says whose mentions must be acknowledged before messages can move.
func (r *Reconciler) mentionsPending(ctx context.Context, room *v1alpha1.Room, agent string) error {
	r.blocked.set(client.ObjectKeyFromObject(room), r.Clock.Now().Add(blockedFor))
	return r.say(ctx, room, metav1.ConditionFalse, v1alpha1.MentionsPendingReason, fmt.Sprintf(
		"agent %s has %d pending mentions in messages that have moved, which is the most there may be: have it acknowledge them, or take it out of the room",
		agent, v1alpha1.MaxCarried))
}

// say writes the condition when it is another one.
func (r *Reconciler) say(ctx context.Context, room *v1alpha1.Room, status metav1.ConditionStatus, reason, message string) error {
	next := room.DeepCopy()
	c := conditions.New(v1alpha1.HistoryBoundedCondition, status, reason, message, room.Generation)
	if !conditions.Set(&next.Status.Conditions, c, r.Clock.Now()) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("writing the status of room %s: %w", room.Name, err)
	}
	next.DeepCopyInto(room)
	return nil
}

// blocked are the rooms that wait for an acknowledgement, and when they are looked at again although nobody has made one.
type blocked struct {
	mu    sync.Mutex
	rooms map[types.NamespacedName]time.Time
}

// blockedFor is how long new messages do not have a room looked at that waits for an acknowledgement.
const blockedFor = time.Minute

func (b *blocked) set(room types.NamespacedName, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rooms == nil {
		b.rooms = map[types.NamespacedName]time.Time{}
	}
	b.rooms[room] = until
}

func (b *blocked) clear(room types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.rooms, room)
}

// still says whether nothing can have changed for a room.
func (b *blocked) still(room types.NamespacedName, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	until, waits := b.rooms[room]
	return waits && now.Before(until)
}

// roomOf gives the room of an Inbox when it waits for an acknowledgement.
func (b *blocked) roomOf(_ context.Context, inbox client.Object) []reconcile.Request {
	room := types.NamespacedName{Namespace: inbox.GetNamespace(), Name: inbox.GetLabels()[v1alpha1.RoomLabel]}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, waits := b.rooms[room]; !waits {
		return nil
	}
	b.rooms[room] = time.Time{}
	return []reconcile.Request{{NamespacedName: room}}
}
