package board

import (
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
)

const (
	// chunkBytes is how much of a text is shown at once, maxShown how much of it a page takes in. The rest is in the download.
	chunkBytes, maxShown = 64 << 10, 1 << 20
	// sendTimeout is how long a browser may take to read a piece of a download.
	sendTimeout = 30 * time.Second
)

// chunkView is a part of a version's text.
type chunkView struct {
	FileID, Type  string
	Version, Size int64
	Numbers, Text string
	// Next is where the rest begins, 0 when there is none, and NextLine the number of its first line. Beyond is true when the
	// rest is not for pages.
	Next, NextLine, Shown int64
	Beyond                bool
	// May says whether the person may read it. Binary content is not shown, and Empty has nothing to show.
	May, Binary, Empty bool
	Problem            string
}

// chunk gives a part of a version's text, from a byte on, the first line of which has a number.
func (b *Board) chunk(ctx context.Context, a *access, f *v1alpha1.File, v v1alpha1.FileVersion, offset, line int64) (chunkView, error) {
	out := chunkView{FileID: ids.ID(f), Type: v.ContentType, Version: v.Version, Size: v.Size, May: a.may.Contents, Empty: v.Size == 0}
	if !out.May || out.Empty || v.Version == 0 {
		return out, nil
	}
	if !files.IsText(v.ContentType) {
		out.Binary = true
		return out, nil
	}
	if err := b.stored(); err != nil {
		return out, err
	}
	asked := files.Span{Offset: offset, Length: chunkBytes}
	wide := files.Widen(asked, v.Size)
	raw, err := b.opts.Blobs.Read(ctx, a.room.UID, v.SHA256, wide.Offset, wide.Length)
	if blobs.IsNotFound(err) {
		return out, problem.New(problem.NotFound, "the content of this version is not in the store")
	} else if err != nil {
		return out, fetchError(err)
	}
	content, encoding, got := files.Cut(raw, asked, v.Size, v.ContentType)
	if encoding != files.UTF8 {
		out.Binary = true
		return out, nil
	}
	end := got.Offset + int64(len(content))
	if i := strings.LastIndexByte(content, '\n'); i >= 0 && end < v.Size {
		content, end = content[:i+1], got.Offset+int64(i)+1
	}
	out.fill(content, line, end)
	return out, nil
}

// separators of lines that only some know: they are shown, so that the numbers stay right.
var separators = strings.NewReplacer("\u2028", "⟦LS⟧", "\u2029", "⟦PS⟧")

// fill takes in the text up to a byte, and numbers its lines. A last line that goes on in the next chunk is numbered there again.
func (c *chunkView) fill(content string, line, end int64) {
	whole := strings.HasSuffix(content, "\n")
	lines := int64(strings.Count(content, "\n"))
	var numbers strings.Builder
	for n := line; n < line+lines; n++ {
		numbers.WriteString(strconv.FormatInt(n, 10) + "\n")
	}
	if !whole {
		numbers.WriteString(strconv.FormatInt(line+lines, 10))
	}
	c.Numbers, c.Text, c.Shown = strings.TrimSuffix(numbers.String(), "\n"), plain(separators.Replace(strings.TrimSuffix(content, "\n"))), end
	if end < c.Size {
		c.Next, c.NextLine, c.Beyond = end, line+lines, end >= maxShown
	}
}

// moreText serves the next part of a text.
func (b *Board) moreText(w http.ResponseWriter, r *http.Request, p *person) error {
	a, f, v, err := b.contents(r, p)
	if err != nil {
		return err
	}
	offset, bad := strconv.ParseInt(r.FormValue("offset"), 10, 64)
	line, worse := strconv.ParseInt(r.FormValue("line"), 10, 64)
	if bad != nil || worse != nil || offset < 0 || offset > maxShown || line < 1 || line > offset+1 {
		return problem.Invalid("offset", "must be where the part before ended: load the page again")
	}
	chunk, err := b.chunk(r.Context(), a, f, v, offset, line)
	if err != nil {
		return err
	}
	b.render(w, r, http.StatusOK, "chunk", chunk)
	return nil
}

// download serves a version as a file to keep: never as something that a browser shows or runs.
func (b *Board) download(w http.ResponseWriter, r *http.Request, p *person) error {
	a, f, v, err := b.contents(r, p)
	if err != nil {
		return err
	}
	leave, ok := b.opts.Bounds.OpenStream(p.name)
	if !ok {
		return problem.New(problem.RateLimited, "you have too many pages and downloads open: close some")
	}
	defer leave()
	content, _, err := b.opts.Blobs.NewReader(r.Context(), a.room.UID, v.SHA256)
	if blobs.IsNotFound(err) {
		return problem.New(problem.NotFound, "the content of this version is not in the store")
	} else if err != nil {
		return fetchError(err)
	}
	defer func() { _ = content.Close() }()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(f.Spec.Path)}))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("ETag", `"`+v.SHA256+`"`)
	http.ServeContent(&unhurried{w, http.NewResponseController(w)}, r, "", v.At.Time, content)
	return nil
}

// fileName gives the name that a browser may keep a file under: nothing in it works unseen.
func fileName(path string) string {
	return strings.Map(func(r rune) rune {
		if _, hidden := visible(r); hidden || strings.ContainsRune(`"*:<>?|`, r) {
			return '_'
		}
		return r
	}, files.Base(path))
}

// unhurried puts the deadline of an answer off with each piece that the browser takes.
type unhurried struct {
	http.ResponseWriter

	control *http.ResponseController
}

// ReadFrom copies piece by piece: all at once would have one deadline for all.
func (u *unhurried) ReadFrom(from io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{u}, from, make([]byte, chunkBytes)) //nolint:wrapcheck // the error of an io.Copy
}

// Write implements io.Writer.
func (u *unhurried) Write(piece []byte) (int, error) {
	_ = u.control.SetWriteDeadline(time.Now().Add(sendTimeout)) // not every server under test has deadlines
	return u.ResponseWriter.Write(piece)                        //nolint:wrapcheck // as the ResponseWriter's own
}
