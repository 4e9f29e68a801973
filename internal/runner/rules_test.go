package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

var start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestBackoffDoublesUpToItsBound(t *testing.T) {
	b := Backoff{First: time.Second, Max: 10 * time.Second}
	for failures, want := range map[int]time.Duration{1: 1, 2: 2, 3: 4, 4: 8, 5: 10, 1000: 10} {
		low, high := b.Delay(failures, 0), b.Delay(failures, 0.999999)
		if low != want*time.Second/2 || high <= low || high > want*time.Second {
			t.Errorf("after %d failures: %s to %s, want half of %d s to all of it", failures, low, high, want)
		}
	}
}

func TestClassify(t *testing.T) {
	const me, other = "ME", "OTHER"
	person := &rooms.Message{Sender: rooms.Sender{Type: "agent"}}
	system := &rooms.Message{Sender: rooms.Sender{Type: senderSystem}}
	for name, tc := range map[string]struct {
		message *rooms.Message
		task    *rooms.Task
		taskID  string
		want    Kind
	}{
		"what an agent says":                       {person, nil, "", Mention},
		"what an agent says of a task":             {person, &rooms.Task{Assignee: me, Consent: consentPending}, "T", Mention},
		"a task of mine":                           {system, &rooms.Task{Assignee: me, Consent: consentAuto}, "T", Assignment},
		"a task of mine that was agreed to":        {system, &rooms.Task{Assignee: me, Consent: consentAccepted}, "T", Assignment},
		"a task of mine that waits":                {system, &rooms.Task{Assignee: me, Consent: consentPending}, "T", Proposal},
		"a task of my owner's other agent":         {system, &rooms.Task{Assignee: other, Consent: consentPending}, "T", Proposal},
		"a task that I gave and that was rejected": {system, &rooms.Task{Assignee: other, Consent: consentRejected}, "T", Decision},
		"a task that has gone to somebody else":    {system, &rooms.Task{Assignee: other, Consent: consentAuto}, "T", Notice},
		"a task that is gone":                      {system, nil, "T", Notice},
		"a message that is gone":                   {nil, nil, "", Mention},
		"a message that is gone, about my task":    {nil, &rooms.Task{Assignee: me, Consent: consentAuto}, "T", Assignment},
	} {
		if got := Classify(tc.message, tc.task, tc.taskID, me); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func mentions(ids ...string) []rooms.MentionInfo {
	var list []rooms.MentionInfo
	for _, id := range ids {
		list = append(list, rooms.MentionInfo{MentionID: id, Room: "R"})
	}
	return list
}

func TestTheOldestWakeThatIsDueComesNext(t *testing.T) {
	q := NewQueue(Backoff{First: time.Minute, Max: time.Hour})
	now := start
	next := func(ids ...string) Chosen {
		t.Helper()
		c, ok := q.Next(mentions(ids...), now)
		if !ok {
			return Chosen{}
		}
		return c
	}
	if c := next("a", "b"); c.MentionID != "a" || c.Attempt != 1 {
		t.Errorf("%+v, want the first try of a", c)
	}
	if d := q.Failed("R", "a", now, 0); d != 30*time.Second {
		t.Errorf("a waits %s", d)
	}
	if n := q.Ask("R", now); n != 2 {
		t.Errorf("asks for %d, want the one that waits and one more", n)
	}
	if n := q.Ask("elsewhere", now); n != 1 {
		t.Errorf("asks for %d elsewhere", n)
	}
	if c := next("a", "b"); c.MentionID != "b" {
		t.Errorf("%+v, want b while a waits", c)
	}
	q.Done("b")
	if c := next("a"); c.MentionID != "" {
		t.Errorf("%+v, want nothing while a waits", c)
	}
	now = now.Add(31 * time.Second)
	if c := next("a", "c"); c.MentionID != "a" || c.Attempt != 2 || c.Handled {
		t.Errorf("%+v, want the second try of a before c", c)
	}
	q.Unacknowledged("R", "a", now, 0)
	now = now.Add(time.Hour)
	if c := next("a"); !c.Handled {
		t.Errorf("%+v, want only the acknowledgement of a", c)
	}
}

func TestHowLongAListenerWaits(t *testing.T) {
	q := NewQueue(Backoff{First: 10 * time.Second, Max: time.Hour})
	if _, timed := q.Pause(0, start, 0); timed {
		t.Error("waits for a time although nothing is pending")
	}
	if d, timed := q.Pause(1, start, 0); !timed || d != lookAgain/2 {
		t.Errorf("waits %s %t for what another instance has", d, timed)
	}
	q.Failed("R", "a", start, 0)
	if d, timed := q.Pause(1, start, 0); !timed || d != 5*time.Second {
		t.Errorf("waits %s %t for the one that failed", d, timed)
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	q := NewQueue(Backoff{First: time.Hour, Max: time.Hour})
	for i := range 3 * maxWaiting {
		q.Failed("R", strings.Repeat("x", i+1), start.Add(time.Duration(i)*time.Millisecond), 0)
	}
	if n := len(q.waiting); n > maxWaiting {
		t.Errorf("%d wakes are remembered", n)
	}
	if n := q.Ask("R", start.Add(time.Minute)); n != MaxOffered {
		t.Errorf("asks for %d", n)
	}
	q.Failed("R", "new", start.Add(4*time.Hour), 0)
	if n := len(q.waiting); n != 1 {
		t.Errorf("%d wakes are remembered that nobody has been offered for hours", n)
	}
}

func TestAClaimIsOverBeforeAnybodyElseCanTakeIt(t *testing.T) {
	c := Held(start, 9*time.Second, 0)
	if c.Next != start.Add(3*time.Second) || c.Until != start.Add(9*time.Second) {
		t.Errorf("%+v, want a renewal after a third", c)
	}
	if early := Held(start, 9*time.Second, 0.99); !early.Next.Before(c.Next) || early.Next.Before(start.Add(2*time.Second)) {
		t.Errorf("%+v, want it somewhat sooner by chance", early)
	}
	now, tries := c.Next, 0
	for !c.Over(now) {
		c = c.Failed(now, 0.5)
		if tries++; !c.Next.After(now) || c.Until != start.Add(9*time.Second) {
			t.Fatalf("%+v at %s: a failure moved the end, or the next try is now", c, now)
		}
		now = now.Add(c.Wait(now))
	}
	if tries < 4 || tries > 30 {
		t.Errorf("%d tries in two thirds of the lease", tries)
	}
	if now != c.Until {
		t.Errorf("noticed at %s, want %s", now, c.Until)
	}
}

func TestWhatAnswersMean(t *testing.T) {
	for code, want := range map[problem.Code][2]bool{
		problem.LeaseLost: {true, false}, problem.NotFound: {true, false}, problem.Unavailable: {false, true},
		problem.RateLimited: {false, true}, problem.IdentityRequired: {false, true}, problem.Internal: {false, true},
		problem.RoomNotActive: {false, false}, problem.Validation: {false, false}, problem.Forbidden: {false, false},
	} {
		p := problem.New(code, "x")
		if got := [2]bool{Lost(p), Passes(p)}; got != want {
			t.Errorf("%s: lost and passes %v, want %v", code, got, want)
		}
	}
}

func TestPick(t *testing.T) {
	good := func(id string, edit func(*rooms.Task)) rooms.Task {
		task := rooms.Task{TaskID: id, Assignee: "ME", Status: statusTodo, Consent: consentAuto, CreatedAt: "2026-06-01T12:00:00Z"}
		if edit != nil {
			edit(&task)
		}
		return task
	}
	list := []rooms.Task{
		good("later", func(t *rooms.Task) { t.Order = 5 }),
		good("b", nil), good("a", nil),
		good("old", func(t *rooms.Task) { t.CreatedAt = "2026-05-01T12:00:00Z" }),
		good("urgent", func(t *rooms.Task) { t.Priority, t.Order = 9, 99 }),
		good("theirs", func(t *rooms.Task) { t.Assignee = "OTHER" }),
		good("nobodys", func(t *rooms.Task) { t.Assignee, t.Consent = "", consentAccepted }),
		good("asked", func(t *rooms.Task) { t.Consent = consentPending }),
		good("rejected", func(t *rooms.Task) { t.Consent = consentRejected }),
		good("waits", func(t *rooms.Task) { t.BlockedBy = []string{"a"} }),
		good("doing", func(t *rooms.Task) { t.Status = statusDoing }),
		good("archived", func(t *rooms.Task) { t.Archived = true }),
		good("tried", nil),
	}
	tries := NewTries(Backoff{First: time.Minute, Max: time.Hour})
	tries.Failed("tried", start, 0)
	names := func(unassigned bool, now time.Time) (out []string) {
		for _, task := range tries.Pick(list, "ME", unassigned, now) {
			out = append(out, task.TaskID)
		}
		return out
	}
	if diff := cmp.Diff([]string{"urgent", "old", "a", "b", "later"}, names(false, start)); diff != "" {
		t.Errorf("mine (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"urgent", "old", "a", "b", "nobodys", "tried", "later"}, names(true, start.Add(time.Minute))); diff != "" {
		t.Errorf("mine and nobody's, later (-want +got):\n%s", diff)
	}
	if tries.Attempt("tried") != 2 || tries.Attempt("a") != 1 {
		t.Errorf("attempts %d and %d", tries.Attempt("tried"), tries.Attempt("a"))
	}
	tries.Passed("a", start, 0)
	if tries.Attempt("a") != 1 {
		t.Error("a task that somebody else took counts as tried")
	}
	if due, ok := tries.Due(start); !ok || due != start.Add(30*time.Second) {
		t.Errorf("due %s %t", due, ok)
	}
}

func TestHeldByAndFinished(t *testing.T) {
	mine := rooms.Task{TaskID: "mine", Status: statusDoing, Lease: &rooms.Lease{Holder: "ME", SessionID: "s"}}
	twin := rooms.Task{TaskID: "twin", Status: statusDoing, Lease: &rooms.Lease{Holder: "ME", SessionID: "other"}}
	if held := HeldBy([]rooms.Task{twin, {TaskID: "free", Status: statusDoing}, mine}, "ME", "s"); len(held) != 1 || held[0].TaskID != "mine" {
		t.Errorf("held %+v", held)
	}
	for _, tc := range []struct {
		task rooms.Task
		want bool
	}{
		{rooms.Task{Status: statusDone, Record: &rooms.Record{Plate: "ME", Status: statusDone}}, true},
		{rooms.Task{Status: statusBlocked, Record: &rooms.Record{Plate: "ME", Status: statusBlocked}}, true},
		{rooms.Task{Status: "cancelled", Record: &rooms.Record{Plate: "ME", Status: "cancelled"}}, false},
		{rooms.Task{Status: statusDone, Record: &rooms.Record{Plate: "OTHER", Status: statusDone}}, false},
		{rooms.Task{Status: statusTodo, Record: &rooms.Record{Plate: "ME", Status: statusDone}}, false},
		{rooms.Task{Status: statusDone}, false},
	} {
		if got := Finished(&tc.task, "ME"); got != tc.want {
			t.Errorf("%+v: %t", tc.task, got)
		}
	}
}

func TestFindRooms(t *testing.T) {
	list := []rooms.RoomInfo{{Room: "R1", Name: "den"}, {Room: "R2", Name: "attic"}, {Room: "R3", Name: "attic"}, {Room: "R4", Name: "R1"}}
	got, err := FindRooms(list, []string{"den", "R2", "R1", "R4"})
	if diff := cmp.Diff([]string{"R1", "R2", "R4"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, want := range map[string]string{"attic": "2 rooms", "cellar": "no room"} {
		if _, err := FindRooms(list, []string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestAnInstanceIsNamedByWhatItIs(t *testing.T) {
	name := Instance("work", "host", "/here")
	if name != Instance("work", "host", "/here") || len(name) > 64 {
		t.Errorf("%s changes, or is too long", name)
	}
	for _, other := range []string{Instance("listen", "host", "/here"), Instance("work", "host2", "/here"), Instance("work", "host", "/there")} {
		if other == name {
			t.Errorf("%s is the name of two", name)
		}
	}
}
