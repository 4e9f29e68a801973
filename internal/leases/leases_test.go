package leases_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/leases"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// held gives a task that alice's instance s1 holds under an epoch.
func held(epoch int64) *v1alpha1.Task {
	return &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "draft", UID: "u1"},
		Status: v1alpha1.TaskStatus{
			State: v1alpha1.TaskDoing, Epoch: epoch, Claim: &v1alpha1.TaskClaim{Holder: "alice", Session: "s1"},
		},
	}
}

func TestDurationIsTheTasksElseTheRoomsElseTenMinutes(t *testing.T) {
	room := func(seconds int32) *v1alpha1.Room {
		return &v1alpha1.Room{Spec: v1alpha1.RoomSpec{LeasePolicy: &v1alpha1.LeasePolicy{DurationSeconds: seconds}}}
	}
	tests := map[string]struct {
		task int32
		room *v1alpha1.Room
		want time.Duration
	}{
		"nobody says anything":         {0, nil, 10 * time.Minute},
		"a room without a policy":      {0, &v1alpha1.Room{}, 10 * time.Minute},
		"a policy without a duration":  {0, room(0), 10 * time.Minute},
		"the room says":                {0, room(30), 30 * time.Second},
		"the task says":                {20, nil, 20 * time.Second},
		"both say, and the task's own": {20, room(30), 20 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			task := held(1)
			task.Spec.LeaseDurationSeconds = tc.task
			if got := leases.Duration(task, tc.room); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestOnExpiryIsReopenUnlessTheRoomSaysOtherwise(t *testing.T) {
	tests := map[string]struct {
		room *v1alpha1.Room
		want v1alpha1.LeaseExpiryAction
	}{
		"no room":                     {nil, v1alpha1.LeaseReopen},
		"a room without a policy":     {&v1alpha1.Room{}, v1alpha1.LeaseReopen},
		"a policy that does not say":  {&v1alpha1.Room{Spec: v1alpha1.RoomSpec{LeasePolicy: &v1alpha1.LeasePolicy{}}}, v1alpha1.LeaseReopen},
		"a policy that says to mark":  {&v1alpha1.Room{Spec: v1alpha1.RoomSpec{LeasePolicy: &v1alpha1.LeasePolicy{OnExpiry: v1alpha1.LeaseMarkStale}}}, v1alpha1.LeaseMarkStale},
		"a policy that says to open.": {&v1alpha1.Room{Spec: v1alpha1.RoomSpec{LeasePolicy: &v1alpha1.LeasePolicy{OnExpiry: v1alpha1.LeaseReopen}}}, v1alpha1.LeaseReopen},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := leases.OnExpiry(tc.room); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestANewLeaseIsTheOneOfTheClaim(t *testing.T) {
	task := held(3)
	micro := metav1.NewMicroTime(now)
	want := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: "task.draft", Labels: map[string]string{"agentrooms.dev/task": "draft"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "agentrooms.dev/v1alpha1", Kind: "Task", Name: "draft", UID: "u1", Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("alice/s1"), LeaseDurationSeconds: new(int32(30)), LeaseTransitions: new(int32(3)),
			AcquireTime: &micro, RenewTime: &micro,
		},
	}
	got := leases.New(task, 30*time.Second, now)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !leases.Current(got, task) || leases.Taken(got, task) || leases.Epoch(got) != 3 || leases.HolderOf(got) != "alice/s1" {
		t.Error("it is not the current one")
	}
	if got := leases.ExpiresAt(got); !got.Equal(now.Add(30 * time.Second)) {
		t.Errorf("it runs out at %v", got)
	}
}

func TestALeaseThatHoldsNothing(t *testing.T) {
	l := &coordinationv1.Lease{}
	if leases.Epoch(l) != 0 || leases.HolderOf(l) != "" || !leases.ExpiresAt(l).IsZero() || leases.Current(l, held(1)) || leases.Taken(l, held(1)) {
		t.Error("it is taken for something")
	}
}

// A renewal is by the holder of the present epoch, and is refused where the lease was taken away or another claim came
// after it.
func TestRenewed(t *testing.T) {
	current := leases.New(held(3), 30*time.Second, now)
	stolen := current.DeepCopy()
	stolen.Spec.HolderIdentity = new("mallory/s1")
	later := now.Add(20 * time.Second)
	tests := map[string]struct {
		lease    *coordinationv1.Lease
		want     bool
		acquired time.Time
	}{
		"the lease of the claim":                       {current, true, now},
		"one that was taken away":                      {leases.Cleared(current), false, time.Time{}},
		"one of a later claim":                         {leases.New(held(5), 30*time.Second, now), false, time.Time{}},
		"one of a later claim that was taken away":     {leases.Cleared(leases.New(held(5), 30*time.Second, now)), false, time.Time{}},
		"one of an earlier claim is taken over":        {leases.New(held(1), 30*time.Second, now), true, later},
		"so is its tombstone":                          {leases.Cleared(leases.New(held(1), 30*time.Second, now)), true, later},
		"and one that somebody wrote their name into":  {stolen, true, later},
		"one that was never filled in is taken over":   {&coordinationv1.Lease{}, true, later},
		"one whose holder is missing was taken, so no": {&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{LeaseTransitions: new(int32(3))}}, false, time.Time{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.lease.DeepCopy()
			got, ok := leases.Renewed(tc.lease, held(3), time.Minute, later)
			if diff := cmp.Diff(before, tc.lease); diff != "" {
				t.Errorf("the lease itself was changed (-before +after):\n%s", diff)
			}
			if ok != tc.want {
				t.Fatalf("renewed: %v, want %v", ok, tc.want)
			}
			if !ok {
				if got != nil {
					t.Errorf("refused, and still gives %v", got)
				}
				return
			}
			if !leases.Current(got, held(3)) || !leases.ExpiresAt(got).Equal(later.Add(time.Minute)) || !got.Spec.AcquireTime.Time.Equal(tc.acquired) {
				t.Errorf("got %+v", got.Spec)
			}
		})
	}
}

// Expiry takes the lease away; after that the old holder cannot renew, and the next claim can.
func TestATombstoneIsOfItsEpochOnly(t *testing.T) {
	l := leases.Cleared(leases.New(held(1), 30*time.Second, now))
	if !leases.Taken(l, held(1)) || leases.Current(l, held(1)) {
		t.Error("the lease of epoch 1 is not taken")
	}
	if leases.Taken(l, held(3)) {
		t.Error("the tombstone of epoch 1 takes epoch 3 too")
	}
	if !leases.ExpiresAt(l).Equal(now.Add(30 * time.Second)) {
		t.Error("clearing changes more than the holder")
	}
}

func TestExpiryIsJudgedByTheObserversClockAlone(t *testing.T) {
	const d = 30 * time.Second
	hour := time.Hour
	var o leases.Observer
	for _, skew := range []time.Duration{0, hour, -hour} {
		l := leases.New(held(1), d, now.Add(skew)) // by the holder's clock
		key := skew.String()
		steps := []struct {
			at   time.Duration
			want time.Duration
		}{{0, d}, {10 * time.Second, 20 * time.Second}, {d, 0}, {d + time.Second, -time.Second}}
		for _, s := range steps {
			if got := o.Remaining(key, l, now.Add(s.at)); got != s.want {
				t.Errorf("skew %v, after %v: %v remain, want %v", skew, s.at, got, s.want)
			}
		}
		renewed, _ := leases.Renewed(l, held(1), d, now.Add(skew+time.Minute))
		if got := o.Remaining(key, renewed, now.Add(time.Minute)); got != d {
			t.Errorf("skew %v: a renewal gives %v, want %v", skew, got, d)
		}
	}
}

func TestWhatCountsAsARenewal(t *testing.T) {
	base := leases.New(held(1), 30*time.Second, now)
	change := func(f func(*coordinationv1.LeaseSpec)) *coordinationv1.Lease {
		l := base.DeepCopy()
		f(&l.Spec)
		return l
	}
	earlier := metav1.NewMicroTime(now.Add(-time.Hour))
	tests := map[string]struct {
		lease *coordinationv1.Lease
		want  time.Duration
	}{
		"nothing new":                           {base, 10 * time.Second},
		"a renewTime that went back":            {change(func(s *coordinationv1.LeaseSpec) { s.RenewTime = &earlier }), 30 * time.Second},
		"a renewTime that is gone":              {change(func(s *coordinationv1.LeaseSpec) { s.RenewTime = nil }), 30 * time.Second},
		"another epoch at the same instant":     {change(func(s *coordinationv1.LeaseSpec) { s.LeaseTransitions = new(int32(3)) }), 30 * time.Second},
		"a longer duration":                     {change(func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = new(int32(60)) }), 40 * time.Second},
		"a duration that is gone is the usual":  {change(func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = nil }), leases.DefaultDuration - 20*time.Second},
		"another holder's name changes nothing": {change(func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = new("mallory") }), 10 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var o leases.Observer
			o.Remaining("key", base, now)
			if got := o.Remaining("key", tc.lease, now.Add(20*time.Second)); got != tc.want {
				t.Errorf("%v remain, want %v", got, tc.want)
			}
		})
	}
}

func TestTheObserverKeepsKeysApartAndForgets(t *testing.T) {
	var o leases.Observer
	l := leases.New(held(1), 30*time.Second, now)
	o.Remaining("a", l, now)
	if got := o.Remaining("b", l, now.Add(20*time.Second)); got != 30*time.Second {
		t.Errorf("what was seen under a counts for b: %v remain", got)
	}
	if o.Len() != 2 {
		t.Errorf("%d leases are observed, want 2", o.Len())
	}
	o.Forget("a")
	o.Forget("a")
	if o.Len() != 1 {
		t.Errorf("%d leases are observed, want 1", o.Len())
	}
	if got := o.Remaining("a", l, now.Add(25*time.Second)); got != 30*time.Second {
		t.Errorf("a was not forgotten: %v remain", got)
	}
}

func TestTheObserverMayBeUsedByMany(t *testing.T) {
	var (
		o  leases.Observer
		wg sync.WaitGroup
	)
	for i := range 8 {
		wg.Go(func() {
			for n := range 200 {
				key := string(rune('a' + (i+n)%4))
				o.Remaining(key, leases.New(held(int64(n)), time.Minute, now), now)
				if n%10 == 0 {
					o.Forget(key)
				}
				o.Len()
			}
		})
	}
	wg.Wait()
	if n := o.Len(); n > 4 {
		t.Errorf("%d leases are observed, want at most 4", n)
	}
}
