package task

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestClaimGetsLease(t *testing.T) {
	s := newStage(t)
	task := s.held("work", "cc")
	lease := s.lease("work")
	if lease == nil || !leases.Current(lease, task) {
		t.Fatalf("the claim has no lease of its own: %+v", lease)
	}
	if got := *lease.Spec.LeaseDurationSeconds; got != 60 {
		t.Errorf("the lease lasts %d s, want the room's 60", got)
	}
	res, err := s.once("work")
	s.must(err)
	if want := time.Minute + margin; res.RequeueAfter != want {
		t.Errorf("looking again after %s, want %s", res.RequeueAfter, want)
	}
	if len(conditionsOf(task)) != 2 {
		t.Errorf("conditions %v, want Ready and DependenciesMet: a lease that lives costs no write", conditionsOf(task))
	}
}

func TestExpiryReopens(t *testing.T) {
	s := newStage(t)
	held := s.held("work", "cc")
	s.clock.SetTime(s.clock.Now().Add(time.Minute - time.Millisecond))
	if got := s.settle("work").Status.State; got != v1alpha1.TaskDoing {
		t.Fatalf("reopened before the lease ran out: %s", got)
	}
	s.clock.SetTime(s.clock.Now().Add(2 * time.Millisecond))
	task := s.settle("work")
	if task.Status.State != v1alpha1.TaskTodo || task.Status.Claim != nil || task.Status.Epoch != held.Status.Epoch+1 {
		t.Fatalf("not reopened: %+v", task.Status)
	}
	if last := task.Status.LastClaim; last.Ended != v1alpha1.ClaimExpired || last.Holder != s.plate("cc") || last.Epoch != held.Status.Epoch {
		t.Errorf("last claim %+v, want cc's, expired", last)
	}
	events := s.events.all()
	if len(events) != 1 || !strings.HasPrefix(events[0], "Warning LeaseExpired Reopen: "+s.plate("cc")+"/s1 ") {
		t.Errorf("events %q, want one that names the former holder", events)
	}
	if err := s.renew(held, s.lease("work")); err == nil {
		t.Error("the former holder renewed after the expiry")
	}
	lease := s.lease("work")
	if lease == nil || leases.HolderOf(lease) != "" {
		t.Fatalf("no tombstone is left for late renewals: %+v", lease)
	}

	// The next claim takes the tombstone over.
	again := s.claim("work", "dd", "s2")
	s.settle("work")
	if lease := s.lease("work"); !leases.Current(lease, again) {
		t.Errorf("the lease is not of the new claim: %+v", lease.Spec)
	}
}

func TestEndOfClaimRemovesLease(t *testing.T) {
	s := newStage(t)
	task := s.held("work", "cc")
	out, p := tasks.SetStatus(task, tasks.Actor{Plate: s.plate("cc"), Session: "s1"},
		tasks.Change{To: v1alpha1.TaskDone, Summary: "ok"}, s.clock.Now())
	if p != nil {
		t.Fatal(p)
	}
	task.Status = *out.Status
	s.must(s.client.Status().Update(t.Context(), task))
	s.settle("work")
	if lease := s.lease("work"); lease != nil {
		t.Errorf("the lease of a finished task is still there: %+v", lease.Spec)
	}
	if s.r.observer.Len() != 0 {
		t.Error("a lease that is gone is still observed")
	}
}

// TestRenewalRacesExpiry lets a renewal come at each point of an expiry. Either it fails, or the task stays with its holder.
func TestRenewalRacesExpiry(t *testing.T) {
	for _, point := range []string{"before", writeLease, writeStatus, "after"} {
		t.Run(strings.ReplaceAll(point, " ", "-"), func(t *testing.T) {
			s := newStage(t)
			held := s.held("work", "cc")
			remembered := s.lease("work")
			s.clock.SetTime(s.clock.Now().Add(2 * time.Minute))
			var renewal error
			renew := func() { renewal = s.renew(held, remembered) }
			s.hooks.before = func(write string) error {
				if write == point {
					renew()
				}
				return nil
			}
			if point == "before" {
				renew()
			}
			_, err := s.once("work")
			if err != nil && !apierrors.IsConflict(err) {
				t.Fatal(err)
			}
			if point == "after" {
				renew()
			}
			s.hooks.before = nil
			s.awaitLease("work")
			task := s.settle("work")
			renewed, stayed := renewal == nil, task.Status.State == v1alpha1.TaskDoing
			if renewed != stayed {
				t.Errorf("renewed %t (%v), and the task stayed with its holder %t", renewed, renewal, stayed)
			}
			if wantRenewed := point == "before" || point == writeLease; renewed != wantRenewed {
				t.Errorf("renewed %t, want %t", renewed, wantRenewed)
			}
		})
	}
}

// TestCrashDuringExpiry stops the reconciler before each of its writes, and lets another one go on that remembers nothing.
func TestCrashDuringExpiry(t *testing.T) {
	for _, point := range []string{writeLease, writeStatus} {
		t.Run(strings.ReplaceAll(point, " ", "-"), func(t *testing.T) {
			s := newStage(t)
			s.held("work", "cc")
			s.clock.SetTime(s.clock.Now().Add(2 * time.Minute))
			crash := errors.New("crash")
			s.hooks.before = func(write string) error {
				if write == point {
					return crash
				}
				return nil
			}
			if _, err := s.once("work"); !errors.Is(err, crash) {
				t.Fatalf("got %v", err)
			}
			if len(s.events.all()) != 0 {
				t.Error("an event was sent for what was not written")
			}
			s.hooks.before = nil
			s.restart()
			task := s.settle("work")
			if cleared := point == writeStatus; cleared != (task.Status.State == v1alpha1.TaskTodo) {
				t.Errorf("right after the restart the task is %s", task.Status.State)
			}
			s.clock.SetTime(s.clock.Now().Add(2 * time.Minute))
			if task = s.settle("work"); task.Status.State != v1alpha1.TaskTodo {
				t.Errorf("the expiry was not finished: %s", task.Status.State)
			}
			if n := len(s.events.all()); n != 1 {
				t.Errorf("%d events, want 1", n)
			}
		})
	}
}

func TestMarkStale(t *testing.T) {
	s := newStage(t)
	room := &v1alpha1.Room{}
	s.must(s.env.Client.Get(t.Context(), s.key("lab"), room))
	room.Spec.LeasePolicy.OnExpiry = v1alpha1.LeaseMarkStale
	s.must(s.client.Update(t.Context(), room))
	held := s.held("work", "cc")
	s.clock.SetTime(s.clock.Now().Add(2 * time.Minute))

	task := s.settle("work")
	if task.Status.State != v1alpha1.TaskDoing || conditionsOf(task)[v1alpha1.LeaseLiveCondition] != "False Expired" {
		t.Fatalf("%s %v, want Doing and LeaseLive False", task.Status.State, conditionsOf(task))
	}
	if res, err := s.once("work"); err != nil || res.RequeueAfter != 0 {
		t.Errorf("a stale task is polled: %v %v", res, err)
	}
	if leases.HolderOf(s.lease("work")) == "" {
		t.Error("the lease was taken away")
	}
	s.must(s.renew(held, s.lease("work")))
	s.awaitLease("work")
	if task = s.settle("work"); conditionsOf(task)[v1alpha1.LeaseLiveCondition] != "True Held" {
		t.Errorf("%v after a renewal, want LeaseLive True", conditionsOf(task))
	}

	s.clock.SetTime(s.clock.Now().Add(2 * time.Minute))
	s.settle("work")
	room.Spec.LeasePolicy.OnExpiry = v1alpha1.LeaseReopen
	s.must(s.client.Update(t.Context(), room))
	if task = s.settle("work"); task.Status.State != v1alpha1.TaskTodo || conditionsOf(task)[v1alpha1.LeaseLiveCondition] != "" {
		t.Errorf("%s %v after the room wants stale tasks reopened", task.Status.State, conditionsOf(task))
	}
	if n := len(s.events.all()); n != 3 {
		t.Errorf("%d events, want 3: %q", n, s.events.all())
	}
}

func TestLeasesThatAreNotOurs(t *testing.T) {
	t.Run("of a task that had the name before", func(t *testing.T) {
		s := newStage(t)
		s.create(testenv.Task(s.ns, "lab", "work", "said"))
		s.settle("work")
		before := s.task("work")
		before.UID, before.Status.Epoch, before.Status.Claim = "another", 7, &v1alpha1.TaskClaim{Holder: "X"}
		s.create(leases.New(before, time.Minute, time.Now()))
		task := s.claim("work", "cc", "s1")
		s.settle("work")
		if l := s.lease("work"); !leases.Current(l, task) {
			t.Errorf("lease %+v, want the claim's", l)
		}
	})
	t.Run("without its label", func(t *testing.T) {
		s := newStage(t)
		s.create(testenv.Task(s.ns, "lab", "work", "said"))
		s.settle("work")
		task := s.claim("work", "cc", "s1")
		bare := leases.New(task, time.Minute, time.Now())
		bare.Labels = nil
		s.env.Create(t, bare)
		// The cache of the manager would not have it. This one is a moment behind at most.
		if _, err := s.once("work"); err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		if l := s.lease("work"); !leases.Current(l, task) {
			t.Errorf("lease %+v, want the claim's", l)
		}
	})
	t.Run("ahead of its task", func(t *testing.T) {
		s := newStage(t)
		task := s.held("work", "cc")
		l := s.lease("work")
		l.Spec.LeaseTransitions = new(int32(99))
		s.must(s.client.Update(t.Context(), l))
		s.settle("work")
		if l := s.lease("work"); !leases.Current(l, task) {
			t.Errorf("lease %+v, want the claim's", l)
		}
	})
	t.Run("of another holder in the same epoch", func(t *testing.T) {
		s := newStage(t)
		task := s.held("work", "cc")
		l := s.lease("work")
		l.Spec.HolderIdentity = new("thief")
		s.must(s.client.Update(t.Context(), l))
		s.settle("work")
		if l := s.lease("work"); !leases.Current(l, task) {
			t.Errorf("lease %+v, want the claim's", l)
		}
	})
}

// TestLeaseIsDeleted lets an admin clear up at each point: a claim that stands gets its Lease anew, an ended one comes not back.
func TestLeaseIsDeleted(t *testing.T) {
	drop := func(s *stage) { s.must(s.client.Delete(t.Context(), s.lease("work"))) }
	t.Run("while the task is held", func(t *testing.T) {
		s := newStage(t)
		held := s.held("work", "cc")
		s.clock.SetTime(s.clock.Now().Add(50 * time.Second))
		drop(s)
		if task := s.settle("work"); task.Status.State != v1alpha1.TaskDoing || !leases.Current(s.lease("work"), held) {
			t.Fatalf("%s, lease %+v, want the claim to stand", task.Status.State, s.lease("work"))
		}
		s.clock.SetTime(s.clock.Now().Add(50 * time.Second))
		if task := s.settle("work"); task.Status.State != v1alpha1.TaskDoing {
			t.Errorf("%s before the new lease has run out", task.Status.State)
		}
		s.must(s.renew(held, s.lease("work")))
		s.awaitLease("work")
		s.settle("work")
		s.clock.SetTime(s.clock.Now().Add(2 * time.Minute))
		if task := s.settle("work"); task.Status.State != v1alpha1.TaskTodo || task.Status.LastClaim.Ended != v1alpha1.ClaimExpired {
			t.Errorf("%s, want it reopened after the new lease ran out too", task.Status.State)
		}
	})
	t.Run("while the lease is being taken away", func(t *testing.T) {
		s := newStage(t)
		held := s.held("work", "cc")
		s.clock.SetTime(s.clock.Now().Add(2 * time.Minute))
		s.hooks.before = func(write string) error {
			if write == writeLease {
				s.hooks.before = nil
				drop(s)
			}
			return nil
		}
		if _, err := s.once("work"); !apierrors.IsConflict(err) {
			t.Fatalf("%v, want a conflict, after which the controller looks again", err)
		}
		if task := s.settle("work"); task.Status.State != v1alpha1.TaskDoing || !leases.Current(s.lease("work"), held) {
			t.Errorf("%s, lease %+v, want the claim to stand", task.Status.State, s.lease("work"))
		}
	})
	t.Run("after it was taken away and before the task is open", func(t *testing.T) {
		s := newStage(t)
		held := s.held("work", "cc")
		s.clock.SetTime(s.clock.Now().Add(2 * time.Minute))
		s.hooks.before = func(write string) error {
			if write == writeStatus {
				return errors.New("a crash")
			}
			return nil
		}
		if _, err := s.once("work"); err == nil {
			t.Fatal("no crash")
		}
		s.hooks.before = nil
		drop(s)
		if task := s.settle("work"); task.Status.State != v1alpha1.TaskDoing || !leases.Current(s.lease("work"), held) {
			t.Errorf("%s, lease %+v, want the claim to stand", task.Status.State, s.lease("work"))
		}
	})
	t.Run("when the task is open again", func(t *testing.T) {
		s := newStage(t)
		s.held("work", "cc")
		s.clock.SetTime(s.clock.Now().Add(2 * time.Minute))
		s.settle("work")
		drop(s)
		if task := s.settle("work"); task.Status.State != v1alpha1.TaskTodo || s.lease("work") != nil {
			t.Errorf("%s, lease %+v, want Todo and none", task.Status.State, s.lease("work"))
		}
	})
}

// TestStaleView lets the reconciler act on a task as it was before somebody else changed it: it loses, and nothing is lost.
func TestStaleView(t *testing.T) {
	s := newStage(t)
	held := s.held("work", "cc")
	s.clock.SetTime(s.clock.Now().Add(2 * time.Minute))
	s.hooks.before = func(write string) error {
		if write == writeStatus {
			s.hooks.before = nil
			// The holder is faster by a moment with its result, though its lease was just taken.
			out, p := tasks.SetStatus(held, tasks.Actor{Plate: s.plate("cc"), Session: "s1"}, tasks.Change{To: v1alpha1.TaskDone, Summary: "done"}, time.Now())
			if p != nil {
				t.Error(p)
			}
			done := held.DeepCopy()
			done.Status = *out.Status
			if err := s.env.Client.Status().Update(t.Context(), done); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	if _, err := s.once("work"); !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want a conflict", err)
	}
	task := s.task("work")
	if task.Status.State != v1alpha1.TaskDone || task.Status.Record.Summary != "done" {
		t.Errorf("the result was lost: %+v", task.Status)
	}
	if diff := cmp.Diff([]string(nil), s.events.all()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestRenewalAfterRelease lets a renewal that remembers the Lease come after the claim ended and the Lease went. The API
// server makes a Lease that is put where none is, unless the put carries the UID of the one that was there.
func TestRenewalAfterRelease(t *testing.T) {
	s := newStage(t)
	held := s.held("work", "cc")
	remembered := s.lease("work")
	status, p := tasks.Release(held, tasks.Actor{Plate: s.plate("cc"), Session: "s1"}, nil, s.clock.Now())
	if p != nil {
		t.Fatal(p)
	}
	task := held.DeepCopy()
	task.Status = *status
	s.must(s.client.Status().Update(t.Context(), task))
	s.settle("work")
	if err := s.renew(held, remembered); err == nil {
		t.Errorf("a lease that had gone was renewed: %+v", s.lease("work"))
	} else {
		t.Logf("refused: %v", err)
	}
}

// TestLeaseOfTheNextClaimStays lets somebody claim while the Lease of the claim before is about to be deleted.
func TestLeaseOfTheNextClaimStays(t *testing.T) {
	s := newStage(t)
	held := s.held("work", "cc")
	status, p := tasks.Release(held, tasks.Actor{Plate: s.plate("cc"), Session: "s1"}, nil, s.clock.Now())
	if p != nil {
		t.Fatal(p)
	}
	held.Status = *status
	s.must(s.client.Status().Update(t.Context(), held))
	var next *v1alpha1.Task
	s.hooks.before = func(write string) error {
		if write == dropLease {
			s.hooks.before = nil
			next = s.claim("work", "dd", "s2")
			s.must(s.renew(next, s.lease("work")))
		}
		return nil
	}
	if _, err := s.once("work"); !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want a conflict", err)
	}
	if l := s.lease("work"); l == nil || !leases.Current(l, next) {
		t.Fatalf("the lease of the next claim is gone: %+v", l)
	}
	s.awaitLease("work")
	s.settle("work")
	if l := s.lease("work"); l == nil || !leases.Current(l, next) {
		t.Errorf("the lease of the next claim is gone: %+v", l)
	}
}
