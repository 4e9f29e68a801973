package rooms

import (
	"context"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/roomlog"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

const (
	// catchUp is how long a replica may take to see what another one wrote before the caller is told to try again.
	catchUp = 5 * time.Second
	// logSort begins the sort of a mark in a room's log: the room's id follows, and the mark is a seq.
	logSort = "log."
)

// kinds are the sorts of marks that are resourceVersions.
var kinds = map[string]any{"task": &v1alpha1.Task{}, "consent": &v1alpha1.Consent{}, "inbox": &v1alpha1.Inbox{}, "file": &v1alpha1.File{}}

// wrote takes the API server's answer to a write into the view, and notes it for the caller's next call.
func (t *Toolset) wrote(ctx context.Context, sort string, obj metav1.Object) {
	obj.SetManagedFields(nil)
	t.view.Wrote(obj)
	toolset.Wrote(ctx, sort, obj.GetResourceVersion())
}

func noteMessage(ctx context.Context, room *v1alpha1.Room, r roomlog.Receipt) {
	toolset.Wrote(ctx, logSort+ids.ID(room), strconv.FormatInt(r.Seq, 10))
}

// Await waits until the replica's view holds what the marks stand for.
func (t *Toolset) Await(ctx context.Context, marks map[string]string) error {
	for sort, mark := range marks {
		if !wellFormed(sort, mark) {
			return problem.Invalid("_meta", "holds a revision that no call gave: leave it out, or give back what a result held")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	changed := t.view.Hub.Listen(ctx, view.ProgressTopic)
	for !t.reached(marks) {
		select {
		case <-ctx.Done():
			return problem.New(problem.Unavailable, "this replica has not seen your last write yet: try again")
		case <-changed:
		}
	}
	return nil
}

func wellFormed(sort, mark string) bool {
	if room, isLog := strings.CutPrefix(sort, logSort); isLog {
		seq, err := strconv.ParseInt(mark, 10, 64)
		return err == nil && seq > 0 && ids.Valid(room)
	}
	_, err := resourceversion.CompareResourceVersion(mark, mark)
	return kinds[sort] != nil && err == nil
}

func (t *Toolset) reached(marks map[string]string) bool {
	for sort, mark := range marks {
		if obj, isKind := kinds[sort]; isKind {
			if !t.view.Reached(obj, mark) {
				return false
			}
			continue
		}
		seq, _ := strconv.ParseInt(mark, 10, 64)
		if room, ok := t.view.RoomByID(strings.TrimPrefix(sort, logSort)); ok && t.view.Log(room).LastSeq() < seq {
			return false
		}
	}
	return true
}
