package backup

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// firstNumber is the number of the last batch before the seam of a restored log. No batch has it: what stood in batches up to
// there stands in the blob store.
const firstNumber = 1

// logState is how far the log is restored.
type logState struct {
	// last is the seq of the last message that was read, batched that of the last one in a batch, number that of the batch.
	last, batched, number int64
	// bytes that the segments have in the blob store.
	bytes   int64
	waiting []v1alpha1.Message
}

// messages restores an entry of messages: those up to the seam into the blob store, the others as batches. The last message of
// a log is always in a batch, as the next writer goes by the number of the last one.
func (im *restore) messages(ctx context.Context, name string, size int64, r io.Reader) error {
	items, err := decodeLines[message](name, size, r)
	if err != nil {
		return err
	}
	first, keep := im.log.last+1, im.keep()
	old := make([]v1alpha1.Message, 0, len(items))
	for i := range items {
		if im.log.last++; items[i].Seq != im.log.last {
			return fmt.Errorf("%w: seq %d stands where %d should", ErrDamaged, items[i].Seq, im.log.last)
		}
		if im.log.last <= im.index.Archived {
			old = append(old, items[i].Message)
		}
		if im.log.last > keep {
			im.log.waiting = append(im.log.waiting, items[i].Message)
		}
	}
	if len(old) > 0 {
		if err := im.segment(ctx, first, old); err != nil {
			return err
		}
	}
	return im.batches(ctx, v1alpha1.MaxBatchMessages)
}

// keep gives the seq up to which no batch is needed.
func (im *restore) keep() int64 { return min(im.index.Archived, im.index.Counts.Messages-1) }

// segment puts messages into the blob store, and says in the room's status that they are there.
func (im *restore) segment(ctx context.Context, first int64, messages []v1alpha1.Message) error {
	s := &archive.Segment{
		Room: im.room.UID, First: first, Messages: messages, From: messages[0].At.Time, To: messages[len(messages)-1].At.Time,
	}
	size, err := archive.Write(ctx, im.Blobs.Bucket(), s)
	if err != nil {
		return fmt.Errorf("storing old messages: %w", err)
	}
	im.log.bytes += size
	if im.log.last != im.index.Archived {
		return nil
	}
	im.log.number, im.log.batched = firstNumber, im.keep()
	room := im.room.DeepCopy()
	room.Status.LastSeq = im.index.Counts.Messages
	room.Status.Archive = &v1alpha1.RoomArchive{
		ThroughSeq: im.index.Archived, ThroughBatch: firstNumber, ThroughBatchSeq: im.keep(),
		ThroughTime: metav1.NewTime(s.To), Segments: im.index.Archived / archive.SegmentMessages, Bytes: im.log.bytes,
	}
	if err := im.Client.Status().Patch(ctx, room, client.MergeFrom(im.room)); err != nil {
		return fmt.Errorf("writing how far the archive of room %s goes: %w", room.Name, err)
	}
	return nil
}

// batches writes what waits as long as there are enough for a full batch.
func (im *restore) batches(ctx context.Context, enough int) error {
	for len(im.log.waiting) >= enough {
		n := roomlog.Fit(len(im.log.waiting), func(i int) *v1alpha1.Message { return &im.log.waiting[i] })
		if err := im.batch(ctx, im.log.waiting[:n]); err != nil {
			return err
		}
		im.log.waiting = im.log.waiting[n:]
	}
	return nil
}

// batch writes one batch. An import that did not finish has cut the log in the same places.
func (im *restore) batch(ctx context.Context, messages []v1alpha1.Message) error {
	im.log.number++
	b := &v1alpha1.MessageBatch{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: im.Namespace, Name: ids.BatchName(im.room.Name, im.room.UID, im.log.number),
			Labels: map[string]string{v1alpha1.RoomLabel: im.room.Name}, OwnerReferences: ownerOf(im.room),
		},
		Spec: v1alpha1.MessageBatchSpec{
			RoomRef: v1alpha1.RoomReference{Name: im.room.Name}, Number: im.log.number, FirstSeq: im.log.batched + 1,
			Writer: im.index.Digest()[:32], Messages: messages,
		},
	}
	im.log.batched += int64(len(messages))
	there := &v1alpha1.MessageBatch{}
	err := im.Client.Create(ctx, b.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		if err = im.Client.Get(ctx, client.ObjectKeyFromObject(b), there); err == nil && !equality.Semantic.DeepEqual(there.Spec, b.Spec) {
			err = fmt.Errorf("somebody has written into the room meanwhile: delete the room, its tasks and consents, and begin anew")
		}
	}
	if err != nil {
		return fmt.Errorf("creating batch %s: %w", b.Name, err)
	}
	return nil
}

// endLog writes the messages that still wait.
func (im *restore) endLog(ctx context.Context) error {
	if im.log.last != im.index.Counts.Messages {
		return fmt.Errorf("%w: it has %d messages, and should have %d", ErrDamaged, im.log.last, im.index.Counts.Messages)
	}
	return im.batches(ctx, 1)
}
