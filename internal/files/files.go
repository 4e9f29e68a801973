package files

import (
	"slices"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
)

const (
	// MaxInline is how many bytes a file may have that is written or read within a call: 256 KiB.
	MaxInline = 256 << 10
	// UploadTTL is how long an upload may take.
	UploadTTL = time.Hour
	// URLTTL is how long the URL of a transfer is good.
	URLTTL = 15 * time.Minute
	// QuarantineTTL is how long the reason of a quarantine can be read.
	QuarantineTTL = 24 * time.Hour
	// DefaultGrace is how long deleted versions can be brought back.
	DefaultGrace = 24 * time.Hour
	// ReceiptTTL is how long the same idempotency key gives the same answer.
	ReceiptTTL = 24 * time.Hour

	defaultVersions = 20
	defaultFiles    = 10000
	defaultBytes    = 1 << 30
)

// Kept gives the versions that the room's tools can see: those that are not deleted, the newest first.
func Kept(f *v1alpha1.File) []v1alpha1.FileVersion {
	d := f.Spec.Deletion
	if d == nil {
		return f.Spec.Versions
	}
	i := slices.IndexFunc(f.Spec.Versions, func(v v1alpha1.FileVersion) bool { return v.Version <= d.ThroughVersion })
	if i < 0 {
		return f.Spec.Versions
	}
	return f.Spec.Versions[:i]
}

// Latest gives the newest version, and false when there is none to see.
func Latest(f *v1alpha1.File) (v1alpha1.FileVersion, bool) {
	kept := Kept(f)
	if len(kept) == 0 {
		return v1alpha1.FileVersion{}, false
	}
	return kept[0], true
}

// Find gives a version by its number, the latest for zero.
func Find(f *v1alpha1.File, version int64) (v1alpha1.FileVersion, bool) {
	if version == 0 {
		return Latest(f)
	}
	for _, v := range Kept(f) {
		if v.Version == version {
			return v, true
		}
	}
	return v1alpha1.FileVersion{}, false
}

// OfUpload gives the version that an upload became.
func OfUpload(f *v1alpha1.File, uploadID string) (v1alpha1.FileVersion, bool) {
	for _, v := range Kept(f) {
		if v.UploadID == uploadID {
			return v, true
		}
	}
	return v1alpha1.FileVersion{}, false
}

// Upload gives an upload that is under way or in quarantine.
func Upload(f *v1alpha1.File, id string) (v1alpha1.FileUpload, bool) {
	i := slices.IndexFunc(f.Spec.Uploads, func(u v1alpha1.FileUpload) bool { return u.ID == id })
	if i < 0 {
		return v1alpha1.FileUpload{}, false
	}
	return f.Spec.Uploads[i], true
}

// Receipt gives what was written under a key, deleted or not: a version, or an upload that is under way.
func Receipt(f *v1alpha1.File, key string) (v1alpha1.FileVersion, *v1alpha1.FileUpload, bool) {
	for i := range f.Spec.Uploads {
		if f.Spec.Uploads[i].Key == key {
			return v1alpha1.FileVersion{}, &f.Spec.Uploads[i], true
		}
	}
	for _, v := range f.Spec.Versions {
		if v.Key == key {
			return v, nil, true
		}
	}
	return v1alpha1.FileVersion{}, nil, false
}

// Holds finds a version that is this very content: what one call wrote when it is not known whether it did.
func Holds(f *v1alpha1.File, c v1alpha1.FileContent) (v1alpha1.FileVersion, bool) {
	for _, v := range f.Spec.Versions {
		if v.SHA256 == c.SHA256 && v.By == c.By && v.At.Equal(&c.At) && v.UploadID == "" {
			return v, true
		}
	}
	return v1alpha1.FileVersion{}, false
}

// Append puts a version in front of a File's others, numbers it, and drops those beyond the room's retention. It changes f.
func Append(f *v1alpha1.File, v v1alpha1.FileVersion, retention *v1alpha1.RoomRetention, now time.Time) v1alpha1.FileVersion {
	v.Version = 1
	if len(f.Spec.Versions) > 0 {
		v.Version = f.Spec.Versions[0].Version + 1
	}
	f.Spec.Versions = slices.Insert(slices.Clone(f.Spec.Versions), 0, v)
	Prune(f, retention, now)
	return v
}

// Prune drops the versions beyond the room's retention, never the latest, and tells whether there were any. What was written
// under a key stays for a day, as its receipt, while there is room. Deleted versions have a time of their own: see Collect.
func Prune(f *v1alpha1.File, retention *v1alpha1.RoomRetention, now time.Time) bool {
	limit := Versions(retention)
	deleted := int64(0)
	if d := f.Spec.Deletion; d != nil {
		deleted = d.ThroughVersion
	}
	before := len(f.Spec.Versions)
	n := 0
	f.Spec.Versions = slices.DeleteFunc(slices.Clone(f.Spec.Versions), func(v v1alpha1.FileVersion) bool {
		n++
		receipt := v.Key != "" && now.Sub(v.At.Time) < ReceiptTTL
		return n > v1alpha1.MaxFileVersions || (n > limit && v.Version > deleted && !receipt)
	})
	return len(f.Spec.Versions) < before
}

// Versions gives how many versions of a file a room keeps.
func Versions(r *v1alpha1.RoomRetention) int {
	if r == nil || r.FileVersions == 0 {
		return defaultVersions
	}
	return int(r.FileVersions)
}

// Usage is what a room's files take, deleted ones not counted.
type Usage struct {
	// Files counts those that have a version to see, or an upload under way.
	Files int64
	// Bytes of all their versions, and of the uploads under way.
	Bytes int64
}

// UsageOf gives what one File takes.
func UsageOf(f *v1alpha1.File) Usage {
	var u Usage
	for _, v := range Kept(f) {
		u.Bytes += v.Size
	}
	for _, up := range f.Spec.Uploads {
		if up.State == v1alpha1.UploadPending { // what lies in quarantine is not stored
			u.Bytes += up.Size
		}
	}
	if len(Kept(f))+len(f.Spec.Uploads) > 0 {
		u.Files = 1
	}
	return u
}

// Grows gives what a room's files take more when a File, nil for none, becomes another. It can be less than nothing: a new version
// may push out larger ones.
func Grows(before, after *v1alpha1.File) Usage {
	more := UsageOf(after)
	if before != nil {
		was := UsageOf(before)
		more.Files, more.Bytes = more.Files-was.Files, more.Bytes-was.Bytes
	}
	return more
}

// Fits refuses what would take a room beyond its limits. What makes it no larger fits always.
func Fits(limits *v1alpha1.RoomLimits, used, more Usage) *problem.Problem {
	files, bytes := int64(defaultFiles), int64(defaultBytes)
	if limits != nil && limits.Files > 0 {
		files = int64(limits.Files)
	}
	if limits != nil && limits.FileBytes > 0 {
		bytes = limits.FileBytes
	}
	if more.Files > 0 && used.Files+more.Files > files {
		return problem.New(problem.TooLarge, "the room has %d files and may have %d (limits.files): delete some first", used.Files, files)
	}
	if more.Bytes > 0 && used.Bytes+more.Bytes > bytes {
		return problem.New(problem.TooLarge,
			"the room's files have %d bytes, and with these %d more they would exceed the %d that it may have (limits.fileBytes): "+
				"delete some first", used.Bytes, more.Bytes, bytes)
	}
	return nil
}

// CheckBase refuses a write that was meant for another version than the present one. A base of zero says that there must be
// no file; nil says nothing.
func CheckBase(f *v1alpha1.File, base *int64) *problem.Problem {
	if base == nil {
		return nil
	}
	present := int64(0)
	if f != nil {
		if v, ok := Latest(f); ok {
			present = v.Version
		}
	}
	switch present {
	case *base:
		return nil
	case 0:
		return problem.New(problem.Conflict, "there is no such file, and base_version says that it has version %d: leave base_version out to create it", *base)
	default:
		return problem.New(problem.Conflict, "the present version is %d and not %d: read it, then write with base_version %d", present, *base, present)
	}
}

// Quarantine marks an upload whose bytes are not what was announced. It changes f.
func Quarantine(f *v1alpha1.File, id, reason string, now time.Time) {
	for i := range f.Spec.Uploads {
		if u := &f.Spec.Uploads[i]; u.ID == id {
			u.State, u.Reason = v1alpha1.UploadQuarantined, reason
			u.ExpiresAt.Time = now.Add(QuarantineTTL)
		}
	}
}

// DropUpload takes an upload out of a File. It changes f.
func DropUpload(f *v1alpha1.File, id string) {
	f.Spec.Uploads = slices.DeleteFunc(slices.Clone(f.Spec.Uploads), func(u v1alpha1.FileUpload) bool { return u.ID == id })
}

// Collected is what there is nothing to bring back of any more.
type Collected struct {
	// Uploads that expired, by their ids.
	Uploads []string
	// Versions counts those that were deleted long enough ago, or lie beyond the retention.
	Versions int
	// Empty says that the File holds nothing any more.
	Empty bool
	// Next is when there will be more to collect, zero for never.
	Next time.Time
}

// Collect drops what is over: uploads beyond their time, versions that were deleted a grace ago, and versions beyond the
// room's retention. It changes f, and tells what there was.
func Collect(f *v1alpha1.File, retention *v1alpha1.RoomRetention, grace time.Duration, now time.Time) Collected {
	var c Collected
	soonest := func(at time.Time) {
		if c.Next.IsZero() || at.Before(c.Next) {
			c.Next = at
		}
	}
	f.Spec.Uploads = slices.DeleteFunc(slices.Clone(f.Spec.Uploads), func(u v1alpha1.FileUpload) bool {
		if over := !now.Before(u.ExpiresAt.Time); over {
			c.Uploads = append(c.Uploads, u.ID)
			return true
		}
		soonest(u.ExpiresAt.Time)
		return false
	})
	before := len(f.Spec.Versions)
	if d := f.Spec.Deletion; d != nil {
		if over := d.At.Add(grace); now.Before(over) {
			soonest(over)
		} else {
			f.Spec.Versions = slices.Clone(Kept(f))
			f.Spec.Deletion = nil
		}
	}
	Prune(f, retention, now)
	for i, v := range f.Spec.Versions {
		if i >= Versions(retention) && v.Key != "" && f.Spec.Deletion == nil {
			soonest(v.At.Add(ReceiptTTL))
		}
	}
	c.Versions = before - len(f.Spec.Versions)
	c.Empty = len(f.Spec.Versions) == 0 && len(f.Spec.Uploads) == 0 && f.Spec.Deletion == nil
	return c
}
