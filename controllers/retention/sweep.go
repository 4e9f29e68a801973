package retention

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/controllers/internal/metrics"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// sweep deletes the batches whose messages have moved a grace time ago, oldest first. It gives how long until there are more.
func (r *Reconciler) sweep(ctx context.Context, room *v1alpha1.Room) (time.Duration, error) {
	seam := r.Logs.Of(room).Seam()
	if seam.Batch == 0 {
		return 0, nil
	}
	through, wait := r.graces.over(client.ObjectKeyFromObject(room), seam.Batch, r.Grace, r.Clock.Now())
	old, waiting, err := r.needless(ctx, room, through, seam.Batch)
	if err != nil {
		return 0, err
	}
	more := len(old) > deletesAtOnce
	for _, batch := range old[:min(len(old), deletesAtOnce)] {
		err := r.Client.Delete(ctx, batch, client.Preconditions{UID: &batch.UID})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return 0, failed("delete", fmt.Errorf("deleting batch %s: %w", batch.Name, err))
		}
		if err == nil {
			metrics.ArchiveDeleted.Inc()
		}
	}
	switch {
	case more:
		return again, nil
	case waiting:
		return wait, nil
	}
	return 0, nil
}

// needless gives the batches of a room up to a number that are still there, and says whether there are more up to the seam.
func (r *Reconciler) needless(
	ctx context.Context, room *v1alpha1.Room, through, seam int64,
) (old []*v1alpha1.MessageBatch, waiting bool, err error) {
	var list v1alpha1.MessageBatchList
	err = r.Client.List(ctx, &list, client.InNamespace(room.Namespace), client.MatchingFields{index.BatchRoom: room.Name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, false, fmt.Errorf("listing the batches of room %s: %w", room.Name, err)
	}
	chain := roomlog.KeyOf(room).Chain
	for i := range list.Items {
		batch := &list.Items[i]
		of, number, ok := ids.ParseBatchName(batch.Name)
		switch {
		case !ok || of != chain || number > seam || !batch.DeletionTimestamp.IsZero():
		case number > through:
			waiting = true
		default:
			old = append(old, batch)
		}
	}
	slices.SortFunc(old, func(a, b *v1alpha1.MessageBatch) int { return cmp.Compare(a.Spec.Number, b.Spec.Number) })
	return old, waiting, nil
}

// graces remembers since when this process has known how far the batches of rooms are needless, by its own clock. A process
// that has just started waits anew.
type graces struct {
	mu    sync.Mutex
	rooms map[types.NamespacedName][]grace
}

type grace struct {
	batch int64
	since time.Time
}

// over notes that batches up to a number are needless, and gives up to which one that has been so for a time, and how long
// until there are more.
func (g *graces) over(room types.NamespacedName, batch int64, long time.Duration, now time.Time) (through int64, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rooms == nil {
		g.rooms = map[types.NamespacedName][]grace{}
	}
	list := g.rooms[room]
	// A room made anew under the same name begins anew.
	if n := len(list); n > 0 && list[n-1].batch > batch {
		list = nil
	}
	n := len(list)
	if n == 0 || (list[n-1].batch < batch && now.Sub(list[n-1].since) >= long/maxGraces) {
		list = append(list, grace{batch: batch, since: now})
	}
	for len(list) > 1 && now.Sub(list[1].since) >= long {
		list = list[1:]
	}
	g.rooms[room] = list
	switch age := now.Sub(list[0].since); {
	case age < long:
		return 0, long - age
	case len(list) > 1:
		return list[0].batch, long - now.Sub(list[1].since)
	default:
		// What came too soon after the last to be noted is noted then.
		return list[0].batch, long / maxGraces
	}
}

// maxGraces is how many are remembered of a room within a grace time.
const maxGraces = 8

func (g *graces) forget(room types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.rooms, room)
}
