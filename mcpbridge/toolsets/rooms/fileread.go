package rooms

import (
	"context"
	"errors"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

func (t *Toolset) readFile(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	found, err := t.fileOf(ctx, a, args)
	if err != nil {
		return nil, err
	}
	v, err := versionOf(found, args.Int("version", 0))
	if err != nil {
		return nil, err
	}
	if err := t.stored(); err != nil {
		return nil, err
	}
	asked, whole, err := t.spanOf(ctx, a, v, args.Object("range"))
	if err != nil {
		return nil, err
	}
	raw, err := t.bytes(ctx, a, v, files.Widen(asked, v.Size))
	if err != nil {
		return nil, t.fileProblem("reading a file", err)
	}
	out := FileRead{FileID: ids.ID(found.file), Path: found.file.Spec.Path, Version: v.Version, ContentType: v.ContentType, Size: v.Size}
	out.Content, out.Encoding, out.Range = files.Cut(raw, asked, v.Size, v.ContentType)
	if end := out.Range.Offset + out.Range.Length; end < whole {
		out.Truncated, out.NextRange = true, &files.Span{Offset: end, Length: whole - end}
	}
	t.metrics.files.WithLabelValues("read").Inc()
	t.metrics.fileBytes.WithLabelValues("read").Add(float64(out.Range.Length))
	return out, nil
}

// versionOf gives the version that a call means: that of an upload, that with a number, or the latest.
func versionOf(found foundFile, number int64) (v1alpha1.FileVersion, error) {
	if found.upload != "" && number == 0 {
		return uploaded(found)
	}
	v, ok := files.Find(found.file, number)
	switch {
	case ok:
		return v, nil
	case number == 0 || len(files.Kept(found.file)) == 0:
		return v, noFile(found.file.Spec.Path)
	}
	return v, problem.New(problem.NotFound, "version %d of %q is not kept", number, found.file.Spec.Path).
		WithHint("the latest is %d", files.Kept(found.file)[0].Version)
}

// uploaded gives the version that an upload became, or says why it is none.
func uploaded(found foundFile) (v1alpha1.FileVersion, error) {
	if v, ok := files.OfUpload(found.file, found.upload); ok {
		return v, nil
	}
	up, ok := files.Upload(found.file, found.upload)
	switch {
	case !ok:
		return v1alpha1.FileVersion{}, noFile(found.file.Spec.Path)
	case up.State == v1alpha1.UploadQuarantined:
		return v1alpha1.FileVersion{}, problem.New(problem.UploadNotComplete, "the upload lies in quarantine and cannot be read: %s", up.Reason).
			WithHint("its owner can share the file again")
	}
	return v1alpha1.FileVersion{}, problem.New(problem.UploadNotComplete, "the upload is not complete yet").
		WithHint("whoever shared it has to PUT the bytes and call complete_file_upload")
}

var errRange = problem.Invalid("range", "must hold offset and length, or start_line and end_line, not both")

// spanOf gives the bytes that a range means, and where what was asked for ends: all of the file when there is no range.
func (t *Toolset) spanOf(ctx context.Context, a *access, v v1alpha1.FileVersion, r toolset.Args) (span files.Span, end int64, err error) {
	byBytes, byLines := r.Has("offset") || r.Has("length"), r.Has("start_line") || r.Has("end_line")
	switch {
	case byBytes && byLines:
		return span, 0, errRange
	case byLines:
		span, err = t.lines(ctx, a, v, r)
		return span, span.Offset + span.Length, err
	case byBytes:
		span.Offset = r.Int("offset", 0)
		if span.Offset > v.Size {
			return span, 0, problem.Invalid("range", "begins at byte %d, and the file has %d", span.Offset, v.Size)
		}
		span.Length = min(r.Int("length", v.Size), v.Size-span.Offset)
		return span, span.Offset + span.Length, nil
	}
	return files.Span{Length: v.Size}, v.Size, nil
}

// lines finds where lines lie in the content, by reading it up to the last of them.
func (t *Toolset) lines(ctx context.Context, a *access, v v1alpha1.FileVersion, r toolset.Args) (files.Span, error) {
	first, last := r.Int("start_line", 1), r.Int("end_line", 0)
	if last > 0 && last < first {
		return files.Span{}, problem.Invalid("range", "ends with line %d, before it begins with line %d", last, first)
	}
	content, _, err := t.blobs.NewReader(ctx, a.room.UID, v.SHA256)
	if err != nil {
		return files.Span{}, t.fileProblem("reading a file", err)
	}
	span, err := files.Lines(content, first, last)
	if err = errors.Join(err, content.Close()); err != nil {
		return files.Span{}, t.fileProblem("reading a file", err)
	}
	return span, nil
}
