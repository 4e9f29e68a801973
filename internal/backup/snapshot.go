package backup

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// pageSize is how many objects are read at a time.
const pageSize = 250

// snapshot reads everything of a room as it was at one revision of the cluster, whatever happens meanwhile. The API server
// remembers a revision for some minutes.
type snapshot struct {
	client   client.Reader
	blobs    *blobs.Store
	room     *v1alpha1.Room
	revision string
}

// look finds the room, and the present revision with it.
func look(ctx context.Context, o ExportOptions) (*snapshot, error) {
	var rooms v1alpha1.RoomList
	err := o.Client.List(ctx, &rooms, client.InNamespace(o.Namespace), client.MatchingFields{"metadata.name": o.Room})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading room %s: %w", o.Room, err)
	case len(rooms.Items) == 0:
		return nil, fmt.Errorf("there is no room %s in the namespace %s", o.Room, o.Namespace)
	case ids.Restoring(&rooms.Items[0]):
		return nil, fmt.Errorf("room %s is being restored: finish that first", o.Room)
	}
	return &snapshot{client: o.Client, blobs: o.Blobs, room: &rooms.Items[0], revision: rooms.ResourceVersion}, nil
}

// each visits the objects that a list finds, in the order of their names.
func (s *snapshot) each(ctx context.Context, list client.ObjectList, visit func(runtime.Object) error, opts ...client.ListOption) error {
	at := client.ListOptions{Limit: pageSize, Raw: &metav1.ListOptions{
		ResourceVersion: s.revision, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}}
	for {
		err := s.client.List(ctx, list, append([]client.ListOption{&at}, opts...)...)
		if apierrors.IsResourceExpired(err) {
			return fmt.Errorf("reading took so long that the cluster has forgotten how it was when it began, try again: %w", err)
		}
		if err != nil {
			return fmt.Errorf("listing %T: %w", list, err)
		}
		if err := meta.EachListItem(list, visit); err != nil {
			return err //nolint:wrapcheck // of the visitor
		}
		if list.GetContinue() == "" {
			return nil
		}
		at.Continue, at.Raw = list.GetContinue(), nil
	}
}

// ofRoom selects the objects of the room.
func (s *snapshot) ofRoom() []client.ListOption {
	return []client.ListOption{client.InNamespace(s.room.Namespace), client.MatchingFields{"spec.roomRef.name": s.room.Name}}
}

// messages visits the messages of the room from the first one on, wherever they are, and gives how many there are.
func (s *snapshot) messages(ctx context.Context, visit func(message) error) (int64, error) {
	seam := roomlog.SeamOf(s.room)
	if seam.Archived > 0 && s.blobs == nil {
		return 0, errors.New("old messages of the room are in the blob store: say where that is, with --blob-url")
	}
	for first := int64(1); first <= seam.Archived; first += archive.SegmentMessages {
		segment, err := archive.Read(ctx, s.blobs.Bucket(), s.room.UID, first)
		if err != nil {
			return 0, fmt.Errorf("reading old messages: %w", err)
		}
		for i := range segment.Messages {
			if err := visit(message{Seq: first + int64(i), Message: segment.Messages[i]}); err != nil {
				return 0, err
			}
		}
	}
	return s.inCluster(ctx, seam, visit)
}

// inCluster visits the messages behind the seam. A batch behind a gap in the chain is not part of the log, for any reader.
func (s *snapshot) inCluster(ctx context.Context, seam roomlog.Seam, visit func(message) error) (int64, error) {
	chain := ids.Chain(s.room.Name, s.room.UID)
	number, seq := seam.Batch+1, seam.BatchSeq+1
	err := s.each(ctx, &v1alpha1.MessageBatchList{}, func(o runtime.Object) error {
		batch := o.(*v1alpha1.MessageBatch)
		if of, n, ok := ids.ParseBatchName(batch.Name); !ok || of != chain || n != number {
			return nil
		}
		for i := range batch.Spec.Messages {
			if seq > seam.Archived {
				if err := visit(message{Seq: seq, Message: batch.Spec.Messages[i]}); err != nil {
					return err
				}
			}
			seq++
		}
		number++
		return nil
	}, s.ofRoom()...)
	return max(seam.Archived, seq-1), err
}

// message is a line of the log.
type message struct {
	Seq int64 `json:"seq"`
	v1alpha1.Message
}
