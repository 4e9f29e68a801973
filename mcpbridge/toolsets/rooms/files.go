package rooms

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

// fileProblem says in words for agents what the blob store's error means. The error itself goes to the log.
func (t *Toolset) fileProblem(doing string, err error) error {
	t.log.Error(err, "The blob store failed", "doing", doing)
	return problem.New(problem.Unavailable, "the store of file contents does not answer just now: try again")
}

// stored refuses what needs the blob store where there is none.
func (t *Toolset) stored() error {
	if t.blobs == nil {
		return problem.New(problem.Unavailable, "this installation has no store for file contents").
			WithHint("an admin can give the bridge one with --blob-url")
	}
	return nil
}

// fileName gives the name of the File at a path.
func (a *access) fileName(path string) string {
	return ids.FileName(a.room.Name, a.room.UID, files.Look(path))
}

// fileAt gives the File at a path, nil when there is none. One whose path only looks the same is a conflict.
func (t *Toolset) fileAt(a *access, path string) (*v1alpha1.File, error) {
	f, ok := t.view.File(a.room.Namespace, a.fileName(path))
	if !ok || !t.ofRoom(a, f) {
		return nil, nil
	}
	if f.Spec.Path != path {
		if _, visible := files.Latest(f); visible || len(f.Spec.Uploads) > 0 {
			return nil, problem.New(problem.Conflict, "the path cannot be told from that of another file by eye: %q", f.Spec.Path).
				WithHint("write to that path, or choose another name")
		}
		return nil, problem.New(problem.Conflict, "the path cannot be told by eye from that of a file that was deleted: choose another name")
	}
	return f, nil
}

// ofRoom says whether a File belongs to the room, and not to one that had its name before.
func (t *Toolset) ofRoom(a *access, f *v1alpha1.File) bool { return files.OfRoom(f, a.room) }

// maxFileAttempts at a compare-and-swap: more than elsewhere, since all who write a path at once are to get a version.
const maxFileAttempts = 32

// changeFile writes what edit makes of the File at a path, by compare-and-swap: nil stands for a File that does not exist
// yet, and a nil result writes nothing. A problem that the view gives is checked once against the API server.
func (t *Toolset) changeFile(
	ctx context.Context, a *access, name string, edit func(*v1alpha1.File) (*v1alpha1.File, error),
) (*v1alpha1.File, error) {
	key := a.room.Namespace + "/" + name
	t.fileLocks.LockKey(key)
	defer func() { _ = t.fileLocks.UnlockKey(key) }()
	defer t.quota.release(a.room.UID, name)
	var last error
	fresh := false
	for attempt := range maxFileAttempts {
		current, known := t.view.File(a.room.Namespace, name)
		if !known {
			current = nil
		}
		next, err := edit(current)
		if _, refused := problem.As(err); (refused || (err == nil && next == nil)) && !fresh {
			if fresh, err = true, t.refreshFile(ctx, a, name); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil || next == nil {
			return current, err
		}
		if current == nil {
			last = t.api.Create(ctx, next)
		} else {
			last = t.api.Update(ctx, next)
		}
		if last == nil {
			t.wrote(ctx, "file", next)
			return next, nil
		}
		if !contended(last) || ctx.Err() != nil {
			break
		}
		pause(ctx, attempt)
		if err := t.refreshFile(ctx, a, name); err != nil {
			return nil, err
		}
		fresh = true
	}
	return nil, gaveUp("file", key, last)
}

// reserve refuses what would take the room beyond its limits, with all that is being written at the moment.
func (t *Toolset) reserve(a *access, file string, more files.Usage) *problem.Problem {
	return t.quota.take(a.room, file, func() files.Usage { return t.view.FileUsage(a.room) }, more)
}

func (t *Toolset) refreshFile(ctx context.Context, a *access, name string) error {
	current := &v1alpha1.File{}
	err := t.api.Get(ctx, client.ObjectKey{Namespace: a.room.Namespace, Name: name}, current)
	if apierrors.IsNotFound(err) {
		if old, ok := t.view.File(a.room.Namespace, name); ok {
			t.view.Gone(old)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading file %s/%s: %w", a.room.Namespace, name, err)
	}
	current.ManagedFields = nil
	t.view.Saw(current)
	return nil
}

func newFile(a *access, path string) *v1alpha1.File {
	return &v1alpha1.File{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.room.Namespace, Name: a.fileName(path), Labels: map[string]string{v1alpha1.RoomLabel: a.room.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "Room", Name: a.room.Name, UID: a.room.UID,
			}},
		},
		Spec: v1alpha1.FileSpec{RoomRef: v1alpha1.RoomReference{Name: a.room.Name}, Path: path},
	}
}

// edited gives the File to change: a copy of the one that exists, or a new one.
func edited(a *access, path string, current *v1alpha1.File) *v1alpha1.File {
	if current == nil {
		return newFile(a, path)
	}
	return current.DeepCopy()
}

// foundFile is a File that a member may see.
type foundFile struct {
	access *access
	file   *v1alpha1.File
	// upload is set when the id was that of an upload.
	upload string
}

// fileByID gives a File to a member of its room.
func (t *Toolset) fileByID(ctx context.Context, c *toolset.Caller, id string) (foundFile, error) {
	if !ids.Valid(id) {
		return foundFile{}, problem.Invalid("file_id", "must be a file id (01K…)").WithHint("list_files gives the ids")
	}
	absent := problem.New(problem.NotFound, "there is no file %s in a room that you are a member of", id).
		WithHint("list_files gives the files of a room")
	return await(ctx, t, id, view.AnyFileTopic, absent, func() (foundFile, bool) {
		f, isUpload, ok := t.view.FileByID(id)
		if !ok {
			return foundFile{}, false
		}
		room, ok := t.view.Room(f.Namespace, f.Spec.RoomRef.Name)
		if !ok {
			return foundFile{}, false
		}
		a, ok := t.member(c, room)
		if !ok || !t.ofRoom(a, f) {
			return foundFile{}, false
		}
		found := foundFile{access: a, file: f}
		if isUpload {
			found.upload = id
		}
		return found, true
	})
}

// fileOf gives the File that the arguments of a call name, by path or by id.
func (t *Toolset) fileOf(ctx context.Context, a *access, args toolset.Args) (foundFile, error) {
	path, id := args.String("path"), args.String("file_id")
	switch {
	case path == "" && id == "":
		return foundFile{}, problem.Invalid("path", "or file_id must be given")
	case path != "" && id != "":
		return foundFile{}, problem.Invalid("path", "may not be given together with file_id")
	case id != "":
		found, err := t.fileByID(ctx, a.caller, id)
		if err == nil && found.access.id != a.id {
			err = problem.New(problem.NotFound, "there is no file %s in this room", id).WithHint("list_files gives the files of a room")
		}
		return found, err
	}
	clean, p := files.CleanPath("path", path)
	if p != nil {
		return foundFile{}, p
	}
	f, err := t.fileAt(a, clean)
	if _, other := problem.As(err); other || f == nil {
		if t.view.Behind() {
			return foundFile{}, problem.New(problem.Unavailable, "this replica is catching up with the cluster: try again")
		}
		return foundFile{}, noFile(clean)
	}
	return foundFile{access: a, file: f}, nil
}

func noFile(path string) error {
	return problem.New(problem.NotFound, "there is no file %q in this room", path).WithHint("list_files gives the files of a room")
}

// maxFileList is how many files one answer holds.
const maxFileList = 500

func (t *Toolset) listFiles(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	out := FileList{Files: []FileInfo{}}
	for _, f := range t.view.Files(a.room) {
		v, ok := files.Latest(f)
		if !ok || !t.ofRoom(a, f) || f.Spec.Path <= args.String("after") || !files.HasPrefix(f.Spec.Path, args.String("prefix")) {
			continue
		}
		if len(out.Files) == maxFileList {
			out.NextAfter = out.Files[maxFileList-1].Path
			break
		}
		out.Files = append(out.Files, FileInfo{
			Path: f.Spec.Path, FileID: ids.ID(f), Version: v.Version, Size: v.Size, ContentType: v.ContentType, SHA256: v.SHA256,
			UpdatedAt: stamp(v.At.Time), UpdatedBy: t.author(v.By),
		})
	}
	return out, nil
}

// author names who wrote something the way others can mention it.
func (t *Toolset) author(by v1alpha1.TaskCreator) string {
	if by.Plate == "" {
		return by.User
	}
	if agent, ok := t.view.AgentByPlate(by.Plate); ok {
		return aliasOf(agent)
	}
	return by.Plate
}

func (t *Toolset) deleteFile(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	if err := a.writable(); err != nil {
		return nil, err
	}
	found, err := t.fileOf(ctx, a, args)
	if err != nil {
		return nil, err
	}
	var before []v1alpha1.FileUpload
	file, err := t.changeFile(ctx, a, found.file.Name, func(current *v1alpha1.File) (*v1alpha1.File, error) {
		if current == nil || current.UID != found.file.UID {
			return nil, noFile(found.file.Spec.Path)
		}
		before = current.Spec.Uploads
		return t.deleted(c, current, found.upload)
	})
	if err != nil {
		return nil, err
	}
	t.dropUploads(ctx, a, before, file)
	t.metrics.files.WithLabelValues("delete").Inc()
	return FileDeleted{Deleted: true}, nil
}

// dropUploads deletes the bytes of uploads that a File has no more. What cannot be deleted now, or comes later, is swept.
func (t *Toolset) dropUploads(ctx context.Context, a *access, before []v1alpha1.FileUpload, file *v1alpha1.File) {
	for _, up := range before {
		if _, kept := files.Upload(file, up.ID); !kept && t.blobs != nil {
			_ = t.blobs.DropUpload(ctx, a.room.UID, up.ID)
		}
	}
}

// deleted gives the File without what there is to see of it. The id of an upload that is none of its versions takes that back and
// nothing else; of a file that was only announced, all uploads are taken back.
func (t *Toolset) deleted(c *toolset.Caller, current *v1alpha1.File, upload string) (*v1alpha1.File, error) {
	latest, visible := files.Latest(current)
	_, announced := files.Upload(current, upload)
	next := current.DeepCopy()
	switch {
	case announced:
		files.DropUpload(next, upload)
	case visible:
		next.Spec.Deletion = &v1alpha1.FileDeletion{
			ThroughVersion: latest.Version, By: v1alpha1.TaskCreator{Plate: c.Plate}, At: metav1.NewMicroTime(t.clock.Now()),
		}
	case len(current.Spec.Uploads) > 0:
		next.Spec.Uploads = nil
	case current.Spec.Deletion != nil:
		return nil, nil // deleted before
	default:
		return nil, noFile(current.Spec.Path)
	}
	return next, nil
}

// content makes the description of content that the caller brings.
func (t *Toolset) content(c *toolset.Caller, sha string, size int64, kind string) v1alpha1.FileContent {
	return v1alpha1.FileContent{
		SHA256: sha, Size: size, ContentType: kind, By: v1alpha1.TaskCreator{Plate: c.Plate}, At: metav1.NewMicroTime(t.clock.Now().Truncate(time.Microsecond)),
	}
}

// isHex says whether a string is a SHA-256 as it is written.
func isHex(s string) bool {
	return len(s) == 64 && !slices.ContainsFunc([]byte(s), func(b byte) bool { return !strings.ContainsRune("0123456789abcdef", rune(b)) })
}
