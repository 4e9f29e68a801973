package integration

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

func delegated(s *v1alpha1.AgentSpec) {
	s.Delegations = []v1alpha1.Delegation{v1alpha1.DelegationConsent}
}

// parties is a room of three people: said has an agent, maya has one that works and one that decides, bob has one.
func parties(t *testing.T) (*harness.World, string) {
	t.Helper()
	w := plane.World(t)
	w.Agent("cc", "said")
	w.Agent("dd", "maya")
	w.Agent("decider", "maya", delegated)
	w.Agent("ee", "bob", delegated)
	room := w.Room("deal", nil, harness.Member("cc"), harness.Member("dd"), harness.Member("decider"), harness.Admin("ee"))
	return w, room
}

func TestAProposalWaitsForTheOwner(t *testing.T) {
	w, room := parties(t)
	cc, dd, decider, ee := w.As("cc", "c"), w.As("dd", "d"), w.As("decider", "x"), w.As("ee", "e")
	task := newTask(t, cc, room, "please", "@dd")
	if task.Consent != "pending" {
		t.Fatalf("a task for another owner's agent gives %+v", task)
	}
	id := harness.Args{"task_id": task.TaskID}
	harness.Refused(t, dd, "CONSENT_REQUIRED", "claim_task", id)
	harness.Refused(t, dd, "FORBIDDEN", "accept_task", id)
	harness.Refused(t, cc, "FORBIDDEN", "accept_task", id)
	harness.Refused(t, ee, "FORBIDDEN", "accept_task", id)
	harness.Refused(t, ee, "FORBIDDEN", "reject_task", id)
	list := harness.Get[rooms.ProposalList](t, dd, "list_pending_consents", harness.Args{"room": room})
	if len(list.Proposals) != 1 || list.Proposals[0].From.Alias != "@cc(said)" || list.Proposals[0].Assignee != w.Plates["dd"] {
		t.Errorf("list_pending_consents gives %+v", list)
	}
	if list := harness.Get[rooms.ProposalList](t, cc, "list_pending_consents", harness.Args{"room": room}); len(list.Proposals) != 0 {
		t.Errorf("another owner sees %+v", list)
	}
	for range 2 {
		if accepted := harness.Get[rooms.Task](t, decider, "accept_task", id); accepted.Consent != "accepted" {
			t.Errorf("accept_task gives %+v", accepted)
		}
	}
	harness.Refused(t, decider, "CONFLICT", "reject_task", id)
	if c := harness.Get[rooms.Claim](t, dd, "claim_task", id); !c.OK {
		t.Errorf("claiming an accepted task gives %+v", c)
	}
}

// What the owner agreed to is what is done: whoever edits it asks anew, in their own name.
func TestOtherWordsAreAnotherProposal(t *testing.T) {
	w, room := parties(t)
	cc, dd, decider, ee := w.As("cc", "c"), w.As("dd", "d"), w.As("decider", "x"), w.As("ee", "e")
	task := newTask(t, cc, room, "water the plants", "@dd")
	id := harness.Args{"task_id": task.TaskID}
	edit := func(s *harness.Session, field, value, want string) {
		t.Helper()
		edited := harness.Get[rooms.Task](t, s, "update_task", harness.Args{"task_id": task.TaskID, field: value})
		if edited.Consent != want {
			t.Errorf("after an edit of %s the consent is %s, want %s", field, edited.Consent, want)
		}
	}
	for _, field := range []string{"title", "detail", "definition_of_done"} {
		harness.Get[rooms.Task](t, decider, "accept_task", id)
		edit(cc, field, "burn the house", "pending")
		harness.Refused(t, dd, "CONSENT_REQUIRED", "claim_task", id)
		awaitConsent(t, w, task.TaskID, "pending")
	}
	harness.Get[rooms.Task](t, decider, "accept_task", id)
	harness.Refused(t, cc, "VALIDATION", "update_task", harness.Args{"task_id": task.TaskID, "title": " "})
	if kept := harness.Get[rooms.Task](t, cc, "update_task", harness.Args{"task_id": task.TaskID, "priority": 9}); kept.Consent != "accepted" {
		t.Errorf("another priority makes the consent %s", kept.Consent)
	}
	harness.Get[rooms.Claim](t, dd, "claim_task", id)
	edit(cc, "title", "burn it while it is being done", "accepted")
	harness.Get[rooms.Task](t, dd, "set_status", harness.Args{"task_id": task.TaskID, "status": "done"})
	harness.Get[rooms.Task](t, cc, "set_status", harness.Args{"task_id": task.TaskID, "status": "todo"})
	awaitConsent(t, w, task.TaskID, "pending")
	harness.Refused(t, dd, "CONSENT_REQUIRED", "claim_task", id)

	own := newTask(t, cc, room, "my own work", "@cc")
	if edited := harness.Get[rooms.Task](t, ee, "update_task", harness.Args{"task_id": own.TaskID, "title": "bob's work"}); edited.Consent != "pending" {
		t.Errorf("an admin's words in said's task for said's agent have the consent %s", edited.Consent)
	}
	harness.Refused(t, cc, "CONSENT_REQUIRED", "claim_task", harness.Args{"task_id": own.TaskID})

	kubectl := newTask(t, cc, room, "my other work", "@cc")
	object := taskObject(t, w, kubectl.TaskID)
	patch := client.MergeFrom(object.DeepCopy())
	object.Spec.Title = "bob's other work"
	if err := as(t, "bob").Patch(t.Context(), object, patch); err != nil {
		t.Fatal(err)
	}
	awaitConsent(t, w, kubectl.TaskID, "pending")
}

func TestAProposalIsShownWhole(t *testing.T) {
	w, room := parties(t)
	cc, decider := w.As("cc", "c"), w.As("decider", "x")
	long := strings.Repeat("é", 8000)
	for i := range 10 {
		harness.Get[rooms.Task](t, cc, "create_task", harness.Args{
			"room": room, "title": "please", "detail": long, "definition_of_done": "x", "assignee": "@dd", "order": i,
		})
	}
	list := harness.Get[rooms.ProposalList](t, decider, "list_pending_consents", harness.Args{"room": room}).Proposals
	if len(list) != 10 || list[0].Detail != long || list[0].DetailLeftOut {
		t.Fatalf("of 10 proposals %d are shown, the first with %d bytes of detail", len(list), len(list[0].Detail))
	}
	if last := list[9]; last.Detail != "" || !last.DetailLeftOut {
		t.Errorf("the last of many long ones comes with %d bytes of detail, left out: %v", len(last.Detail), last.DetailLeftOut)
	}
}

func TestWhoDecidesOnWhatTheyReadDecidesOnNothingElse(t *testing.T) {
	w, room := parties(t)
	cc, dd, decider := w.As("cc", "c"), w.As("dd", "d"), w.As("decider", "x")
	task := newTask(t, cc, room, "harmless", "@dd")
	read := harness.Get[rooms.ProposalList](t, decider, "list_pending_consents", harness.Args{"room": room}).Proposals[0]
	harness.Get[rooms.Task](t, cc, "update_task", harness.Args{"task_id": task.TaskID, "title": "nasty"})
	harness.Refused(t, decider, "CONFLICT", "accept_task", harness.Args{"task_id": task.TaskID, "terms": read.Terms})
	harness.Refused(t, dd, "CONSENT_REQUIRED", "claim_task", harness.Args{"task_id": task.TaskID})
	again := harness.Get[rooms.ProposalList](t, decider, "list_pending_consents", harness.Args{"room": room}).Proposals[0]
	if again.Title != "nasty" || again.Terms == read.Terms {
		t.Errorf("the proposal reads %+v", again)
	}
	accepted := harness.Get[rooms.Task](t, decider, "accept_task", harness.Args{"task_id": task.TaskID, "terms": again.Terms})
	if accepted.Consent != "accepted" {
		t.Errorf("accepting what was read gives %+v", accepted)
	}
}

func TestARejectionComesBackToItsAuthor(t *testing.T) {
	w, room := parties(t)
	cc, dd, decider := w.As("cc", "c"), w.As("dd", "d"), w.As("decider", "x")
	task := newTask(t, cc, room, "please", "@dd")
	rejected := harness.Get[rooms.Task](t, decider, "reject_task", harness.Args{"task_id": task.TaskID, "reason": "no time"})
	if rejected.Consent != "rejected" || rejected.ConsentReason != "no time" {
		t.Errorf("reject_task gives %+v", rejected)
	}
	harness.Refused(t, dd, "CONSENT_REQUIRED", "claim_task", harness.Args{"task_id": task.TaskID})
	harness.Await(t, "the author to be told", func() bool {
		for _, m := range harness.Get[rooms.MentionList](t, cc, "check_mentions", nil).Mentions {
			if m.TaskID == task.TaskID {
				return true
			}
		}
		return false
	})
	again := harness.Get[rooms.Task](t, cc, "assign_task", harness.Args{"task_id": task.TaskID, "assignee": "@dd"})
	if again.Consent != "pending" {
		t.Errorf("proposing it anew gives %+v", again)
	}
}

func TestEveryModeInBothDirections(t *testing.T) {
	for _, c := range []struct {
		mode, collaborator string
		said, bob          string
	}{
		{"task_by_task", "", "pending", "pending"},
		{"approve_all", "", "accepted", "accepted"},
		{"trust_collaborator", "said", "accepted", "pending"},
		{"trust_collaborator", "@ee", "pending", "accepted"},
		{"trust_room", "", "accepted", "accepted"},
	} {
		t.Run(c.mode+" "+c.collaborator, func(t *testing.T) {
			w, room := parties(t)
			cc, decider, ee := w.As("cc", "c"), w.As("decider", "x"), w.As("ee", "e")
			args := harness.Args{"room": room, "mode": c.mode}
			if c.collaborator != "" {
				args["collaborator"] = c.collaborator
			}
			set := harness.Get[rooms.RoomConsent](t, decider, "set_room_consent", args)
			if set.Owner != "maya" || set.Mode != c.mode {
				t.Errorf("set_room_consent gives %+v", set)
			}
			fromSaid, fromBob := newTask(t, cc, room, "from said", "@dd"), newTask(t, ee, room, "from bob", "@dd")
			if fromSaid.Consent != c.said || fromBob.Consent != c.bob {
				t.Errorf("said's task is %s and bob's %s, want %s and %s", fromSaid.Consent, fromBob.Consent, c.said, c.bob)
			}
			if back := newTask(t, w.As("dd", "d"), room, "to said", "@cc"); back.Consent != "pending" {
				t.Errorf("maya's trust opened said's door: %+v", back)
			}
			awaitConsent(t, w, fromSaid.TaskID, c.said)
			awaitConsent(t, w, fromBob.TaskID, c.bob)
		})
	}
}

func awaitConsent(t *testing.T, w *harness.World, task, state string) {
	t.Helper()
	want := map[string]v1alpha1.ConsentState{
		"pending": v1alpha1.ConsentPending, "accepted": v1alpha1.ConsentAccepted, "auto": v1alpha1.ConsentAuto, "rejected": v1alpha1.ConsentRejected,
	}[state]
	harness.Await(t, "the controller to judge the consent "+state, func() bool {
		c := taskObject(t, w, task).Status.Consent
		return c != nil && c.State == want
	})
}

func TestRevocationStopsWhatHasNotStartedAndLetsWorkFinish(t *testing.T) {
	w, room := parties(t)
	cc, dd, decider := w.As("cc", "c"), w.As("dd", "d"), w.As("decider", "x")
	waiting := newTask(t, cc, room, "waiting before", "@dd")
	harness.Get[rooms.RoomConsent](t, decider, "set_room_consent", harness.Args{"room": room, "mode": "trust_room"})
	awaitConsent(t, w, waiting.TaskID, "accepted")
	begun, open := newTask(t, cc, room, "begun", "@dd"), newTask(t, cc, room, "open", "@dd")
	harness.Get[rooms.Claim](t, dd, "claim_task", harness.Args{"task_id": begun.TaskID})
	harness.Get[rooms.RoomConsent](t, decider, "set_room_consent", harness.Args{"room": room, "mode": "task_by_task"})
	awaitConsent(t, w, open.TaskID, "pending")
	awaitConsent(t, w, waiting.TaskID, "pending")
	harness.Refused(t, dd, "CONSENT_REQUIRED", "claim_task", harness.Args{"task_id": open.TaskID})
	done := harness.Get[rooms.Task](t, dd, "set_status", harness.Args{"task_id": begun.TaskID, "status": "done"})
	if done.Status != "done" {
		t.Errorf("work that had begun could not be finished: %+v", done)
	}
	harness.Refused(t, dd, "FORBIDDEN", "set_room_consent", harness.Args{"room": room, "mode": "approve_all"})
	harness.Refused(t, decider, "VALIDATION", "set_room_consent", harness.Args{"room": room, "mode": "trust_collaborator"})
	harness.Refused(t, decider, "VALIDATION", "set_room_consent", harness.Args{"room": room, "mode": "trust_collaborator", "collaborator": "nobody"})
}

// as gives a client that acts as a user.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(config, client.Options{Scheme: harness.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTasksMadeWithKubectlAreJudgedByWhoMadeThem(t *testing.T) {
	w, room := parties(t)
	create := func(name, user, assignee string) *v1alpha1.Task {
		task := &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
			Spec: v1alpha1.TaskSpec{
				RoomRef: v1alpha1.RoomReference{Name: "deal"}, Title: name, DefinitionOfDone: "x", Assignee: assignee,
			},
		}
		if err := as(t, user).Create(context.Background(), task); err != nil {
			t.Fatal(err)
		}
		return task
	}
	for _, c := range []struct {
		name, user, assignee string
		want                 v1alpha1.ConsentState
	}{
		{"own", "maya", "dd", v1alpha1.ConsentAuto},
		{"foreign", "said", "dd", v1alpha1.ConsentPending},
		{"nobody", "said", "", v1alpha1.ConsentAuto},
		{"by-plate", "maya", w.Plates["dd"], v1alpha1.ConsentAuto},
	} {
		task := create(c.name, c.user, c.assignee)
		harness.Await(t, c.name+" to be judged", func() bool {
			err := plane.Client.Get(context.Background(), client.ObjectKeyFromObject(task), task)
			return err == nil && task.Status.Consent != nil && task.Status.Consent.State == c.want
		})
	}
	decided := create("decided", "said", "dd")
	decide := func(user string) {
		t.Helper()
		patch := client.MergeFrom(decided.DeepCopy())
		decided.Spec.Decision = &v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictAccept, By: "maya"}
		_ = as(t, user).Patch(context.Background(), decided, patch)
	}
	harness.Await(t, "the proposal to be pending", func() bool {
		err := plane.Client.Get(context.Background(), client.ObjectKeyFromObject(decided), decided)
		return err == nil && decided.Status.Consent != nil && decided.Status.Consent.State == v1alpha1.ConsentPending
	})
	decide("maya")
	harness.Await(t, "maya's decision to count", func() bool {
		err := plane.Client.Get(context.Background(), client.ObjectKeyFromObject(decided), decided)
		return err == nil && decided.Status.Consent.State == v1alpha1.ConsentAccepted && decided.Status.Consent.By == "maya"
	})
	dd := w.As("dd", "d")
	board := harness.Get[rooms.Board](t, dd, "read_board", harness.Args{"room": room})
	if board.Counts["todo"] != 5 {
		t.Errorf("the board counts %v, want 5 todo", board.Counts)
	}
}

func TestInvokeIsNeededForOtherOwnersAgentsOnly(t *testing.T) {
	w := plane.World(t)
	w.Agent("plain", "ann", func(s *v1alpha1.AgentSpec) { s.Scopes = []v1alpha1.Scope{v1alpha1.ScopeRead, v1alpha1.ScopeWrite} })
	w.Agent("mate", "ann")
	w.Agent("foreign", "bob")
	room := w.Room("r", nil, harness.Member("plain"), harness.Member("mate"), harness.Member("foreign"))
	plain := w.As("plain", "p")
	if task := newTask(t, plain, room, "for a mate", "@mate"); task.Consent != "auto" {
		t.Errorf("a task for an agent of the same owner gives %+v", task)
	}
	harness.Refused(t, plain, "FORBIDDEN_SCOPE", "create_task", harness.Args{
		"room": room, "title": "x", "definition_of_done": "x", "assignee": "@foreign",
	})
}
