package rooms

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// The states of an upload, as tools name them.
const (
	uploadPending     = "pending"
	uploadAvailable   = "available"
	uploadQuarantined = "quarantined"
)

func (t *Toolset) shareFile(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	path, content, err := t.readShare(c, args)
	if err != nil {
		return nil, err
	}
	if content.Key != "" {
		if f, ok := t.view.FileByKey(content.Key); ok {
			return t.sharedBefore(ctx, a, f, content)
		}
	}
	now := t.clock.Now()
	upload := v1alpha1.FileUpload{
		FileContent: content, ID: ulid.Make().String(), State: v1alpha1.UploadPending,
		ExpiresAt: metav1.NewMicroTime(now.Add(files.UploadTTL).Truncate(time.Microsecond)),
	}
	again := false
	file, err := t.changeFile(ctx, a, a.fileName(path), func(current *v1alpha1.File) (*v1alpha1.File, error) {
		next, known, err := t.announced(a, current, path, upload)
		again = known
		return next, err
	})
	if err != nil {
		return nil, err
	}
	if again {
		return t.sharedBefore(ctx, a, file, content)
	}
	t.metrics.files.WithLabelValues("share").Inc()
	return t.transfer(ctx, a, upload, false)
}

func (t *Toolset) readShare(c *toolset.Caller, args toolset.Args) (string, v1alpha1.FileContent, error) {
	path, p := files.CleanPath("filename", args.String("filename"))
	if p != nil {
		return "", v1alpha1.FileContent{}, p
	}
	sha := strings.ToLower(args.String("sha256"))
	if !isHex(sha) {
		return "", v1alpha1.FileContent{}, problem.Invalid("sha256", "must be 64 hexadecimal digits")
	}
	kind, p := files.ContentType(args.String("content_type"), nil)
	if p != nil {
		return "", v1alpha1.FileContent{}, p
	}
	content := t.content(c, sha, args.Int("size_bytes", 0), kind)
	if key := args.String("idempotency_key"); key != "" {
		content.Key = ids.Digest("share_file", c.Plate, args.String("room"), key)
		content.Payload = ids.Digest(path, sha, kind, strconv.FormatInt(content.Size, 10))
	}
	return path, content, nil
}

// announced gives the File with one upload more, or says that an earlier call with the same key announced it.
func (t *Toolset) announced(a *access, current *v1alpha1.File, path string, up v1alpha1.FileUpload) (*v1alpha1.File, bool, error) {
	if current != nil {
		if _, own := files.Upload(current, up.ID); own { // by an attempt whose outcome was not known
			return nil, false, nil
		}
	}
	if current != nil && up.Key != "" {
		if _, _, known := files.Receipt(current, up.Key); known {
			return nil, true, nil
		}
	}
	if err := a.writable(); err != nil {
		return nil, false, err
	}
	if err := t.stored(); err != nil {
		return nil, false, err
	}
	if _, err := t.fileAt(a, path); err != nil {
		return nil, false, err
	}
	if current != nil && len(current.Spec.Uploads) >= v1alpha1.MaxFileUploads {
		return nil, false, problem.New(problem.Conflict, "%d uploads of this file are under way: complete one first, or wait until one expires (at %s)",
			len(current.Spec.Uploads), stamp(soonestEnd(current.Spec.Uploads)))
	}
	next := edited(a, path, current)
	next.Spec.Uploads = append(slices.Clone(next.Spec.Uploads), up)
	if p := t.reserve(a, next.Name, files.Grows(current, next)); p != nil {
		return nil, false, p
	}
	return next, false, nil
}

func soonestEnd(list []v1alpha1.FileUpload) time.Time {
	end := list[0].ExpiresAt.Time
	for _, u := range list {
		if u.ExpiresAt.Time.Before(end) {
			end = u.ExpiresAt.Time
		}
	}
	return end
}

// sharedBefore answers a keyed call that was carried out before: with a fresh URL while the upload is under way.
func (t *Toolset) sharedBefore(ctx context.Context, a *access, f *v1alpha1.File, content v1alpha1.FileContent) (any, error) {
	v, up, ok := files.Receipt(f, content.Key)
	switch {
	case ok && up != nil && up.Payload == content.Payload && up.State == v1alpha1.UploadPending:
		return t.transfer(ctx, a, *up, true)
	case ok && up != nil && up.Payload == content.Payload:
		return FileShared{FileID: up.ID, Headers: map[string]string{}, Method: "PUT", Status: uploadQuarantined, Duplicate: true}, nil
	case ok && up == nil && v.Payload == content.Payload:
		return FileShared{FileID: v.UploadID, Headers: map[string]string{}, Method: "PUT", Status: uploadAvailable, Duplicate: true}, nil
	}
	return nil, problem.New(problem.IdempotencyConflict, "this idempotency_key was used for another file: use a new key for new content")
}

// transfer gives where the bytes of an upload go.
func (t *Toolset) transfer(ctx context.Context, a *access, up v1alpha1.FileUpload, again bool) (any, error) {
	if err := t.stored(); err != nil {
		return nil, err
	}
	ttl := min(files.URLTTL, up.ExpiresAt.Sub(t.clock.Now()))
	if ttl < time.Second { // no URL lasts shorter
		return nil, problem.New(problem.NotFound, "the upload has expired: share the file again, with a new key")
	}
	target, err := t.blobs.UploadURL(ctx, a.room.UID, up.ID, expectOf(up), ttl)
	if err != nil {
		return nil, t.fileProblem("signing an upload", err)
	}
	return FileShared{
		FileID: up.ID, UploadURL: target.URL, Method: "PUT", Headers: target.Headers, ExpiresAt: stamp(target.ExpiresAt),
		Status: uploadPending, Duplicate: again,
	}, nil
}

func expectOf(up v1alpha1.FileUpload) blobs.Expect {
	return blobs.Expect{SHA256: up.SHA256, Size: up.Size, ContentType: up.ContentType}
}

func (t *Toolset) completeUpload(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	found, err := t.fileByID(ctx, c, args.String("file_id"))
	if err != nil {
		return nil, err
	}
	if found.upload == "" {
		return nil, problem.Invalid("file_id", "must be the one that share_file gave")
	}
	if out, ok := completed(found.file, found.upload); ok {
		return out, nil
	}
	up, ok := files.Upload(found.file, found.upload)
	switch a := found.access; {
	case !ok:
		return nil, problem.New(problem.NotFound, "the file was deleted")
	case up.By.Plate != c.Plate:
		return nil, problem.New(problem.Forbidden, "only the agent that shared the file can complete the upload")
	case !t.clock.Now().Before(up.ExpiresAt.Time):
		return nil, problem.New(problem.NotFound, "the upload has expired: share the file again")
	default:
		if err := a.writable(); err != nil {
			return nil, err
		}
	}
	if err := t.stored(); err != nil {
		return nil, err
	}
	verdict, err := t.blobs.Complete(ctx, found.access.room.UID, up.ID, expectOf(up))
	if err != nil {
		return nil, t.fileProblem("checking an upload", err)
	}
	if verdict.Missing {
		return t.notThere(ctx, found)
	}
	return t.settleUpload(ctx, found, verdict)
}

// notThere answers about an upload without bytes: nobody sent them yet, or they are gone since another call settled it, which the
// view may not show yet.
func (t *Toolset) notThere(ctx context.Context, found foundFile) (any, error) {
	if err := t.refreshFile(ctx, found.access, found.file.Name); err != nil {
		return nil, err
	}
	if f, ok := t.view.File(found.file.Namespace, found.file.Name); ok {
		if out, settled := completed(f, found.upload); settled {
			return out, nil
		}
	}
	return nil, problem.New(problem.UploadNotComplete, "the bytes are not there yet: PUT them to upload_url, then call this again").
		WithHint("share_file with the same idempotency_key gives a fresh URL")
}

// settleUpload makes a version of an upload whose bytes are what was announced, and puts any other into quarantine.
func (t *Toolset) settleUpload(ctx context.Context, found foundFile, verdict blobs.Verdict) (any, error) {
	file, err := t.changeFile(ctx, found.access, found.file.Name, func(current *v1alpha1.File) (*v1alpha1.File, error) {
		if current == nil {
			return nil, problem.New(problem.NotFound, "the file was deleted")
		}
		if _, done := completed(current, found.upload); done {
			return nil, nil
		}
		up, ok := files.Upload(current, found.upload)
		if !ok {
			return nil, problem.New(problem.NotFound, "the file was deleted")
		}
		next := current.DeepCopy()
		if !verdict.OK {
			files.Quarantine(next, up.ID, verdict.Reason, t.clock.Now())
			return next, nil
		}
		content := up.FileContent
		content.At = metav1.NewMicroTime(t.clock.Now().Truncate(time.Microsecond))
		files.DropUpload(next, up.ID)
		files.Append(next, v1alpha1.FileVersion{FileContent: content, UploadID: up.ID}, found.access.room.Spec.Retention, t.clock.Now())
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	out, ok := completed(file, found.upload)
	if !ok {
		return nil, problem.New(problem.NotFound, "the file was deleted")
	}
	t.metrics.files.WithLabelValues(out.Status).Inc()
	if out.Status == uploadAvailable {
		t.metrics.fileBytes.WithLabelValues("upload").Add(float64(out.Size))
	}
	// The bytes are content now, or nobody's. What is not dropped here is swept later.
	_ = t.blobs.DropUpload(ctx, found.access.room.UID, found.upload)
	return out, nil
}

// completed gives the answer about an upload that is settled.
func completed(f *v1alpha1.File, upload string) (FileCompleted, bool) {
	if v, ok := files.OfUpload(f, upload); ok {
		return FileCompleted{
			FileID: upload, Status: uploadAvailable, Path: f.Spec.Path, Version: v.Version, Size: v.Size, SHA256: v.SHA256,
		}, true
	}
	if up, ok := files.Upload(f, upload); ok && up.State == v1alpha1.UploadQuarantined {
		return FileCompleted{FileID: upload, Status: uploadQuarantined, Size: up.Size, SHA256: up.SHA256, Reason: up.Reason}, true
	}
	return FileCompleted{}, false
}

func (t *Toolset) fetchFile(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	found, err := t.fileByID(ctx, c, args.String("file_id"))
	if err != nil {
		return nil, err
	}
	v, err := versionOf(found, 0)
	if err != nil {
		return nil, err
	}
	if err := t.stored(); err != nil {
		return nil, err
	}
	source, err := t.blobs.DownloadURL(ctx, found.access.room.UID, v.SHA256, files.Base(found.file.Spec.Path), v.ContentType, files.URLTTL)
	if err != nil {
		return nil, t.fileProblem("signing a download", err)
	}
	t.metrics.files.WithLabelValues("fetch").Inc()
	return FileFetched{
		FileID: args.String("file_id"), DownloadURL: source.URL, Headers: source.Headers, ExpiresAt: stamp(source.ExpiresAt),
		ContentType: v.ContentType, Size: v.Size, SHA256: v.SHA256, Version: v.Version,
	}, nil
}
