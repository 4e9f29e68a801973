package board

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

// Blobs is where the contents of files are.
type Blobs interface {
	Read(ctx context.Context, room types.UID, sha256hex string, offset, length int64) ([]byte, error)
	NewReader(ctx context.Context, room types.UID, sha256hex string) (io.ReadSeekCloser, int64, error)
}

const (
	// maxRows is how many folders and files a page lists. Links lead to the rest.
	maxRows = 200
)

// uploadView is content that is announced and not part of its file.
type uploadView struct {
	ID, By, Type, Reason string
	Size                 int64
	Quarantined          bool
	At                   time.Time
}

// fileRow is a folder or a file in the list.
type fileRow struct {
	Key, RoomID, Name string
	// In is where a folder leads to, with the slash at its end; empty for a file.
	In string
	// Files and Size are how much a folder holds.
	Files int
	Size  int64
	// ID of a file, its latest version, and how many there are.
	ID, Type, By         string
	Version              int64
	Versions             int
	At                   time.Time
	Pending, Quarantined int
	last                 string
}

// fileQuery says which of a room's files a page lists.
type fileQuery struct {
	// In is the folder, with a slash at its end; empty for all of the room. Find is looked for in the paths of everything below.
	In, Find string
	// After is the last row of the page before.
	After string
}

func readFileQuery(r *http.Request) fileQuery {
	q := fileQuery{In: r.FormValue("in"), Find: strings.TrimSpace(r.FormValue("find")), After: r.FormValue("after")}
	if q.In != "" && !strings.HasSuffix(q.In, "/") {
		q.In += "/"
	}
	q.In, q.Find, q.After = clipped(q.In), clipped(q.Find), clipped(q.After)
	return q
}

// clipped bounds what a URL says of paths: to a path, and the slash behind a folder.
func clipped(s string) string {
	n := 0
	for i := range s {
		if n++; n > v1alpha1.MaxFilePath+1 {
			return s[:i]
		}
	}
	return strings.ToValidUTF8(s, "")
}

// String gives the query as it stands in a URL.
func (q fileQuery) String() string {
	values := url.Values{}
	for name, value := range map[string]string{"in": q.In, "find": q.Find, "after": q.After} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values.Encode()
}

// fileListView is the page of a room's files.
type fileListView struct {
	RoomID, Room string
	Query        fileQuery
	Crumbs       []crumb
	Items        list
	// Next is the query of the page behind this one, empty when there is none. First leads back to the first page.
	Next, First string
	Files       int64
	Bytes       int64
	Stored      bool
}

// crumb is a folder above.
type crumb struct{ Name, In string }

func crumbs(path string) []crumb {
	var found []crumb
	for at, rest := 0, path; ; {
		i := strings.IndexByte(rest, '/')
		if i < 0 {
			return found
		}
		at += i + 1
		found, rest = append(found, crumb{Name: rest[:i], In: path[:at]}), rest[i+1:]
	}
}

// shownFiles gives the files of a room that there is something to see of: a version, or an upload that is not over.
func (b *Board) shownFiles(room *v1alpha1.Room) []*v1alpha1.File {
	return slices.DeleteFunc(b.view.Files(room), func(f *v1alpha1.File) bool {
		return !files.OfRoom(f, room) || (len(files.Kept(f)) == 0 && len(b.uploads(f)) == 0)
	})
}

// uploads gives the uploads of a file that are not over.
func (b *Board) uploads(f *v1alpha1.File) []uploadView {
	var found []uploadView
	for _, u := range f.Spec.Uploads {
		if b.clock.Now().Before(u.ExpiresAt.Time) {
			found = append(found, uploadView{
				ID: u.ID, By: b.whoName(&u.By), Type: u.ContentType, Reason: u.Reason, Size: u.Size,
				Quarantined: u.State == v1alpha1.UploadQuarantined, At: u.At.Time,
			})
		}
	}
	return found
}

// fileRows gives what a query lists, folders first.
func (b *Board) fileRows(a *access, all []*v1alpha1.File, q fileQuery) []*fileRow {
	var rows []*fileRow
	folders, find := map[string]*fileRow{}, strings.ToLower(q.Find)
	for _, f := range all {
		rest, inside := strings.CutPrefix(f.Spec.Path, q.In)
		if !inside || (find != "" && !strings.Contains(strings.ToLower(rest), find)) {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		if !deeper || find != "" {
			rows = append(rows, b.fileRow(a, f, rest))
			continue
		}
		folder := folders[name]
		if folder == nil {
			folder = &fileRow{Key: digest("folder", q.In+name)[:16], RoomID: a.id, Name: name, In: q.In + name + "/", last: "0" + name}
			folders[name] = folder
			rows = append(rows, folder)
		}
		if v, ok := files.Latest(f); ok {
			folder.Size += v.Size
			if v.At.After(folder.At) {
				folder.At = v.At.Time
			}
		}
		folder.Files++
	}
	slices.SortFunc(rows, func(x, y *fileRow) int { return cmp.Compare(x.last, y.last) })
	return rows
}

func (b *Board) fileRow(a *access, f *v1alpha1.File, name string) *fileRow {
	row := &fileRow{Key: ids.ID(f), RoomID: a.id, ID: ids.ID(f), Name: name, Versions: len(files.Kept(f)), last: "1" + name}
	if v, ok := files.Latest(f); ok {
		row.Type, row.By, row.Version, row.Size, row.At = v.ContentType, b.whoName(&v.By), v.Version, v.Size, v.At.Time
	}
	for _, u := range b.uploads(f) {
		if u.Quarantined {
			row.Quarantined++
		} else {
			row.Pending++
		}
	}
	return row
}

// filesSnapshot gives what the page of a room's files shows.
func (b *Board) filesSnapshot(a *access, q fileQuery) (*snapshot, error) {
	all := b.shownFiles(a.room)
	v := &fileListView{
		RoomID: a.id, Room: a.room.Spec.DisplayName, Query: q, Crumbs: crumbs(q.In), Items: list{ID: "files"}, Stored: b.opts.Blobs != nil,
	}
	usage := b.view.FileUsage(a.room)
	v.Files, v.Bytes = usage.Files, usage.Bytes
	rows := b.fileRows(a, all, q)
	if q.After != "" {
		v.First = fileQuery{In: q.In, Find: q.Find}.String()
		rows = slices.DeleteFunc(rows, func(row *fileRow) bool { return row.last <= q.After })
	}
	if len(rows) > maxRows {
		rows = rows[:maxRows]
		v.Next = fileQuery{In: q.In, Find: q.Find, After: rows[maxRows-1].last}.String()
	}
	for _, row := range rows {
		p, err := b.part("f-"+row.Key, "file-row", row)
		if err != nil {
			return nil, err
		}
		v.Items.Parts = append(v.Items.Parts, p)
	}
	total, err := b.part("files-total", "files-total", v)
	if err != nil {
		return nil, err
	}
	return &snapshot{
		shape: fmt.Sprintf("files %t %s", len(rows) > 0, v.Next), parts: []part{total}, lists: []list{v.Items},
		body: func() (template.HTML, error) {
			return b.fragment("files-page", struct {
				*fileListView
				Total part
			}{v, total})
		},
	}, nil
}

// findFilesRoom gives the room that a path names to somebody who may see its files.
func (b *Board) findFilesRoom(r *http.Request, p *person) (*access, error) {
	a, err := b.findRoom(r, p)
	if err == nil && !a.may.Files {
		err = absent("list of files")
	}
	return a, err
}

// showFiles serves the files of a room.
func (b *Board) showFiles(w http.ResponseWriter, r *http.Request, p *person) error {
	a, err := b.findFilesRoom(r, p)
	if err != nil {
		return err
	}
	q := readFileQuery(r)
	s, err := b.filesSnapshot(a, q)
	if err != nil {
		return err
	}
	live := "/rooms/" + a.id + "/files/live"
	return b.showSimple(w, r, p, "Files of "+a.room.Spec.DisplayName, live, q.String(), s, b.filesOf(a.room))
}

// liveFiles keeps the list of a room's files live.
func (b *Board) liveFiles(w http.ResponseWriter, r *http.Request, p *person) error {
	a, err := b.findFilesRoom(r, p)
	if err != nil {
		return err
	}
	q := readFileQuery(r)
	return b.live(w, r, p, stream{
		topics: []string{view.RoomsTopic, view.MembersTopic, view.FilesTopic(a.id)}, shows: b.filesOf(a.room),
		look: func(ctx context.Context) (*snapshot, *access, error) {
			now, err := b.again(ctx, a)
			if err == nil && !now.may.Files {
				err = absent("list of files")
			}
			if err != nil {
				return nil, nil, err
			}
			s, err := b.filesSnapshot(now, q)
			return s, now, err
		},
	})
}

// stored refuses what needs the contents of files where there is no store for them.
func (b *Board) stored() error {
	if b.opts.Blobs == nil {
		return problem.New(problem.Unavailable, "this installation has no store for the contents of files")
	}
	return nil
}
