package rooms

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// write is a write_file call that was read.
type write struct {
	path    string
	bytes   []byte
	content v1alpha1.FileContent
	base    *int64
}

// writeFile stores the bytes first and then the version that refers to them: bytes without a version are collected, a version
// without bytes would be lost.
func (t *Toolset) writeFile(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	w, err := t.readWrite(c, args)
	if err != nil {
		return nil, err
	}
	if out, err := t.rewritten(w); out != nil || err != nil {
		return out, err
	}
	name, put := a.fileName(w.path), false
	var written v1alpha1.FileVersion
	duplicate := false
	file, err := t.changeFile(ctx, a, name, func(current *v1alpha1.File) (*v1alpha1.File, error) {
		next, v, again, err := t.appended(a, current, w)
		if written, duplicate = v, again; err != nil || next == nil {
			return nil, err
		}
		if !put {
			if err := t.putContent(ctx, a, w); err != nil {
				return nil, err
			}
			put = true
		}
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	t.metrics.wroteFile(len(w.bytes), duplicate)
	return t.written(file, written, duplicate), nil
}

// readWrite checks what the call brings.
func (t *Toolset) readWrite(c *toolset.Caller, args toolset.Args) (write, error) {
	path, p := files.CleanPath("path", args.String("path"))
	if p != nil {
		return write{}, p
	}
	raw, p := files.Decode(args.String("content"), args.String("encoding"))
	if p != nil {
		return write{}, p
	}
	kind, p := files.ContentType(args.String("content_type"), raw)
	if p != nil {
		return write{}, p
	}
	sum := sha256.Sum256(raw)
	w := write{path: path, bytes: raw, base: args.IntPtr("base_version")}
	w.content = t.content(c, hex.EncodeToString(sum[:]), int64(len(raw)), kind)
	if key := args.String("idempotency_key"); key != "" {
		base := ""
		if w.base != nil {
			base = strconv.FormatInt(*w.base, 10)
		}
		w.content.Key = ids.Digest("write_file", c.Plate, args.String("room"), key)
		w.content.Payload = ids.Digest(path, w.content.SHA256, args.String("content_type"), base)
	}
	return w, nil
}

// rewritten answers a call that was carried out before, wherever its key was used.
func (t *Toolset) rewritten(w write) (any, error) {
	if w.content.Key == "" {
		return nil, nil
	}
	f, ok := t.view.FileByKey(w.content.Key)
	if !ok {
		return nil, nil
	}
	v, err := sameWrite(f, w)
	if err != nil {
		return nil, err
	}
	t.metrics.wroteFile(0, true)
	return t.written(f, v, true), nil
}

func sameWrite(f *v1alpha1.File, w write) (v1alpha1.FileVersion, error) {
	v, up, ok := files.Receipt(f, w.content.Key)
	if !ok || up != nil || v.Payload != w.content.Payload {
		return v, problem.New(problem.IdempotencyConflict, "this idempotency_key was used for another file: use a new key for new content")
	}
	return v, nil
}

// appended gives the File with one version more; or none, and the version that this call made in an attempt whose outcome it
// did not learn, or that an earlier call with the same key made.
func (t *Toolset) appended(a *access, current *v1alpha1.File, w write) (next *v1alpha1.File, v v1alpha1.FileVersion, again bool, err error) {
	if current != nil {
		if own, ok := files.Holds(current, w.content); ok {
			return nil, own, false, nil
		}
	}
	if current != nil && w.content.Key != "" {
		if _, _, known := files.Receipt(current, w.content.Key); known {
			v, err = sameWrite(current, w)
			return nil, v, err == nil, err
		}
	}
	if err := a.writable(); err != nil {
		return nil, v, false, err
	}
	if err := t.stored(); err != nil {
		return nil, v, false, err
	}
	if _, err := t.fileAt(a, w.path); err != nil {
		return nil, v, false, err
	}
	if p := files.CheckBase(current, w.base); p != nil {
		return nil, v, false, p
	}
	next = edited(a, w.path, current)
	v = files.Append(next, v1alpha1.FileVersion{FileContent: w.content}, a.room.Spec.Retention, t.clock.Now())
	if p := t.reserve(a, next.Name, files.Grows(current, next)); p != nil {
		return nil, v, false, p
	}
	return next, v, false, nil
}

func (t *Toolset) putContent(ctx context.Context, a *access, w write) error {
	if _, err := t.blobs.Put(ctx, a.room.UID, w.bytes); err != nil {
		return t.fileProblem("writing a file", err)
	}
	return nil
}

func (t *Toolset) written(f *v1alpha1.File, v v1alpha1.FileVersion, duplicate bool) FileWritten {
	return FileWritten{
		FileID: ids.ID(f), Path: f.Spec.Path, Version: v.Version, Size: v.Size, ContentType: v.ContentType, SHA256: v.SHA256,
		Duplicate: duplicate,
	}
}
