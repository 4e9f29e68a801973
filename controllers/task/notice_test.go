package task

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/test/testenv"
)

// unit is a reconciler for tests that need no API server.
func unit(now time.Time) (*Reconciler, *clocktesting.FakePassiveClock) {
	clk := clocktesting.NewFakePassiveClock(now)
	return &Reconciler{Clock: clk}, clk
}

func TestDecideNotice(t *testing.T) {
	to := []string{"x"}
	for name, c := range map[string]struct {
		last string
		now  situation
		post kind
		next string
	}{
		"assigned":                              {now: situation{kind: noticeAssigned, plate: "P", recipients: to}, post: noticeAssigned, next: "1:assigned:P"},
		"assigned, said already":                {last: "1:assigned:P", now: situation{kind: noticeAssigned, plate: "P", recipients: to}, next: "1:assigned:P"},
		"assigned to another":                   {last: "1:assigned:P", now: situation{kind: noticeAssigned, plate: "Q", recipients: to}, post: noticeAssigned, next: "2:assigned:Q"},
		"assigned back":                         {last: "2:assigned:Q", now: situation{kind: noticeAssigned, plate: "P", recipients: to}, post: noticeAssigned, next: "3:assigned:P"},
		"assigned to itself":                    {now: situation{kind: noticeQuiet, plate: "P"}, next: ""},
		"assigned to itself after others":       {last: "2:assigned:Q", now: situation{kind: noticeQuiet, plate: "P"}, next: "2:quiet:P"},
		"assigned to nobody":                    {now: situation{kind: noticeQuiet}, next: ""},
		"assigned to nobody after others":       {last: "2:assigned:Q", now: situation{kind: noticeQuiet}, next: "2:quiet:"},
		"assigned again after nobody":           {last: "2:quiet:", now: situation{kind: noticeAssigned, plate: "Q", recipients: to}, post: noticeAssigned, next: "3:assigned:Q"},
		"proposed":                              {now: situation{kind: noticeProposed, plate: "P", recipients: to}, post: noticeProposed, next: "1:proposed:P"},
		"proposed, nobody to ask":               {now: situation{kind: noticeProposed, plate: "P"}, next: ""},
		"proposed, somebody to ask at last":     {last: "1:quiet:P", now: situation{kind: noticeProposed, plate: "P", recipients: to}, post: noticeProposed, next: "2:proposed:P"},
		"proposed, nobody left to ask":          {last: "1:proposed:P", now: situation{kind: noticeProposed, plate: "P"}, next: "1:proposed:P"},
		"accepted":                              {last: "1:proposed:P", now: situation{kind: noticeAssigned, plate: "P", recipients: to}, post: noticeAssigned, next: "2:assigned:P"},
		"rejected":                              {last: "1:proposed:P", now: situation{kind: noticeRejected, plate: "P", recipients: to}, post: noticeRejected, next: "2:rejected:P"},
		"rejected, proposed by a person":        {last: "1:proposed:P", now: situation{kind: noticeRejected, plate: "P"}, next: "1:quiet:P"},
		"proposed anew after rejection":         {last: "2:rejected:P", now: situation{kind: noticeProposed, plate: "P", recipients: to}, post: noticeProposed, next: "3:proposed:P"},
		"not the time":                          {last: "1:assigned:P", now: situation{}, next: "1:assigned:P"},
		"assigned, waits":                       {now: situation{kind: noticeAssigned, plate: "P", recipients: to, waiting: true}, post: noticeAssigned, next: "1:assigned:P:waiting"},
		"assigned, begins to wait":              {last: "1:assigned:P", now: situation{kind: noticeAssigned, plate: "P", recipients: to, waiting: true}, next: "1:assigned:P:waiting"},
		"unblocked":                             {last: "1:assigned:P:waiting", now: situation{kind: noticeAssigned, plate: "P", recipients: to, unblock: to}, post: noticeUnblocked, next: "2:unblocked:P"},
		"unblocked, said already":               {last: "2:unblocked:P", now: situation{kind: noticeAssigned, plate: "P", recipients: to, unblock: to}, next: "2:unblocked:P"},
		"unblocked, and waits anew":             {last: "2:unblocked:P", now: situation{kind: noticeAssigned, plate: "P", recipients: to, unblock: to, waiting: true}, next: "2:unblocked:P:waiting"},
		"unblocked, then assigned to another":   {last: "2:unblocked:P", now: situation{kind: noticeAssigned, plate: "Q", recipients: to, unblock: to}, post: noticeAssigned, next: "3:assigned:Q"},
		"assigned to itself, waits":             {now: situation{kind: noticeQuiet, plate: "P", waiting: true}, next: "0:quiet:P:waiting"},
		"assigned to itself, unblocked":         {last: "0:quiet:P:waiting", now: situation{kind: noticeQuiet, plate: "P", unblock: to}, post: noticeUnblocked, next: "1:unblocked:P"},
		"proposed while it waits":               {now: situation{kind: noticeProposed, plate: "P", recipients: to, waiting: true}, post: noticeProposed, next: "1:proposed:P"},
		"proposed, the waiting ends":            {last: "1:proposed:P", now: situation{kind: noticeProposed, plate: "P", recipients: to, unblock: to}, next: "1:proposed:P"},
		"accepted while it waits":               {last: "1:proposed:P", now: situation{kind: noticeAssigned, plate: "P", recipients: to, waiting: true}, post: noticeAssigned, next: "2:assigned:P:waiting"},
		"withdrawn while it waits":              {last: "2:assigned:P:waiting", now: situation{kind: noticeProposed, plate: "P", recipients: to, waiting: true}, post: noticeProposed, next: "3:proposed:P"},
		"what cannot be read counts as nothing": {last: "nonsense", now: situation{kind: noticeAssigned, plate: "P", recipients: to}, post: noticeAssigned, next: "1:assigned:P"},
	} {
		t.Run(name, func(t *testing.T) {
			next, post := decideNotice(parseMark(c.last), c.now)
			if post != c.post || next.String() != c.next {
				t.Errorf("post %q and remember %q, want %q and %q", post, next, c.post, c.next)
			}
			// What was decided once is not decided again.
			if again, post := decideNotice(parseMark(next.String()), c.now); post != "" || again.String() != next.String() {
				t.Errorf("the second look posts %q and remembers %q", post, again)
			}
		})
	}
}

// posted gives what was posted, in a form that is easy to compare: whom it mentions and how it begins.
func (s *stage) posted() []string {
	names := map[string]string{}
	for name := range s.agents {
		names[s.plate(name)] = name
	}
	var out []string
	for _, m := range s.poster.all() {
		var to []string
		for _, mention := range m.Mentions {
			to = append(to, names[mention.Plate]+"/"+mention.TaskRef)
		}
		verb := "?"
		for _, v := range []string{"is assigned to", "was proposed by", "was rejected by", "waits for nothing any more"} {
			if strings.Contains(m.Body, v) {
				verb = v
			}
		}
		out = append(out, verb+" → "+strings.Join(to, " "))
	}
	return out
}

func (s *stage) wantPosted(want ...string) {
	s.Helper()
	if diff := cmp.Diff(want, s.posted()); diff != "" {
		s.Errorf("posted (-want +got):\n%s", diff)
	}
}

func TestNotices(t *testing.T) {
	s := newStage(t)
	s.create(testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["helper"]))
	s.settle("work")
	s.wantPosted("was proposed by → deputy/work")

	s.update("work", func(t *v1alpha1.Task) {
		t.Spec.Decision = &v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictReject, By: "bob", Reason: "busy"}
	})
	s.settle("work")
	s.wantPosted("was proposed by → deputy/work", "was rejected by → cc/work")
	if body := s.poster.all()[1].Body; !strings.Contains(body, "busy") {
		t.Errorf("the reason is missing: %s", body)
	}

	// Assigned to somebody of the same house, then back and forth: each time is news.
	for _, to := range []string{"dd", "helper", "dd"} {
		s.update("work", func(t *v1alpha1.Task) { t.Spec.Decision, t.Spec.Assignee = nil, s.plate(to) })
		s.settle("work")
	}
	s.wantPosted("was proposed by → deputy/work", "was rejected by → cc/work",
		"is assigned to → dd/work", "was proposed by → deputy/work", "is assigned to → dd/work")

	// A claim and its release are none.
	s.claim("work", "dd", "s1")
	s.settle("work")
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	s.settle("work")
	if n := len(s.poster.all()); n != 5 {
		t.Errorf("%d messages after a claim and its end, want 5", n)
	}
	m := s.poster.all()[2]
	if m.Sender != (v1alpha1.MessageSender{Type: v1alpha1.SenderSystem, ID: "task-controller", Name: "rooms"}) {
		t.Errorf("sender %+v", m.Sender)
	}
	if want := `Task "Do work" is assigned to @dd(said) by @cc(said). Definition of done: work is done`; m.Body != want {
		t.Errorf("body %q, want %q", m.Body, want)
	}
}

func TestNoNotice(t *testing.T) {
	t.Run("to oneself", func(t *testing.T) {
		s := newStage(t)
		s.create(testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["cc"]))
		s.settle("work")
		s.wantPosted()
	})
	t.Run("about what nobody is assigned to", func(t *testing.T) {
		s := newStage(t)
		s.create(testenv.Task(s.ns, "lab", "work", "said"))
		s.settle("work")
		s.wantPosted()
	})
	t.Run("in a room that is paused, but later", func(t *testing.T) {
		s := newStage(t)
		room := &v1alpha1.Room{}
		s.must(s.env.Client.Get(t.Context(), s.key("lab"), room))
		room.Spec.State = v1alpha1.RoomPaused
		s.must(s.client.Update(t.Context(), room))
		s.create(testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["dd"]))
		s.settle("work")
		s.wantPosted()
		room.Spec.State = v1alpha1.RoomActive
		s.must(s.client.Update(t.Context(), room))
		s.settle("work")
		s.wantPosted("is assigned to → dd/work")
	})
}

// TestNoticeOnceAcrossCrash stops the reconciler between the notice and the write that remembers it.
func TestNoticeOnceAcrossCrash(t *testing.T) {
	s := newStage(t)
	s.create(testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["dd"]))
	crash := errors.New("crash")
	s.hooks.before = func(string) error { return crash }
	if _, err := s.once("work"); !errors.Is(err, crash) {
		t.Fatalf("got %v", err)
	}
	s.wantPosted("is assigned to → dd/work")
	s.hooks.before = nil
	// The title is changed before the next one comes up: the words differ, the notice is the same.
	s.update("work", func(t *v1alpha1.Task) { t.Spec.Title = "Do more" })
	s.restart()
	s.settle("work")
	s.wantPosted("is assigned to → dd/work")
	if got := s.task("work").Status.LastNotice; got != "1:assigned:"+s.plate("dd") {
		t.Errorf("remembered %q", got)
	}
}

// TestNoticeFails lets the room's log fail: what was decided is written all the same, and the notice comes later.
func TestNoticeFails(t *testing.T) {
	s := newStage(t)
	s.create(testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["dd"]))
	s.poster.fail = errors.New("the log is away")
	if _, err := s.once("work"); !errors.Is(err, s.poster.fail) {
		t.Fatalf("got %v", err)
	}
	if c := s.task("work").Status.Consent; c == nil || c.State != v1alpha1.ConsentAuto {
		t.Errorf("consent %+v, want Auto", c)
	}
	s.poster.fail = nil
	s.settle("work")
	s.wantPosted("is assigned to → dd/work")
}

func TestNoticeIsBounded(t *testing.T) {
	s := newStage(t)
	task := testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["dd"])
	task.Spec.Title, task.Spec.DefinitionOfDone = strings.Repeat("ü", 256), strings.Repeat("界", 2000)
	s.create(task)
	s.settle("work")
	m := s.poster.all()[0]
	if n := len([]rune(m.Body)); n > v1alpha1.MaxBodyCharacters/2 {
		t.Errorf("the body has %d characters", n)
	}
	if m.Key == "" || len(m.Key) != len(ids.Digest("x")) {
		t.Errorf("key %q", m.Key)
	}
}
