package rooms

import (
	"context"
	"errors"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/roomlog"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// entry gives the message with a seq, from the log or from the blob store. The error is a *problem.Problem: UNAVAILABLE.
func (t *Toolset) entry(ctx context.Context, room *v1alpha1.Room, seq int64) (roomlog.Entry, bool, error) {
	log := t.view.Log(room)
	if e, ok := log.At(seq); ok {
		return e, true, nil
	}
	// The seam is looked at after the log: what left the log before lies within it.
	if seq < 1 || seq > log.Seam().Archived {
		return roomlog.Entry{}, false, nil
	}
	e, err := t.history.At(ctx, room.UID, seq)
	return e, err == nil, t.noted(err)
}

// page gives up to limit messages before a seq, oldest first, wherever they are; before <= 0 stands for the end of the log.
func (t *Toolset) page(ctx context.Context, room *v1alpha1.Room, before int64, limit int) ([]roomlog.Entry, error) {
	log := t.view.Log(room)
	entries := log.Before(before, limit)
	end := log.LastSeq() + 1
	if before > 0 {
		end = min(before, end)
	}
	if len(entries) > 0 {
		end = entries[0].Seq
	}
	missing := int64(limit - len(entries))
	// As above: what was not in the log any more lies within the seam.
	end = min(end, log.Seam().Archived+1)
	if start := max(1, end-missing); start < end {
		old, err := t.history.Range(ctx, room.UID, start, end-1)
		if err != nil {
			return nil, t.noted(err)
		}
		entries = append(old, entries...)
	}
	return entries, nil
}

// maxTaskLooks bounds the rooms that a task which is not in the cluster is looked for in.
const maxTaskLooks = 64

// movedTask gives an archived task that has moved to the blob store, looking in the caller's rooms that are older than it. absent
// is the answer when there is none.
func (t *Toolset) movedTask(ctx context.Context, c *toolset.Caller, id string, absent error) (*access, *v1alpha1.Task, error) {
	made, ok := ids.CreatedAt(id)
	if !t.history.Stored() || !ok {
		return nil, nil, absent
	}
	looks := 0
	for _, room := range t.view.RoomsOf(c.Plate) {
		a, member := t.member(c, room)
		if !member || room.CreationTimestamp.After(made.Add(time.Second)) {
			continue
		}
		if looks++; looks > maxTaskLooks {
			break
		}
		task, found, err := t.history.Task(ctx, room.UID, id)
		if err != nil {
			return nil, nil, t.noted(err)
		}
		if found {
			return a, task, nil
		}
	}
	return nil, nil, absent
}

// noted logs the cause of trouble with the blob store, which the caller does not get to see.
func (t *Toolset) noted(err error) error {
	if trouble, ok := errors.AsType[*archive.Trouble](err); ok {
		t.log.Error(trouble, "Reading old messages failed")
	}
	return err
}
