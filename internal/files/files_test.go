package files_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/problem"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// fileOf makes a File with versions of ten bytes, the newest first.
func fileOf(numbers ...int64) *v1alpha1.File {
	f := &v1alpha1.File{}
	for _, n := range numbers {
		f.Spec.Versions = append(f.Spec.Versions, v1alpha1.FileVersion{
			Version: n, FileContent: v1alpha1.FileContent{SHA256: fmt.Sprint("sha of ", n), Size: 10, At: metav1.NewMicroTime(now.Add(-time.Hour))},
		})
	}
	return f
}

func deletedThrough(f *v1alpha1.File, version int64, ago time.Duration) *v1alpha1.File {
	f.Spec.Deletion = &v1alpha1.FileDeletion{ThroughVersion: version, At: metav1.NewMicroTime(now.Add(-ago))}
	return f
}

func upload(id string, state v1alpha1.UploadState, left time.Duration) v1alpha1.FileUpload {
	return v1alpha1.FileUpload{ID: id, State: state, ExpiresAt: metav1.NewMicroTime(now.Add(left)), FileContent: v1alpha1.FileContent{Size: 100}}
}

func numbers(versions []v1alpha1.FileVersion) []int64 {
	list := []int64{}
	for _, v := range versions {
		list = append(list, v.Version)
	}
	return list
}

func TestDeletedVersionsAreNotToBeSeen(t *testing.T) {
	f := deletedThrough(fileOf(4, 3, 2, 1), 2, 0)
	if got := numbers(files.Kept(f)); !slices.Equal(got, []int64{4, 3}) {
		t.Errorf("%v are kept", got)
	}
	if _, ok := files.Find(f, 2); ok {
		t.Error("a deleted version is found")
	}
	if v, ok := files.Find(f, 0); !ok || v.Version != 4 {
		t.Errorf("the latest is %+v", v)
	}
	if _, ok := files.Latest(deletedThrough(fileOf(2, 1), 2, 0)); ok {
		t.Error("of a deleted file there is a latest version")
	}
}

func TestANewVersionPushesOutTheOldest(t *testing.T) {
	keep := func(n int32) *v1alpha1.RoomRetention { return &v1alpha1.RoomRetention{FileVersions: n} }
	keyed := fileOf(3, 2, 1)
	keyed.Spec.Versions[2].Key = "k"
	many := make([]int64, v1alpha1.MaxFileVersions)
	for i := range many {
		many[i] = int64(len(many) - i)
	}
	full := fileOf(many...)
	for i := range full.Spec.Versions {
		full.Spec.Versions[i].Key = "k"
	}
	for name, tc := range map[string]struct {
		file      *v1alpha1.File
		retention *v1alpha1.RoomRetention
		want      []int64
	}{
		"the first":                         {fileOf(), keep(1), []int64{1}},
		"within the retention":              {fileOf(2, 1), keep(3), []int64{3, 2, 1}},
		"beyond the retention":              {fileOf(3, 2, 1), keep(2), []int64{4, 3}},
		"with a retention of one":           {fileOf(3), keep(1), []int64{4}},
		"where nothing is said":             {fileOf(2, 1), nil, []int64{3, 2, 1}},
		"numbers are not used again":        {deletedThrough(fileOf(7), 7, 0), keep(5), []int64{8, 7}},
		"deleted ones have their own time":  {deletedThrough(fileOf(3, 2, 1), 3, 0), keep(1), []int64{4, 3, 2, 1}},
		"receipts stay a day":               {keyed, keep(2), []int64{4, 3, 1}},
		"receipts stay while there is room": {full, keep(2), append([]int64{v1alpha1.MaxFileVersions + 1}, many[:v1alpha1.MaxFileVersions-1]...)},
	} {
		t.Run(name, func(t *testing.T) {
			v := files.Append(tc.file, v1alpha1.FileVersion{}, tc.retention, now)
			if got := numbers(tc.file.Spec.Versions); !slices.Equal(got, tc.want) || v.Version != tc.want[0] {
				t.Errorf("version %d is added to make %v, want %v", v.Version, got, tc.want)
			}
		})
	}
	if files.Prune(keyed, keep(2), now.Add(files.ReceiptTTL)); !slices.Equal(numbers(keyed.Spec.Versions), []int64{4, 3}) {
		t.Errorf("a day later there are %v", numbers(keyed.Spec.Versions))
	}
}

func TestWhatARoomsFilesTake(t *testing.T) {
	f := deletedThrough(fileOf(3, 2, 1), 1, 0)
	f.Spec.Uploads = []v1alpha1.FileUpload{upload("a", v1alpha1.UploadPending, time.Hour), upload("b", v1alpha1.UploadQuarantined, time.Hour)}
	if got := files.UsageOf(f); got != (files.Usage{Files: 1, Bytes: 120}) {
		t.Errorf("two versions and an upload under way take %+v", got)
	}
	if got := files.UsageOf(deletedThrough(fileOf(1), 1, 0)); got != (files.Usage{}) {
		t.Errorf("a deleted file takes %+v", got)
	}
	if got := files.Grows(fileOf(2, 1), fileOf(3)); got != (files.Usage{Bytes: -10}) {
		t.Errorf("with one version less a file grows by %+v", got)
	}
	if got := files.Grows(nil, fileOf(1)); got != (files.Usage{Files: 1, Bytes: 10}) {
		t.Errorf("a new file grows by %+v", got)
	}
}

func TestARoomsLimitsAreHeld(t *testing.T) {
	limits := &v1alpha1.RoomLimits{Files: 2, FileBytes: 100}
	for name, tc := range map[string]struct {
		limits     *v1alpha1.RoomLimits
		used, more files.Usage
		says       []string
	}{
		"just as many files":             {limits, files.Usage{Files: 1}, files.Usage{Files: 1}, nil},
		"one file more":                  {limits, files.Usage{Files: 2}, files.Usage{Files: 1}, []string{"2 files", "may have 2", "limits.files"}},
		"another version":                {limits, files.Usage{Files: 2, Bytes: 90}, files.Usage{Bytes: 10}, nil},
		"one byte more":                  {limits, files.Usage{Files: 2, Bytes: 90}, files.Usage{Bytes: 11}, []string{"90", "11", "100", "limits.fileBytes"}},
		"less, in a room that has more":  {limits, files.Usage{Files: 5, Bytes: 500}, files.Usage{Bytes: -1}, nil},
		"nothing, in such a room":        {limits, files.Usage{Files: 5, Bytes: 500}, files.Usage{}, nil},
		"just as much as where none say": {nil, files.Usage{Files: 9999}, files.Usage{Files: 1, Bytes: 1 << 30}, nil},
		"more than where none say":       {nil, files.Usage{}, files.Usage{Bytes: 1<<30 + 1}, []string{"1073741824"}},
		"more files than where none say": {nil, files.Usage{Files: 10000}, files.Usage{Files: 1}, []string{"10000"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := files.Fits(tc.limits, tc.used, tc.more)
			if (p != nil) != (tc.says != nil) || (p != nil && p.Code != problem.TooLarge) {
				t.Fatalf("gives %v", p)
			}
			for _, words := range tc.says {
				if !strings.Contains(p.Message, words) {
					t.Errorf("%q does not say %s", p.Message, words)
				}
			}
		})
	}
}

func TestABaseVersionIsThePresentOneOrAConflict(t *testing.T) {
	for name, tc := range map[string]struct {
		file *v1alpha1.File
		base *int64
		says string
	}{
		"nothing said":            {fileOf(3), nil, ""},
		"the present one":         {fileOf(3, 2), new(int64(3)), ""},
		"one before":              {fileOf(3, 2), new(int64(2)), "version is 3"},
		"one to come":             {fileOf(3, 2), new(int64(4)), "version is 3"},
		"none, and there is none": {nil, new(int64(0)), ""},
		"none, and it is deleted": {deletedThrough(fileOf(3), 3, 0), new(int64(0)), ""},
		"none, and there is one":  {fileOf(1), new(int64(0)), "version is 1"},
		"one, and there is none":  {nil, new(int64(1)), "no such file"},
		"one that was deleted":    {deletedThrough(fileOf(3), 3, 0), new(int64(3)), "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			p := files.CheckBase(tc.file, tc.base)
			if (p == nil) != (tc.says == "") || (p != nil && (p.Code != problem.Conflict || !strings.Contains(p.Message, tc.says))) {
				t.Errorf("gives %v, want it to say %q", p, tc.says)
			}
		})
	}
}

func TestACallFindsWhatItWroteItself(t *testing.T) {
	f := fileOf(2, 1)
	mine := f.Spec.Versions[1].FileContent
	if v, ok := files.Holds(f, mine); !ok || v.Version != 1 {
		t.Errorf("finds %+v", v)
	}
	later := mine
	later.At = metav1.NewMicroTime(mine.At.Add(time.Microsecond))
	other := mine
	other.By.Plate = "somebody"
	for name, c := range map[string]v1alpha1.FileContent{"at another time": later, "by another agent": other} {
		if v, ok := files.Holds(f, c); ok {
			t.Errorf("the same content %s is taken for %+v", name, v)
		}
	}
}

func TestWhatIsOverIsCollected(t *testing.T) {
	const grace = 24 * time.Hour
	pending := func(left time.Duration) *v1alpha1.File {
		f := fileOf(1)
		f.Spec.Uploads = []v1alpha1.FileUpload{upload("u", v1alpha1.UploadPending, left)}
		return f
	}
	only := &v1alpha1.File{}
	only.Spec.Uploads = []v1alpha1.FileUpload{upload("u", v1alpha1.UploadQuarantined, 0)}
	for name, tc := range map[string]struct {
		file *v1alpha1.File
		want files.Collected
		left []int64
	}{
		"nothing":                         {fileOf(2, 1), files.Collected{}, []int64{2, 1}},
		"an upload that has time":         {pending(time.Minute), files.Collected{Next: now.Add(time.Minute)}, []int64{1}},
		"an upload that has none":         {pending(0), files.Collected{Uploads: []string{"u"}}, []int64{1}},
		"all there is":                    {only, files.Collected{Uploads: []string{"u"}, Empty: true}, []int64{}},
		"deleted a moment ago":            {deletedThrough(fileOf(1), 1, time.Hour), files.Collected{Next: now.Add(grace - time.Hour)}, []int64{1}},
		"deleted a grace ago":             {deletedThrough(fileOf(2, 1), 2, grace), files.Collected{Versions: 2, Empty: true}, []int64{}},
		"deleted, and written since":      {deletedThrough(fileOf(3, 2, 1), 2, grace), files.Collected{Versions: 2}, []int64{3}},
		"beyond the retention of another": {fileOf(5, 4, 3, 2), files.Collected{Versions: 1}, []int64{5, 4, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			got := files.Collect(tc.file, &v1alpha1.RoomRetention{FileVersions: 3}, grace, now)
			if !slices.Equal(got.Uploads, tc.want.Uploads) || got.Versions != tc.want.Versions || got.Empty != tc.want.Empty || !got.Next.Equal(tc.want.Next) {
				t.Errorf("gives %+v, want %+v", got, tc.want)
			}
			if left := numbers(tc.file.Spec.Versions); !slices.Equal(left, tc.left) {
				t.Errorf("leaves %v, want %v", left, tc.left)
			}
		})
	}
}
