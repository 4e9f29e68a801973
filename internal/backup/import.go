package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/blobs"
)

// ImportOptions say where an archive is restored.
type ImportOptions struct {
	// Client reads from the API server, not from a cache, and writes. It takes the role agentrooms-restorer.
	Client client.Client
	// Blobs takes old messages and the contents of files. Nil when there is no store: then an archive that has some is refused.
	Blobs *blobs.Store
	// Namespace that the room comes into.
	Namespace string
}

// Import restores a room from an archive. It first reads the archive to its end, and writes nothing when it is damaged, of another
// version, or when there is such a room, or something in its place. Until all of it is there the room has no members and is
// marked (v1alpha1.RestoringAnnotation). An import that did not finish goes on where it was when it is made again with
// the same archive.
func Import(ctx context.Context, o ImportOptions, from io.ReadSeeker) (*Index, error) {
	index, err := Verify(from)
	if err != nil {
		return nil, err
	}
	im := &restore{ImportOptions: o, index: index}
	if index.Archived+index.Counts.Moved+index.Counts.Contents > 0 && o.Blobs == nil {
		return nil, errors.New("the archive has old messages, old tasks or files: say where their blob store is, with --blob-url")
	}
	if err := im.check(ctx, from); err != nil {
		return nil, err
	}
	if err := im.again(from, im.entry(ctx)); err != nil {
		return nil, err
	}
	if err := im.endLog(ctx); err != nil {
		return nil, err
	}
	return index, im.open(ctx)
}

// restore is one import.
type restore struct {
	ImportOptions
	index *Index
	// wanted is the room as the archive has it.
	wanted *v1alpha1.Room
	// room is the one that is being filled.
	room *v1alpha1.Room
	log  logState
}

// again reads the archive from its beginning.
func (im *restore) again(from io.Seeker, visit func(name string, size int64, r io.Reader) error) error {
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the archive again: %w", err)
	}
	return walk(from.(io.Reader), visit) //nolint:forcetypeassert // an io.ReadSeeker
}

// entry restores one entry after the other. Everything that is there already, from an import that did not finish, stays.
func (im *restore) entry(ctx context.Context) func(string, int64, io.Reader) error {
	return func(name string, size int64, r io.Reader) error {
		hash, isContent := contentHash(name)
		switch {
		case isContent:
			return im.content(ctx, hash, size, r)
		case name == roomEntry:
			return im.begin(ctx)
		case name == agentsEntry:
			return restoreLines(ctx, name, size, r, im.agent)
		case name == consentsEntry:
			return restoreLines(ctx, name, size, r, im.consent)
		case name == inboxesEntry:
			return restoreLines(ctx, name, size, r, im.inbox)
		case strings.HasPrefix(name, tasksDir):
			return restoreLines(ctx, name, size, r, im.task)
		case strings.HasPrefix(name, movedDir):
			return restoreLines(ctx, name, size, r, im.moved)
		case strings.HasPrefix(name, filesDir):
			return restoreLines(ctx, name, size, r, im.file)
		case strings.HasPrefix(name, messagesDir):
			return im.messages(ctx, name, size, r)
		}
		return nil
	}
}

// begin makes the room, marked and without members, or finds the one that an import of the same archive has made.
func (im *restore) begin(ctx context.Context) error {
	room := im.wanted.DeepCopy()
	room.Namespace = im.Namespace
	room.Spec.Members, room.Spec.State = nil, v1alpha1.RoomPaused
	room.Annotations[v1alpha1.RestoringAnnotation] = im.index.Digest()
	err := im.Client.Create(ctx, room)
	if apierrors.IsAlreadyExists(err) {
		room, err = im.present(ctx)
	}
	if err != nil {
		return fmt.Errorf("creating room %s: %w", im.wanted.Name, err)
	}
	im.room = room
	return im.seen(ctx)
}

// seenWithin is how long the manager may take to notice the room. Where none runs, one that starts later finds it marked.
const seenWithin = 5 * time.Second

// seen waits until the manager knows of the room, and so that it is to leave its tasks alone.
func (im *restore) seen(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, seenWithin, true, func(ctx context.Context) (bool, error) {
		room := &v1alpha1.Room{}
		err := im.Client.Get(ctx, client.ObjectKeyFromObject(im.room), room)
		return err == nil && room.Status.ObservedGeneration > 0, err
	})
	if err != nil && (ctx.Err() != nil || !wait.Interrupted(err)) {
		return fmt.Errorf("waiting for the manager: %w", err)
	}
	return nil
}

// open gives the room its members, its state and its place among the others, in one write.
func (im *restore) open(ctx context.Context) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		room := &v1alpha1.Room{}
		if err := im.Client.Get(ctx, client.ObjectKeyFromObject(im.room), room); err != nil {
			return err //nolint:wrapcheck // retried by what it is
		}
		room.Spec = im.wanted.Spec
		delete(room.Annotations, v1alpha1.RestoringAnnotation)
		return im.Client.Update(ctx, room) //nolint:wrapcheck // retried by what it is
	})
	if err != nil {
		return fmt.Errorf("opening room %s: %w", im.room.Name, err)
	}
	return nil
}
