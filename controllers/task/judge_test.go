package task

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/leases"
)

var epochZero = time.Unix(1_700_000_000, 0)

// doing is a task that cc/s1 holds under epoch 3.
func doing() *v1alpha1.Task {
	return &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: "work", Namespace: "ns", UID: "uid"},
		Status: v1alpha1.TaskStatus{
			State: v1alpha1.TaskDoing, Epoch: 3, Claim: &v1alpha1.TaskClaim{Holder: "cc", Session: "s1"},
		},
	}
}

// reopened is the same task after its lease ran out.
func reopened(state v1alpha1.TaskState) *v1alpha1.Task {
	t := doing()
	t.Status = v1alpha1.TaskStatus{State: state, Epoch: 4, LastClaim: &v1alpha1.TaskLastClaim{
		Holder: "cc", Session: "s1", Epoch: 3, Ended: v1alpha1.ClaimExpired,
	}}
	return t
}

func lease(change func(*coordinationv1.Lease)) *coordinationv1.Lease {
	l := leases.New(doing(), time.Minute, epochZero)
	if change != nil {
		change(l)
	}
	return l
}

func TestJudge(t *testing.T) {
	cleared := func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("") }
	released := reopened(v1alpha1.TaskTodo)
	released.Status.LastClaim.Ended = v1alpha1.ClaimReleased
	for name, c := range map[string]struct {
		task      *v1alpha1.Task
		lease     *coordinationv1.Lease
		onExpiry  v1alpha1.LeaseExpiryAction
		remaining time.Duration
		want      verdict
	}{
		"claimed, no lease":                      {task: doing(), want: leaseCreate},
		"open, no lease":                         {task: reopened(v1alpha1.TaskTodo), want: leaseNone},
		"held":                                   {task: doing(), lease: lease(nil), remaining: 1, want: leaseHold},
		"ran out":                                {task: doing(), lease: lease(nil), want: leaseExpire},
		"ran out, to the nanosecond":             {task: doing(), lease: lease(nil), remaining: 0, want: leaseExpire},
		"ran out, the room marks":                {task: doing(), lease: lease(nil), onExpiry: v1alpha1.LeaseMarkStale, want: leaseStale},
		"taken, not reopened":                    {task: doing(), lease: lease(cleared), remaining: time.Hour, want: leaseFinish},
		"taken, not reopened, the room marks":    {task: doing(), lease: lease(cleared), onExpiry: v1alpha1.LeaseMarkStale, want: leaseFinish},
		"of an earlier claim":                    {task: doing(), lease: lease(func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = new(int32(1)) }), want: leaseTakeOver},
		"of an earlier claim that expired":       {task: doing(), lease: lease(func(l *coordinationv1.Lease) { cleared(l); l.Spec.LeaseTransitions = new(int32(1)) }), want: leaseTakeOver},
		"of a later claim":                       {task: doing(), lease: lease(func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = new(int32(5)) }), want: leaseDoubt},
		"of a later claim, while the task rests": {task: reopened(v1alpha1.TaskTodo), lease: lease(func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = new(int32(5)) }), want: leaseDoubt},
		"of somebody else in the same epoch":     {task: doing(), lease: lease(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("dd") }), want: leaseTakeOver},
		"of a task that had the name":            {task: doing(), lease: lease(func(l *coordinationv1.Lease) { l.OwnerReferences[0].UID = "other" }), want: leaseDelete},
		"tombstone":                              {task: reopened(v1alpha1.TaskTodo), lease: lease(cleared), want: leaseNone},
		"tombstone of a blocked task":            {task: reopened(v1alpha1.TaskBlocked), lease: lease(cleared), want: leaseNone},
		"tombstone of a task that was finished":  {task: reopened(v1alpha1.TaskDone), lease: lease(cleared), want: leaseDelete},
		"left by a release":                      {task: released, lease: lease(nil), want: leaseDelete},
		"cleared, but released by then":          {task: released, lease: lease(cleared), want: leaseDelete},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			got := judge(c.task, c.lease, c.onExpiry, func() time.Duration { asked = true; return c.remaining })
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			judged := got == leaseHold || got == leaseExpire || got == leaseStale
			if asked != judged {
				t.Errorf("the observer was asked %t, want %t", asked, judged)
			}
		})
	}
}

// TestNoteRenewal holds heartbeats against reconciles: a renewal in time asks for none, everything else does.
func TestNoteRenewal(t *testing.T) {
	type change func(*coordinationv1.Lease)
	renewed := func(l *coordinationv1.Lease) { l.Spec.RenewTime = new(metav1.NewMicroTime(epochZero.Add(time.Second))) }
	both := func(more change) change {
		return func(l *coordinationv1.Lease) { renewed(l); more(l) }
	}
	for name, c := range map[string]struct {
		change change
		after  time.Duration
		want   bool
	}{
		"renewed in time":       {change: renewed, after: 59 * time.Second, want: false},
		"renewed late":          {change: renewed, after: 61 * time.Second, want: true},
		"taken":                 {change: func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("") }, want: true},
		"taken over":            {change: both(func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = new(int32(5)) }), want: true},
		"of another holder":     {change: both(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("dd") }), want: true},
		"of another duration":   {change: both(func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = new(int32(5)) }), want: true},
		"without an owner":      {change: both(func(l *coordinationv1.Lease) { l.OwnerReferences = nil }), want: true},
		"without its label":     {change: both(func(l *coordinationv1.Lease) { l.Labels = nil }), want: true},
		"nothing that concerns": {change: func(l *coordinationv1.Lease) { l.Annotations = map[string]string{"a": "b"} }, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			r, clk := unit(epochZero)
			before := lease(nil)
			r.observer.Remaining("ns/work", before, clk.Now())
			clk.SetTime(clk.Now().Add(c.after))
			if got := r.noteRenewal(before, lease(c.change)); got != c.want {
				t.Errorf("asks for a reconcile %t, want %t", got, c.want)
			}
			if name == "renewed in time" {
				if left := r.observer.Remaining("ns/work", lease(renewed), clk.Now()); left != time.Minute {
					t.Errorf("%s left after the renewal was seen, want a minute", left)
				}
			}
		})
	}
}

func TestUnresolved(t *testing.T) {
	now := metav1.NewTime(epochZero)
	accepted := &v1alpha1.TaskConsent{State: v1alpha1.ConsentAccepted, Assignee: "P"}
	pending := &v1alpha1.TaskConsent{State: v1alpha1.ConsentPending}
	fresh := func(plate string) *v1alpha1.TaskConsent {
		return &v1alpha1.TaskConsent{State: v1alpha1.ConsentPending, Assignee: plate, At: now}
	}
	for name, c := range map[string]struct {
		state v1alpha1.TaskState
		old   *v1alpha1.TaskConsent
		plate string
		want  *v1alpha1.TaskConsent
	}{
		"new, by plate":                        {state: v1alpha1.TaskTodo, plate: "P", want: fresh("P")},
		"new, by name":                         {state: v1alpha1.TaskTodo, want: fresh("")},
		"nobody was assigned before":           {state: v1alpha1.TaskTodo, old: &v1alpha1.TaskConsent{State: v1alpha1.ConsentAuto}, want: fresh("")},
		"somebody else had accepted":           {state: v1alpha1.TaskTodo, old: accepted, plate: "Q", want: fresh("Q")},
		"accepted, and the agent is gone":      {state: v1alpha1.TaskTodo, old: accepted, plate: "P", want: accepted},
		"accepted, and the name means nobody":  {state: v1alpha1.TaskTodo, old: accepted, want: fresh("")},
		"pending before":                       {state: v1alpha1.TaskTodo, old: pending, want: pending},
		"being worked on":                      {state: v1alpha1.TaskDoing, old: accepted, plate: "Q", want: accepted},
		"has ended":                            {state: v1alpha1.TaskDone, old: accepted, plate: "Q", want: accepted},
		"blocked, and somebody else had to do": {state: v1alpha1.TaskBlocked, old: accepted, plate: "Q", want: fresh("Q")},
	} {
		t.Run(name, func(t *testing.T) {
			task := &v1alpha1.Task{Status: v1alpha1.TaskStatus{State: c.state, Consent: c.old}}
			if diff := cmp.Diff(c.want, unresolved(task, c.plate, epochZero)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecisionIsNewsOnce lets views of different ages come in turn.
func TestDecisionIsNewsOnce(t *testing.T) {
	at := func(state v1alpha1.ConsentState, seconds int64) *v1alpha1.Task {
		task := doing()
		task.Status.Consent = &v1alpha1.TaskConsent{State: state, Assignee: "P", At: metav1.Unix(seconds, 0)}
		return task
	}
	var d decisions
	for i, step := range []struct {
		task *v1alpha1.Task
		news bool
	}{
		{at(v1alpha1.ConsentAccepted, 1), false}, // Decided before the process began.
		{at(v1alpha1.ConsentAccepted, 1), false},
		{at(v1alpha1.ConsentPending, 2), false},
		{at(v1alpha1.ConsentAccepted, 3), true},
		{at(v1alpha1.ConsentPending, 2), false}, // The watch is behind the write.
		{at(v1alpha1.ConsentAccepted, 3), false},
		{at(v1alpha1.ConsentAuto, 4), false},
		{at(v1alpha1.ConsentRejected, 5), true},
	} {
		if got := d.news(step.task); got != step.news {
			t.Errorf("step %d: news %t, want %t", i, got, step.news)
		}
	}
	d.forget(client.ObjectKeyFromObject(doing()))
	if d.news(at(v1alpha1.ConsentAccepted, 6)) {
		t.Error("what is seen for the first time is news")
	}
}
