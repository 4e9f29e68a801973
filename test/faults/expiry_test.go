package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/controlplane"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// shop is a world with one agent and a room where leases last ten seconds.
func shop(t *testing.T) (*harness.World, string) {
	t.Helper()
	w := plane.World(t)
	w.Agent("ann", "olga")
	room := w.Room("shop", func(s *v1alpha1.RoomSpec) {
		s.LeasePolicy = &v1alpha1.LeasePolicy{DurationSeconds: int32(leaseTime / time.Second)}
	}, harness.Admin("ann"))
	return w, room
}

// claimed makes a task and lets a session claim it. It gives the object, whose Lease is there.
func claimed(t *testing.T, w *harness.World, room string, s *harness.Session, title string) *v1alpha1.Task {
	t.Helper()
	made := harness.Get[rooms.Task](t, s, "create_task", harness.Args{
		"room": room, "title": title, "definition_of_done": "it is done", "assignee": "@ann",
	})
	if c := harness.Get[rooms.Claim](t, s, "claim_task", harness.Args{"task_id": made.TaskID}); !c.OK {
		t.Fatalf("claiming gives %+v", c)
	}
	var task *v1alpha1.Task
	harness.Await(t, "the lease of "+title, func() bool {
		task = taskByTitle(t, w, title)
		return leases.Current(leaseOf(t, task), task)
	})
	return task
}

func taskByTitle(t *testing.T, w *harness.World, title string) *v1alpha1.Task {
	t.Helper()
	var list v1alpha1.TaskList
	if err := plane.Client.List(context.Background(), &list, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.Title == title {
			return &list.Items[i]
		}
	}
	t.Fatalf("there is no task %q", title)
	return nil
}

func leaseOf(t *testing.T, task *v1alpha1.Task) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: task.Namespace, Name: ids.LeaseName(task.Name)}
	err := client.IgnoreNotFound(plane.Client.Get(context.Background(), key, lease))
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// awaitOpen waits until a task is open again, and gives how long that took since a time.
func awaitOpen(t *testing.T, w *harness.World, title string, since time.Time) time.Duration {
	t.Helper()
	harness.Await(t, title+" to be open again", func() bool {
		return taskByTitle(t, w, title).Status.State == v1alpha1.TaskTodo
	})
	return time.Since(since)
}

// TestAKilledManagerIsBackInTime holds that leases run out also when the manager was killed: the new one observes each for
// its whole time, and does not wait for anything else.
func TestAKilledManagerIsBackInTime(t *testing.T) {
	w, room := shop(t)
	claimed(t, w, room, w.As("ann", "dying"), "abandoned")
	harness.Await(t, "the manager to be there to be killed", func() bool {
		_, ok := plane.KillChild(t, "manager")
		return ok
	})
	if took := awaitOpen(t, w, "abandoned", time.Now()); took < leaseTime-time.Second || took > leaseTime+8*time.Second {
		t.Errorf("the task was open again %s after the manager was killed, want %s and a few seconds", took, leaseTime)
	}
}

// TestLeasesRunOutInTimeAlsoWhenTheAPIServerWasKilled kills it twice, and then lets a holder die: the manager sees the claim
// soon after the API server is back. (An informer waits twice as long after each watch that broke within two minutes.)
func TestLeasesRunOutInTimeAlsoWhenTheAPIServerWasKilled(t *testing.T) {
	w, room := shop(t)
	s := w.As("ann", "dying")
	id, args := taskFor(t, s, room)
	for range 2 {
		old, _ := plane.KillChild(t, controlplane.APIServer)
		harness.Await(t, "the API server to be back", func() bool {
			return plane.Children(t)[controlplane.APIServer] != old &&
				plane.Client.List(context.Background(), &v1alpha1.RoomList{}) == nil
		})
	}
	harness.Await(t, "the task to be claimed", func() bool {
		r := s.Call(t, "claim_task", args)
		return r.Err == nil && into[rooms.Claim](r.Raw).OK
	})
	took := awaitOpen(t, w, "stale", time.Now())
	t.Logf("the task of a dead holder was open again after %s", took)
	if took > leaseTime+5*time.Second {
		t.Errorf("task %s was open again only after %s", id, took)
	}
}

// bridgeConfig reaches the API server as a bridge does.
func bridgeConfig() *rest.Config {
	config := rest.CopyConfig(plane.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: harness.BridgeUser, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:agentrooms-system", "system:authenticated"},
	}
	return config
}

// asBridge is a client that writes as a bridge does.
func asBridge(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(bridgeConfig(), client.Options{Scheme: harness.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAClockThatIsWrongMakesNoDifference writes renewals as a replica would whose clock is an hour off, in both directions.
// The lease lasts from when the renewal is seen, not from when it says it was made.
func TestAClockThatIsWrongMakesNoDifference(t *testing.T) {
	w, room := shop(t)
	for name, skew := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			title := "an hour " + name
			s := w.As("ann", "skewed-"+name)
			task := claimed(t, w, room, s, title)
			for i := range 3 {
				renewWithSkew(t, task, skew)
				pacer := time.NewTimer(leaseTime / 2)
				<-pacer.C
				if now := taskByTitle(t, w, title); now.Status.State != v1alpha1.TaskDoing || now.Status.Epoch != task.Status.Epoch {
					t.Fatalf("renewed %d times, the task was taken all the same: %+v", i+1, now.Status)
				}
			}
			last := renewWithSkew(t, task, skew)
			if took := awaitOpen(t, w, title, last); took < leaseTime || took > leaseTime+5*time.Second {
				t.Errorf("the task was open again %s after the last renewal, want %s to 5 s more", took, leaseTime)
			}
			harness.Refused(t, s, "LEASE_LOST", "renew_lease", harness.Args{"task_id": ids.ID(task)})
		})
	}
}

// renewWithSkew renews a Lease by a clock that is off, and gives when that was.
func renewWithSkew(t *testing.T, task *v1alpha1.Task, skew time.Duration) time.Time {
	t.Helper()
	at := time.Now()
	lease, ok := leases.Renewed(leaseOf(t, task), task, leaseTime, at.Add(skew))
	if !ok {
		t.Fatal("the lease was taken away")
	}
	if err := asBridge(t).Update(context.Background(), lease); err != nil {
		t.Fatal(err)
	}
	return at
}

// TestAnActiveHolderKeepsItsTaskUnderAWrongClock lets a holder call, and nothing else: its calls renew the lease, however
// wrong the clock is by which it was written last.
func TestAnActiveHolderKeepsItsTaskUnderAWrongClock(t *testing.T) {
	w, room := shop(t)
	for i, skew := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			t.Parallel()
			title := fmt.Sprint("active under ", skew)
			s := w.At(i, "ann", "active-"+skew.String())
			task := claimed(t, w, room, s, title)
			renewWithSkew(t, task, skew)
			pacer := time.NewTicker(time.Second)
			defer pacer.Stop()
			for began := time.Now(); time.Since(began) < 2*leaseTime; <-pacer.C {
				harness.Get[rooms.Identity](t, s, "whoami", nil)
			}
			if now := taskByTitle(t, w, title); now.Status.State != v1alpha1.TaskDoing || now.Status.Epoch != task.Status.Epoch {
				t.Errorf("after %s of calls the task is %+v", 2*leaseTime, now.Status)
			}
		})
	}
}
