package task

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/test/testenv"
)

// TestConsentModes gives tasks to helper, whose owner is bob, under every mode, and lets bob withdraw the consent then.
func TestConsentModes(t *testing.T) {
	mallory := &v1alpha1.TaskCreator{User: "mallory"}
	said := &v1alpha1.TaskCreator{User: "said"}
	for name, c := range map[string]struct {
		mode    v1alpha1.ConsentMode
		trusted []string
		by      *v1alpha1.TaskCreator
		want    v1alpha1.ConsentState
	}{
		"no consent":                           {by: said, want: v1alpha1.ConsentPending},
		"task by task":                         {mode: v1alpha1.ConsentTaskByTask, by: said, want: v1alpha1.ConsentPending},
		"all":                                  {mode: v1alpha1.ConsentApproveAll, by: mallory, want: v1alpha1.ConsentAccepted},
		"a collaborator":                       {mode: v1alpha1.ConsentTrustCollaborator, trusted: []string{"said"}, by: said, want: v1alpha1.ConsentAccepted},
		"not a collaborator":                   {mode: v1alpha1.ConsentTrustCollaborator, trusted: []string{"said"}, by: mallory, want: v1alpha1.ConsentPending},
		"somebody of the room":                 {mode: v1alpha1.ConsentTrustRoom, by: said, want: v1alpha1.ConsentAccepted},
		"somebody who is not of the room":      {mode: v1alpha1.ConsentTrustRoom, by: mallory, want: v1alpha1.ConsentPending},
		"the owner of the assignee":            {by: &v1alpha1.TaskCreator{User: "bob"}, want: v1alpha1.ConsentAuto},
		"nobody knows who, and all is allowed": {mode: v1alpha1.ConsentApproveAll, want: v1alpha1.ConsentAccepted},
		"nobody knows who, the room is":        {mode: v1alpha1.ConsentTrustRoom, want: v1alpha1.ConsentPending},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			agreed := testenv.Consent(s.ns, "lab", "bob", c.mode, c.trusted...)
			if c.mode != "" {
				s.create(agreed)
			}
			task := testenv.Task(s.ns, "lab", "work", "")
			task.Spec.Creator, task.Spec.Assignee = c.by, "helper"
			s.create(task)
			got := s.settle("work").Status.Consent
			if got.State != c.want || got.Assignee != s.plate("helper") {
				t.Fatalf("consent %+v, want %s for helper", got, c.want)
			}
			if c.mode == "" {
				return
			}
			s.must(s.client.Delete(t.Context(), agreed))
			if got := s.settle("work").Status.Consent; got.State != v1alpha1.ConsentPending {
				t.Errorf("consent %+v after bob withdrew his, want Pending", got)
			}
		})
	}
}

// TestConsentIsGivenLater lets tasks wait first.
func TestConsentIsGivenLater(t *testing.T) {
	s := newStage(t)
	s.create(testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["helper"]))
	s.settle("work")
	agreed := testenv.Consent(s.ns, "lab", "bob", v1alpha1.ConsentTrustCollaborator, "said")
	s.create(agreed)
	got := s.settle("work").Status.Consent
	want := &v1alpha1.TaskConsent{
		State: v1alpha1.ConsentAccepted, Assignee: s.plate("helper"), By: "TrustCollaborator", Standing: true,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(v1alpha1.TaskConsent{}, "At")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want2 := []string{"Normal ConsentAutoAccepted Decide: The owner's consent for the room (TrustCollaborator) accepted the proposal"}
	if diff := cmp.Diff(want2, s.events.all()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	// Work that has begun goes on when the consent is withdrawn.
	s.claim("work", "helper", "s1")
	s.settle("work")
	s.must(s.client.Delete(t.Context(), agreed))
	task := s.settle("work")
	if task.Status.State != v1alpha1.TaskDoing || task.Status.Consent.State != v1alpha1.ConsentAccepted {
		t.Errorf("%s with consent %s, want Doing and Accepted", task.Status.State, task.Status.Consent.State)
	}
	status, p := tasks.Release(task, tasks.Actor{Plate: s.plate("helper"), Session: "s1"}, nil, s.clock.Now())
	if p != nil {
		t.Fatal(p)
	}
	task.Status = *status
	s.must(s.client.Status().Update(t.Context(), task))
	if got := s.settle("work").Status.Consent.State; got != v1alpha1.ConsentPending {
		t.Errorf("consent %s after the work was given back, want Pending", got)
	}
}

// TestDecisionWithKubectl decides by the spec, as a person does.
func TestDecisionWithKubectl(t *testing.T) {
	for name, c := range map[string]struct {
		creator  string
		decision v1alpha1.TaskDecision
		want     v1alpha1.ConsentState
		invalid  string
	}{
		"accepted":                 {"said", v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictAccept, By: "bob"}, v1alpha1.ConsentAccepted, ""},
		"rejected":                 {"said", v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictReject, By: "bob", Reason: "no"}, v1alpha1.ConsentRejected, ""},
		"by one's own proposer":    {"said", v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictAccept, By: "said"}, v1alpha1.ConsentPending, "False NoSay"},
		"by somebody else":         {"said", v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictAccept, By: "mallory"}, v1alpha1.ConsentPending, "False NoSay"},
		"by nobody knows whom":     {"said", v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictAccept}, v1alpha1.ConsentPending, "False NoSay"},
		"of the same owner anyway": {"bob", v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictReject, By: "bob"}, v1alpha1.ConsentAuto, "False OwnProposal"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			task := testenv.Task(s.ns, "lab", "work", c.creator)
			task.Spec.Assignee = "helper"
			s.create(task)
			s.settle("work")
			s.update("work", func(t *v1alpha1.Task) { t.Spec.Decision = &c.decision })
			got := s.settle("work").Status.Consent
			if got.State != c.want {
				t.Fatalf("consent %s, want %s", got.State, c.want)
			}
			decided := c.want == v1alpha1.ConsentAccepted || c.want == v1alpha1.ConsentRejected
			if got := conditionsOf(s.task("work"))[v1alpha1.DecisionValidCondition]; got != c.invalid {
				t.Errorf("condition %q, want %q", got, c.invalid)
			}
			list := s.events.all()
			if len(list) != 1 || strings.Contains(list[0], "Warning DecisionIgnored") == decided {
				t.Errorf("events %q", list)
			}
			if decided {
				// A decision in person stands, whatever the owner agrees to in general.
				s.create(testenv.Consent(s.ns, "lab", "bob", v1alpha1.ConsentApproveAll))
				if again := s.settle("work").Status.Consent; again.State != c.want {
					t.Errorf("consent %s after a Consent came, want %s", again.State, c.want)
				}
			}
		})
	}
}

// TestDecisionOnOtherTerms lets the creator change the words between the owner's reading and deciding.
func TestDecisionOnOtherTerms(t *testing.T) {
	s := newStage(t)
	task := testenv.Task(s.ns, "lab", "work", "said")
	task.Spec.Assignee = "helper"
	s.create(task)
	read := s.settle("work").Status.Consent.Terms
	s.update("work", func(t *v1alpha1.Task) { t.Spec.Detail = "burn the house" })
	s.update("work", func(t *v1alpha1.Task) {
		t.Spec.Decision = &v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictAccept, By: "bob", Terms: read}
	})
	got := s.settle("work")
	if c := conditionsOf(got)[v1alpha1.DecisionValidCondition]; got.Status.Consent.State != v1alpha1.ConsentPending || c != "False TermsChanged" {
		t.Fatalf("consent %+v and condition %q after a decision on other words", got.Status.Consent, c)
	}
	// Read again, the proposal is accepted for what it says, and the word about the former decision goes.
	s.update("work", func(t *v1alpha1.Task) { t.Spec.Decision.Terms = got.Status.Consent.Terms })
	got = s.settle("work")
	if c := conditionsOf(got)[v1alpha1.DecisionValidCondition]; got.Status.Consent.State != v1alpha1.ConsentAccepted || c != "" {
		t.Errorf("consent %+v and condition %q after a decision on these words", got.Status.Consent, c)
	}
	want := []string{
		"Warning DecisionIgnored Decide: The decision has no effect: the task asks for something else now than what was decided on: " +
			"read it again, and decide with the terms in status.consent",
		"Normal ConsentAccepted Decide: bob accepted the proposal",
	}
	if diff := cmp.Diff(want, s.events.all()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestOldestConsentIsInForce lets a second Consent try to widen the first.
func TestOldestConsentIsInForce(t *testing.T) {
	s := newStage(t)
	first := testenv.Consent(s.ns, "lab", "bob", v1alpha1.ConsentTaskByTask)
	first.Name = "a-first"
	second := testenv.Consent(s.ns, "lab", "bob", v1alpha1.ConsentApproveAll)
	second.Name = "b-second"
	s.create(first, second, testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["helper"]))
	if got := s.settle("work").Status.Consent.State; got != v1alpha1.ConsentPending {
		t.Errorf("consent %s, want Pending", got)
	}
	s.must(s.client.Delete(t.Context(), first))
	if got := s.settle("work").Status.Consent.State; got != v1alpha1.ConsentAccepted {
		t.Errorf("consent %s after the first is gone, want Accepted", got)
	}
}

// TestConsentOfAnotherOwner lets somebody agree to everything, for agents that are not theirs.
func TestConsentOfAnotherOwner(t *testing.T) {
	s := newStage(t)
	s.create(testenv.Consent(s.ns, "lab", "mallory", v1alpha1.ConsentApproveAll), testenv.Consent(s.ns, "elsewhere", "bob", v1alpha1.ConsentApproveAll))
	s.create(testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["helper"]))
	if got := s.settle("work").Status.Consent.State; got != v1alpha1.ConsentPending {
		t.Errorf("consent %s, want Pending", got)
	}
}

// TestBridgeDecisionIsAnnounced lets the bridge write the decision: the Event comes once, and not again after a restart.
func TestBridgeDecisionIsAnnounced(t *testing.T) {
	s := newStage(t)
	s.create(testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["helper"]))
	task := s.settle("work")
	decided, ok, p := consent.Decide(task, consent.Proposal{Proposer: "said", Assignee: s.plate("helper"), AssigneeOwner: "bob"},
		consent.Decider{Owner: "bob", Delegated: true}, v1alpha1.VerdictAccept, "", s.clock.Now())
	if p != nil || !ok {
		t.Fatal(p, ok)
	}
	task.Status.Consent = &decided
	s.must(s.client.Status().Update(t.Context(), task))
	s.settle("work")
	s.restart()
	s.settle("work")
	if diff := cmp.Diff([]string{"Normal ConsentAccepted Decide: bob accepted the proposal"}, s.events.all()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestAssignee(t *testing.T) {
	s := newStage(t)
	outsider := testenv.Agent(s.ns, "outsider", "said")
	s.create(outsider)
	for i, c := range []struct {
		assignee, ready string
		consent         v1alpha1.ConsentState
	}{
		{"", "True Ready", v1alpha1.ConsentAuto},
		{"cc", "True Ready", v1alpha1.ConsentAuto},
		{s.plate("cc"), "True Ready", v1alpha1.ConsentAuto},
		{"helper", "True Ready", v1alpha1.ConsentPending},
		{"nobody", "False UnknownAssignee", v1alpha1.ConsentPending},
		{"BRNL-AGT-00000000000000000000000000", "False UnknownAssignee", v1alpha1.ConsentPending},
		{"outsider", "False UnknownAssignee", v1alpha1.ConsentAuto},
	} {
		name := fmt.Sprintf("work-%d", i)
		task := testenv.Task(s.ns, "lab", name, "said")
		task.Spec.Assignee = c.assignee
		s.create(task)
		got := s.settle(name)
		if ready := conditionsOf(got)[v1alpha1.ReadyCondition]; ready != c.ready || got.Status.Consent.State != c.consent {
			t.Errorf("assigned to %q: %s with consent %s, want %s and %s", c.assignee, ready, got.Status.Consent.State, c.ready, c.consent)
		}
	}
	task := testenv.Task(s.ns, "nowhere", "lost", "said")
	s.create(task)
	got := s.settle("lost")
	if ready := conditionsOf(got)[v1alpha1.ReadyCondition]; ready != "False RoomNotFound" || got.Status.Consent != nil {
		t.Errorf("in a room that is not there: %s with consent %+v", ready, got.Status.Consent)
	}
}

// TestReassignWhileDoing takes the task from its holder, and its lease with it.
func TestReassignWhileDoing(t *testing.T) {
	s := newStage(t)
	s.create(testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["dd"]))
	s.settle("work")
	held := s.claim("work", "dd", "s1")
	s.settle("work")
	s.update("work", func(t *v1alpha1.Task) { t.Spec.Assignee = s.plate("helper") })
	task := s.settle("work")
	want := &v1alpha1.TaskLastClaim{Holder: s.plate("dd"), Session: "s1", Epoch: held.Status.Epoch, Ended: v1alpha1.ClaimRevoked, At: metav1.NewTime(s.clock.Now())}
	if diff := cmp.Diff(want, task.Status.LastClaim); diff != "" {
		t.Errorf("last claim (-want +got):\n%s", diff)
	}
	if task.Status.State != v1alpha1.TaskTodo || task.Status.Consent.State != v1alpha1.ConsentPending {
		t.Errorf("%s with consent %s, want Todo and Pending", task.Status.State, task.Status.Consent.State)
	}
	if l := s.lease("work"); l != nil {
		t.Errorf("the lease is still there: %+v", l.Spec)
	}
	s.wantPosted("is assigned to → dd/work", "was proposed by → deputy/work")
	// Whoever holds what nobody is assigned to keeps it.
	s.create(testenv.Task(s.ns, "lab", "free", "said"))
	s.settle("free")
	s.claim("free", "helper", "s1")
	if got := s.settle("free").Status.State; got != v1alpha1.TaskDoing {
		t.Errorf("a task that nobody is assigned to was taken from its holder: %s", got)
	}
}

// TestPendingCannotBeClaimed holds careless writers to the consent.
func TestPendingCannotBeClaimed(t *testing.T) {
	s := newStage(t)
	s.create(testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["helper"]))
	task := s.settle("work")
	task.Status.State, task.Status.Epoch = v1alpha1.TaskDoing, task.Status.Epoch+1
	task.Status.Claim = &v1alpha1.TaskClaim{Holder: s.plate("helper"), Session: "s1"}
	if err := s.env.Client.Status().Update(t.Context(), task); err == nil {
		t.Error("a pending proposal was claimed")
	}
}

// TestConsentIsJudgedByWhoAssigned lets said's agent assign a task that bob created: it is said who asks, and not bob.
func TestConsentIsJudgedByWhoAssigned(t *testing.T) {
	s := newStage(t)
	task := testenv.Task(s.ns, "lab", "work", "bob")
	task.Spec.Assignee, task.Spec.AssignedBy = "helper", &v1alpha1.TaskCreator{Plate: s.plate("cc")}
	s.create(task)
	if got := s.settle("work").Status.Consent.State; got != v1alpha1.ConsentPending {
		t.Errorf("consent %s, want Pending: said assigned it", got)
	}
	s.update("work", func(t *v1alpha1.Task) { t.Spec.AssignedBy = &v1alpha1.TaskCreator{User: "bob"} })
	if got := s.settle("work").Status.Consent.State; got != v1alpha1.ConsentAuto {
		t.Errorf("consent %s, want Auto: bob assigned it", got)
	}
}

// TestEndedTaskStaysAsItWas lets room and agent go after the work is done.
func TestEndedTaskStaysAsItWas(t *testing.T) {
	s := newStage(t)
	s.create(testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["cc"]))
	s.settle("work")
	s.finish("work", v1alpha1.TaskDone)
	before := s.settle("work")
	s.must(s.client.Delete(t.Context(), s.agents["cc"]))
	s.must(s.client.Delete(t.Context(), testenv.Room(s.ns, "lab")))
	if after := s.settle("work"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a task that has ended was written: %v", conditionsOf(after))
	}
}

// TestNobodyIsToldOfARevocationThatFails lets the holder finish while the task is being given to somebody else.
func TestNobodyIsToldOfARevocationThatFails(t *testing.T) {
	s := newStage(t)
	s.create(testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["cc"]))
	s.settle("work")
	s.claim("work", "cc", "s1")
	s.settle("work")
	s.update("work", func(t *v1alpha1.Task) { t.Spec.Assignee = s.plate("dd") })
	s.hooks.before = func(write string) error {
		if write == writeStatus {
			s.hooks.before = nil
			done := s.task("work")
			out, p := tasks.SetStatus(done, tasks.Actor{Plate: s.plate("cc"), Session: "s1"}, tasks.Change{To: v1alpha1.TaskDone, Summary: "x"}, s.clock.Now())
			if p != nil {
				t.Error(p)
			}
			done.Status = *out.Status
			s.must(s.env.Client.Status().Update(t.Context(), done))
		}
		return nil
	}
	if _, err := s.once("work"); !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want a conflict", err)
	}
	s.wantPosted()
}
