package retention

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/metrics"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// readsAtOnce is how many batches are read side by side.
const readsAtOnce = 8

// segment moves the next segment of a room. It gives the room as it was written, nil when the segment must wait.
func (r *Reconciler) segment(ctx context.Context, seen *v1alpha1.Room, log *roomlog.Log) (*v1alpha1.Room, error) {
	room := &v1alpha1.Room{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(seen), room); err != nil {
		return nil, failed("read", fmt.Errorf("reading room %s: %w", seen.Name, err))
	}
	seam := roomlog.SeamOf(room)
	if room.UID != seen.UID || seam.Archived != log.Seam().Archived {
		// Another process was here. The watch will show it, and the room's turn comes again.
		r.Logs.Book.Saw(room)
		return room, nil
	}
	s, err := r.collect(ctx, room, log, seam.Archived+1)
	if err != nil {
		return nil, failed("read", err)
	}
	size, err := archive.Write(ctx, r.Bucket, s)
	if err != nil {
		return nil, errors.Join(failed("write", err), r.storeFailed(ctx, room, err))
	}
	full, err := r.carry(ctx, room, s)
	switch {
	case err != nil:
		return nil, failed("carry", err)
	case full != "":
		return nil, r.mentionsPending(ctx, room, full)
	}
	return r.advance(ctx, room, log, s, size)
}

func failed(step string, err error) error {
	metrics.ArchiveFailures.WithLabelValues(step).Inc()
	return err
}

// collect reads the messages of a segment from the API server. The log says which seq each has.
func (r *Reconciler) collect(ctx context.Context, room *v1alpha1.Room, log *roomlog.Log, first int64) (*archive.Segment, error) {
	last := first + archive.SegmentMessages - 1
	places, ok := log.Holding(first, last)
	if !ok {
		return nil, fmt.Errorf("the log of room %s does not hold seq %d to %d", room.Name, first, last)
	}
	batches := make([]v1alpha1.MessageBatch, len(places))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for i, p := range places {
		group.Go(func() error {
			if err := r.Live.Get(ctx, client.ObjectKeyFromObject(p.Batch), &batches[i]); err != nil {
				return fmt.Errorf("reading batch %s: %w", p.Batch.Name, err)
			}
			if batches[i].UID != p.Batch.UID || len(batches[i].Spec.Messages) != len(p.Batch.Spec.Messages) {
				return fmt.Errorf("batch %s is not the one that was seen", p.Batch.Name)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err //nolint:wrapcheck // it says which batch
	}
	s := &archive.Segment{
		Room: room.UID, First: first,
		From: places[0].Batch.CreationTimestamp.Time, To: places[len(places)-1].Batch.CreationTimestamp.Time,
	}
	for i, p := range places {
		messages := batches[i].Spec.Messages
		from, to := max(first, p.Start)-p.Start, min(last, p.End())-p.Start
		s.Messages = append(s.Messages, messages[from:to+1]...)
	}
	return s, nil
}

// advance says in the room's status that a segment stands in the blob store.
func (r *Reconciler) advance(
	ctx context.Context, room *v1alpha1.Room, log *roomlog.Log, s *archive.Segment, size int64,
) (*v1alpha1.Room, error) {
	next := v1alpha1.RoomArchive{Segments: 1, Bytes: size}
	if a := room.Status.Archive; a != nil {
		next.Segments, next.Bytes = a.Segments+1, a.Bytes+size
	}
	next.ThroughSeq, next.ThroughTime = s.First+archive.SegmentMessages-1, metav1.NewTime(s.To)
	next.ThroughBatch, next.ThroughBatchSeq = log.Needless(next.ThroughSeq)
	room.Status.Archive = &next
	room.Status.LastSeq = max(room.Status.LastSeq, log.LastSeq())
	if err := r.Client.Status().Update(ctx, room); err != nil {
		return nil, failed("status", fmt.Errorf("writing how far the archive of room %s goes: %w", room.Name, err))
	}
	metrics.ArchiveSegments.Inc()
	metrics.ArchiveBytes.Add(float64(size))
	metrics.ArchiveMessages.Add(archive.SegmentMessages)
	r.Logs.Book.Saw(room)
	return room, nil
}
