package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// ExportOptions say what is written into an archive.
type ExportOptions struct {
	// Client reads from the API server, and not from a cache.
	Client client.Reader
	// Blobs holds old messages and the contents of files. Nil when there is no store.
	Blobs *blobs.Store
	// Namespace and Room name the room.
	Namespace, Room string
}

// Export writes a room into an archive, as it was at one moment: work in the room may go on meanwhile. An archive that was not
// written to its end has no index, and is refused by Import.
func Export(ctx context.Context, o ExportOptions, to io.Writer) (*Index, error) {
	s, err := look(ctx, o)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(to)
	if err != nil {
		return nil, err
	}
	e := &export{snapshot: s, w: w, index: &w.index, agents: map[string]bool{}, atRest: sets.New[string](), contents: map[string]int64{}}
	for _, step := range []func(context.Context) error{
		e.writeRoom, e.writeConsents, e.writeInboxes, e.writeTasks, e.writeMoved, e.writeAgents, e.writeFiles, e.writeMessages, e.writeContents,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return w.close()
}

// export is one export.
type export struct {
	*snapshot
	w     *writer
	index *Index
	// agents that belong to the room, by their plates, or by their names in the room's namespace.
	agents map[string]bool
	// atRest are the archived tasks that the cluster holds.
	atRest sets.Set[string]
	// contents that files refer to, with their sizes.
	contents map[string]int64
}

func (e *export) writeRoom(context.Context) error {
	e.index.Room, e.index.ID = e.room.Name, ids.ID(e.room)
	if a := e.room.Status.Archive; a != nil {
		e.index.Archived = a.ThroughSeq
	}
	for _, m := range e.room.Spec.Members {
		if m.Agent != nil {
			e.agents[m.Agent.Plate+m.Agent.Name] = true
		}
	}
	return e.w.object(roomEntry, roomManifest(e.room))
}

func (e *export) writeConsents(ctx context.Context) error {
	var found []*v1alpha1.Consent
	err := e.each(ctx, &v1alpha1.ConsentList{}, func(o runtime.Object) error {
		found = append(found, consentManifest(o.(*v1alpha1.Consent), e.room))
		return nil
	}, e.ofRoom()...)
	if err != nil {
		return err
	}
	e.index.Counts.Consents = int64(len(found))
	return list(e.w, consentsEntry, found)
}

func (e *export) writeInboxes(ctx context.Context) error {
	var found []*v1alpha1.Inbox
	err := e.each(ctx, &v1alpha1.InboxList{}, func(o runtime.Object) error {
		box := o.(*v1alpha1.Inbox)
		if box.Name == ids.InboxName(e.room.Name, e.room.UID, box.Spec.Plate) {
			found = append(found, inboxManifest(box))
			e.agents[box.Spec.Plate] = true
		}
		return nil
	}, e.ofRoom()...)
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b *v1alpha1.Inbox) int { return cmp.Compare(a.Spec.Plate, b.Spec.Plate) })
	e.index.Counts.Inboxes = int64(len(found))
	return list(e.w, inboxesEntry, found)
}

func (e *export) writeTasks(ctx context.Context) error {
	out := &lines{to: e.w, dir: tasksDir, bounded: true}
	err := e.each(ctx, &v1alpha1.TaskList{}, func(o runtime.Object) error {
		task := o.(*v1alpha1.Task)
		e.involve(task)
		if task.Spec.Archived {
			e.atRest.Insert(ids.ID(task))
		}
		e.index.Counts.Tasks++
		return out.add(taskManifest(task, e.room))
	}, e.ofRoom()...)
	return errors.Join(err, out.flush())
}

// writeMoved writes the archived tasks that stand in the blob store. One that the cluster holds as well is on its way there.
func (e *export) writeMoved(ctx context.Context) error {
	if e.blobs == nil {
		return nil
	}
	out := &lines{to: e.w, dir: movedDir, bounded: true}
	err := archive.EachTask(ctx, e.blobs.Bucket(), e.room.UID, func(id string, task *v1alpha1.Task) error {
		if e.atRest.Has(id) {
			return nil
		}
		e.involve(task)
		e.index.Counts.Moved++
		return out.add(taskManifest(task, e.room))
	})
	if err != nil {
		return fmt.Errorf("reading archived tasks: %w", err)
	}
	return out.flush()
}

// involve notes the agents that a task names.
func (e *export) involve(t *v1alpha1.Task) {
	e.agents[t.Spec.Assignee] = true
	for _, by := range []*v1alpha1.TaskCreator{t.Spec.Creator, t.Spec.AssignedBy} {
		if by != nil {
			e.agents[by.Plate] = true
		}
	}
	if c := t.Status.Claim; c != nil {
		e.agents[c.Holder] = true
	}
}

// writeAgents writes the members, those who have been members, and those whom tasks name.
func (e *export) writeAgents(ctx context.Context) error {
	var found []*v1alpha1.Agent
	err := e.each(ctx, &v1alpha1.AgentList{}, func(o runtime.Object) error {
		a := o.(*v1alpha1.Agent)
		if e.agents[ids.Plate(a)] || (a.Namespace == e.room.Namespace && e.agents[a.Name]) {
			found = append(found, agentManifest(a, e.room))
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b *v1alpha1.Agent) int { return cmp.Compare(ids.Plate(a), ids.Plate(b)) })
	e.index.Counts.Agents = int64(len(found))
	return list(e.w, agentsEntry, found)
}

func (e *export) writeFiles(ctx context.Context) error {
	var found []*v1alpha1.File
	err := e.each(ctx, &v1alpha1.FileList{}, func(o runtime.Object) error {
		f := o.(*v1alpha1.File)
		if m := fileManifest(f, e.room, files.Kept(f)); m != nil && f.Name == ids.FileName(e.room.Name, e.room.UID, files.Look(f.Spec.Path)) {
			found = append(found, m)
		}
		return nil
	}, e.ofRoom()...)
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b *v1alpha1.File) int { return cmp.Compare(a.Spec.Path, b.Spec.Path) })
	out := &lines{to: e.w, dir: filesDir, bounded: true}
	for _, f := range found {
		e.index.Counts.Files++
		e.index.Counts.Versions += int64(len(f.Spec.Versions))
		for _, v := range f.Spec.Versions {
			e.contents[v.SHA256] = v.Size
		}
		if err := out.add(f); err != nil {
			return err
		}
	}
	return out.flush()
}

func (e *export) writeMessages(ctx context.Context) error {
	out := &lines{to: e.w, dir: messagesDir}
	last, err := e.messages(ctx, func(m message) error {
		e.index.Counts.Messages++
		return out.add(m)
	})
	if err == nil && last != e.index.Counts.Messages {
		err = fmt.Errorf("the log of room %s ends with seq %d and has %d messages: some are missing", e.room.Name, last, e.index.Counts.Messages)
	}
	return errors.Join(err, out.flush())
}

func (e *export) writeContents(ctx context.Context) error {
	if len(e.contents) > 0 && e.blobs == nil {
		return errors.New("the contents of the room's files are in the blob store: say where that is, with --blob-url")
	}
	for _, hash := range slices.Sorted(maps.Keys(e.contents)) {
		if err := e.writeContent(ctx, hash, e.contents[hash]); err != nil {
			return fmt.Errorf("reading the content %s: %w", hash, err)
		}
		e.index.Counts.Contents++
		e.index.Counts.Bytes += e.contents[hash]
	}
	return nil
}

func (e *export) writeContent(ctx context.Context, hash string, size int64) error {
	r, has, err := e.blobs.NewReader(ctx, e.room.UID, hash)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it is about
	}
	defer func() { _ = r.Close() }()
	if has != size {
		return fmt.Errorf("the store has %d bytes, and the file says %d", has, size)
	}
	if err := e.w.stream(contentDir+hash, size, r); err != nil {
		return err
	}
	if got := e.index.Entries[len(e.index.Entries)-1].SHA256; got != hash {
		return fmt.Errorf("the store has other bytes, of the sha256 %s", got)
	}
	return nil
}
