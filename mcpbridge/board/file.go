package board

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

// versionView is a version of a file.
type versionView struct {
	FileID, Type, By, SHA256 string
	Version, Size            int64
	At                       time.Time
	// Shown is true for the version whose text the page shows, Latest for the newest one.
	Shown, Latest bool
	May           rights
}

// fileView is a file with all that is known of it.
type fileView struct {
	ID, RoomID, Room, Path, Name string
	Crumbs                       []crumb
	May                          rights
	// Shown is the version whose text the page shows; its number is 0 when there is none.
	Shown versionView
	// Pinned says that the page was asked for this version, and does not go on to later ones. Newest is the number of the latest.
	Pinned   bool
	Newest   int64
	Versions []versionView
	Uploads  []uploadView
}

// findFile gives the file that a path names to somebody who may see the files where it is. Deleted ones are not there.
func (b *Board) findFile(r *http.Request, p *person) (*access, *v1alpha1.File, error) {
	return b.fileFor(r.Context(), p, r.PathValue("id"))
}

func (b *Board) fileFor(ctx context.Context, p *person, id string) (*access, *v1alpha1.File, error) {
	f, _, ok := b.view.FileByID(id)
	if !ok || (len(files.Kept(f)) == 0 && len(b.uploads(f)) == 0) {
		return nil, nil, absent("file")
	}
	room, ok := b.view.Room(f.Namespace, f.Spec.RoomRef.Name)
	if !ok || !files.OfRoom(f, room) {
		return nil, nil, absent("file")
	}
	a, err := b.accessTo(ctx, p, room, ids.ID(room))
	if err == nil && (a == nil || !a.may.Files) {
		err = absent("file")
	}
	return a, f, err
}

// versionOf reads which version of a file a request means: the latest when it names none.
func versionOf(r *http.Request, f *v1alpha1.File) (v v1alpha1.FileVersion, pinned bool, err error) {
	number := int64(0)
	if text := r.FormValue("version"); text != "" {
		if number, err = strconv.ParseInt(text, 10, 64); err != nil || number < 1 {
			return v, true, problem.Invalid("version", "must be the number of a version")
		}
	}
	v, ok := files.Find(f, number)
	if !ok && number > 0 {
		return v, true, absent("version")
	}
	return v, number > 0, nil
}

func (b *Board) fileView(a *access, f *v1alpha1.File, shown v1alpha1.FileVersion, pinned bool) *fileView {
	v := &fileView{
		ID: ids.ID(f), RoomID: a.id, Room: a.room.Spec.DisplayName, Path: f.Spec.Path, Name: files.Base(f.Spec.Path),
		Crumbs: crumbs(f.Spec.Path), May: a.may, Pinned: pinned, Uploads: b.uploads(f),
	}
	kept := files.Kept(f)
	for i, version := range kept {
		v.Versions = append(v.Versions, versionView{
			FileID: v.ID, Type: version.ContentType, By: b.whoName(&version.By), SHA256: version.SHA256, Version: version.Version,
			Size: version.Size, At: version.At.Time, Latest: i == 0, Shown: version.Version == shown.Version, May: a.may,
		})
	}
	if len(kept) > 0 {
		v.Newest = kept[0].Version
	}
	if i := slices.IndexFunc(v.Versions, func(x versionView) bool { return x.Shown }); i >= 0 {
		v.Shown = v.Versions[i]
	}
	return v
}

// text makes the beginning of a version's text, and keeps it: a page that is kept live does not read it each time.
type text struct {
	sha  string
	html template.HTML
}

func (b *Board) fileText(ctx context.Context, a *access, f *v1alpha1.File, v v1alpha1.FileVersion, known *text) (part, error) {
	sum := fmt.Sprintf("%d %s %t", v.Version, v.SHA256, a.may.Contents)
	if known.sha == sum {
		return part{"file-text", known.html}, nil
	}
	chunk, err := b.chunk(ctx, a, f, v, 0, 1)
	if err != nil {
		if ctx.Err() != nil {
			return part{}, err
		}
		chunk.Problem = sentence(b.judge(ctx, err))
	}
	p, problem := b.part("file-text", "file-text", chunk)
	if err == nil && problem == nil {
		*known = text{sum, p.HTML}
	}
	return p, problem
}

// fileSnapshot gives what the page of a file shows.
func (b *Board) fileSnapshot(ctx context.Context, a *access, f *v1alpha1.File, shown v1alpha1.FileVersion, pinned bool, known *text) (*snapshot, error) {
	v := b.fileView(a, f, shown, pinned)
	head, err := b.part("file-head", "file-head", v)
	if err != nil {
		return nil, err
	}
	content, err := b.fileText(ctx, a, f, shown, known)
	if err != nil {
		return nil, err
	}
	uploads, err := b.part("file-uploads", "file-uploads", v)
	if err != nil {
		return nil, err
	}
	versions := list{ID: "versions"}
	for _, version := range v.Versions {
		p, err := b.part(fmt.Sprintf("v-%d", version.Version), "version", version)
		if err != nil {
			return nil, err
		}
		versions.Parts = append(versions.Parts, p)
	}
	s := &snapshot{shape: "file", parts: []part{head, content, uploads}, lists: []list{versions}}
	s.body = func() (template.HTML, error) {
		return b.fragment("file-page", struct {
			Head, Text, Uploads part
			Versions            list
		}{head, content, uploads, versions})
	}
	return s, nil
}

// showFile serves the page of a file.
func (b *Board) showFile(w http.ResponseWriter, r *http.Request, p *person) error {
	a, f, err := b.findFile(r, p)
	if err != nil {
		return err
	}
	v, pinned, err := versionOf(r, f)
	if err != nil {
		return err
	}
	s, err := b.fileSnapshot(r.Context(), a, f, v, pinned, &text{})
	if err != nil {
		return err
	}
	query := ""
	if pinned {
		query = fmt.Sprintf("version=%d", v.Version)
	}
	return b.showSimple(w, r, p, f.Spec.Path, "/files/"+ids.ID(f)+"/live", query, s, b.filesOf(a.room))
}

// liveFile keeps the page of a file live. Without a version it goes on to the latest.
func (b *Board) liveFile(w http.ResponseWriter, r *http.Request, p *person) error {
	a, f, err := b.findFile(r, p)
	if err != nil {
		return err
	}
	id, known := ids.ID(f), &text{}
	return b.live(w, r, p, stream{
		topics: []string{view.RoomsTopic, view.MembersTopic, view.FilesTopic(a.id)}, shows: b.filesOf(a.room),
		look: func(ctx context.Context) (*snapshot, *access, error) {
			a, f, err := b.fileFor(ctx, p, id)
			if err != nil {
				return nil, nil, err
			}
			v, pinned, err := versionOf(r, f)
			if err != nil {
				return nil, nil, err
			}
			s, err := b.fileSnapshot(ctx, a, f, v, pinned, known)
			return s, a, err
		},
	})
}

// contents gives a version of a file to somebody who may read it.
func (b *Board) contents(r *http.Request, p *person) (*access, *v1alpha1.File, v1alpha1.FileVersion, error) {
	none := v1alpha1.FileVersion{}
	a, f, err := b.findFile(r, p)
	if err != nil {
		return nil, nil, none, err
	}
	if !a.may.Contents {
		return nil, nil, none, problem.New(problem.Forbidden, "you may not read the contents of files in this namespace")
	}
	if err := b.stored(); err != nil {
		return nil, nil, none, err
	}
	v, _, err := versionOf(r, f)
	if err == nil && v.Version == 0 {
		err = absent("version")
	}
	return a, f, v, err
}

// fetchError says what it means that content could not be read.
func fetchError(err error) error {
	if missing := new(problem.Problem); errors.As(err, &missing) {
		return err
	}
	return fmt.Errorf("reading the content of a file: %w", err)
}
