package plugin_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/plugin"
	"github.com/agentrooms/agentrooms/internal/roomlog"
	"github.com/agentrooms/agentrooms/test/people"
)

type words = []string

// TestADayOfWork walks through the commands as an admin, an owner and an onlooker.
func TestADayOfWork(t *testing.T) {
	h := people.New(t)
	ada, bob, rita := sit(h, people.Ada), sit(h, people.Bob), sit(h, people.Rita)

	ada.ok(words{"NAME", "DISPLAY NAME", "lab", "The Lab", "Active"}, "list")
	ada.ok(words{"room.agentrooms.dev/lab\n"}, "list", "-o", "name")
	ada.ok(words{"ID", ids.ID(h.Room)}, "list", "-o", "wide")
	var list struct{ Items []v1alpha1.Room }
	must(t, yaml.Unmarshal([]byte(ada.ok(nil, "list", "-o", "yaml")), &list))
	if len(list.Items) != 1 || list.Items[0].UID != h.Room.UID || list.Items[0].ManagedFields != nil {
		t.Errorf("as YAML: %+v", list.Items)
	}
	ada.ok(words{"@cc(ada)", "@helper(bob)"}, "agents", "--room", "The Lab")
	if out := ada.ok(words{"@cc(ada)"}, "agents", "--mine"); strings.Contains(out, "helper") {
		t.Errorf("among Ada's agents:\n%s", out)
	}

	ada.ok(words{"sent to room", "as #1"}, "send", "lab", "Good morning", "--mention", "@helper(bob)")
	bob.in = "From a pipe\nin two lines\n"
	bob.ok(words{"as #2"}, "send", ids.ID(h.Room), "-")
	rita.ok(words{"#1 ", "ada → @helper(bob)\n    Good morning\n", "#2 ", "bob\n    From a pipe\n    in two lines\n"}, "tail", "lab", "--follow=false")

	ada.ok(words{"task", "/plan created, id "}, "task", "create", "lab", "Make a plan", "--done", "There is one", "--name", "plan", "--assignee", "@helper(bob)", "--priority", "7")
	h.Settled("plan")
	inbox := bob.ok(words{"TASK", "plan", "Make a plan", "@helper(bob)", "ada"}, "inbox")
	if strings.Contains(inbox, "TERMS") {
		t.Errorf("terms are for -o wide:\n%s", inbox)
	}
	ada.ok(words{"Nothing waits for your decision"}, "inbox")
	ada.fails(words{"only the owner of the assigned agent"}, "accept", "plan")
	bob.fails(words{"something else now"}, "accept", "plan", "--terms", "x")
	bob.ok(words{"plan: accepted, \"Make a plan\""}, "accept", "plan", "--terms", consent.Terms(&h.Settled("plan").Spec))
	h.Claim("plan", h.Helper, "s1")
	rita.ok(words{"STATE", "Doing", "plan", "Make a plan", "@helper(bob)", "@helper(bob)#s1", "Accepted", "7"}, "board", "lab")
	rita.ok(words{"State:         Doing", "Consent:       Accepted by bob", "Holder:        @helper(bob)#s1", "Definition of done:\n  There is one", "Todo → Doing"}, "task", "show", "plan")
	ada.ok(words{"plan is Todo"}, "task", "release", "plan", "--reason", "it hangs")
	ada.ok(words{"plan is Todo, assigned to @cc(ada)"}, "task", "assign", "plan", "cc")
	ada.ok(words{"plan is Todo"}, "task", "assign", "plan", "--nobody")
	ada.ok(words{"plan is Todo"}, "task", "set", "plan", "--order=-5")
	ada.fails(words{"reason must be given"}, "task", "cancel", "plan")
	ada.ok(words{"plan is Cancelled"}, "task", "cancel", ids.ID(h.Settled("plan")), "-r", "no need")
	ada.ok(words{"plan is Cancelled and archived"}, "task", "archive", "plan")
	rita.ok(words{"has no such tasks"}, "board", "lab")
	rita.ok(words{"plan"}, "board", "lab", "--archived", "--state", "Cancelled")
	ada.ok(words{"plan is Todo"}, "task", "reopen", "plan")

	bob.ok(words{"TaskByTask, as you have set nothing"}, "consent", "lab")
	bob.ok(words{"TrustCollaborator in room lab", "you trust ada"}, "consent", "lab", "trust-collaborator", "--collaborator", "ada")
	bob.ok(words{"TrustCollaborator in room lab"}, "consent", "lab")
	ada.ok(words{"lab is Paused"}, "room", "lab", "pause")
	ada.ok(words{"lab is Active"}, "room", "lab", "activate")
	ada.ok(words{"ROOM", "MSG/MIN", "lab"}, "top")
	ada.ok(words{"User:", "ada", "You may:", "send messages", "@cc(ada)"}, "whoami")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Everybody is told what they may not do, and nothing of it is done.
func TestPeopleWithoutRightsAreTold(t *testing.T) {
	h := people.New(t)
	h.Task("job", func(t *v1alpha1.Task) { t.Spec.Assignee = ids.Plate(h.Helper) })
	writes := [][]string{
		{"send", "lab", "x"}, {"task", "create", "lab", "x", "--done", "y"}, {"task", "assign", "job", "cc"}, {"task", "set", "job", "--priority", "1"},
		{"task", "cancel", "job", "-r", "x"}, {"room", "lab", "pause"}, {"consent", "lab", "TrustRoom"}, {"token", "cc"},
	}
	reads := [][]string{
		{"list"}, {"board", "lab"}, {"tail", "lab", "--follow=false"}, {"task", "show", "job"}, {"inbox"}, {"agents"}, {"top"}, {"consent", "lab"},
	}
	for _, args := range writes {
		sit(h, people.Rita).fails(words{"error:", "you may not", "hint:"}, args...)
		sit(h, people.Nora).fails(words{"error:", "you may not", "hint:"}, args...)
	}
	for _, args := range reads {
		sit(h, people.Rita).ok(nil, args...)
		sit(h, people.Nora).fails(words{"error:", "you may not", "in namespace " + h.Namespace, "hint:"}, args...)
	}
	sit(h, people.Rita).fails(words{"you may not list rooms in the whole cluster"}, "list", "-A")
	sit(h, people.Nora).ok(words{"You may not:", "see rooms"}, "whoami")
	if task := h.Settled("job"); task.Status.State != v1alpha1.TaskTodo || task.Spec.Assignee != ids.Plate(h.Helper) || task.Spec.Priority != 0 {
		t.Errorf("something was done: %+v", task.Spec)
	}
}

func TestWrongWordsAreRefused(t *testing.T) {
	h := people.New(t)
	ada := sit(h, people.Ada)
	for _, tc := range []struct {
		words words
		args  []string
	}{
		{words{"there is no room", "kubectl rooms list"}, words{"board", "attic"}},
		{words{"there is no task", "kubectl rooms board"}, words{"task", "show", "nothing"}},
		{words{"there is no task"}, words{"task", "show", "01K00000000000000000000000"}},
		{words{"there is no agent"}, words{"token", "nobody"}},
		{words{"names nobody in this room", "candidate: @cc(ada)", "hint:"}, words{"send", "lab", "x", "-m", "@mallory"}},
		{words{"--output must be one of"}, words{"list", "-o", "xml"}},
		{words{"--state must be one of"}, words{"board", "lab", "--state", "Lost"}},
		{words{"--lines must be"}, words{"tail", "lab", "--lines=-1"}},
		{words{"the mode must be one of"}, words{"consent", "lab", "maybe"}},
		{words{"--collaborator goes with"}, words{"consent", "lab", "--collaborator", "x"}},
		{words{"name an agent, or use --nobody"}, words{"task", "assign", "x"}},
		{words{"say what to change"}, words{"task", "set", "x"}},
		{words{"a room can be told to"}, words{"room", "lab", "burn"}},
		{words{"--duration must be"}, words{"token", "cc", "--duration", "1s"}},
		{words{"--window must be"}, words{"top", "--window", "1s"}},
		{words{"can be no name"}, words{"new", "room", "Not A Name"}},
		{words{"a role is one of"}, words{"new", "room", "x", "--agent", "cc:King"}},
		{words{"a scope is one of"}, words{"new", "agent", "x", "--owner", "ada", "--scopes", "Everything"}},
		{words{"--terms are those of one task"}, words{"accept", "a", "b", "--terms", "x"}},
		{words{"required flag(s) \"done\" not set"}, words{"task", "create", "lab", "x"}},
		{words{"unknown command"}, words{"dance"}},
		{words{"reading the kubeconfig", "hint:"}, words{"list", "--context", "nowhere"}},
	} {
		ada.fails(tc.words, tc.args...)
	}
}

func TestManifestsCanBeApplied(t *testing.T) {
	h := people.New(t)
	ada := sit(h, people.Ada)
	var room v1alpha1.Room
	must(t, yaml.UnmarshalStrict([]byte(ada.ok(nil, "new", "room", "attic", "--display-name", "yes", "--agent", "cc:Admin,helper", "--user", "a:b=Viewer", "--lease-seconds", "60")), &room))
	must(t, h.Env.Client.Create(t.Context(), &room))
	want := []v1alpha1.RoomMember{
		{Agent: &v1alpha1.AgentReference{Name: "cc"}, Role: v1alpha1.RoleAdmin},
		{Agent: &v1alpha1.AgentReference{Name: "helper"}, Role: v1alpha1.RoleMember}, {User: "a:b", Role: v1alpha1.RoleViewer},
	}
	if diff := cmp.Diff(want, room.Spec.Members); diff != "" || room.Spec.DisplayName != "yes" || room.Namespace != h.Namespace {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	account, agent, _ := strings.Cut(ada.ok(nil, "new", "agent", "new", "--decides", "--scopes", "Read,Invoke"), "---\n")
	inOrder(t, account, words{"kind: ServiceAccount", "name: new"})
	var a v1alpha1.Agent
	must(t, yaml.UnmarshalStrict([]byte(agent), &a))
	must(t, h.Env.Client.Create(t.Context(), &a))
	if a.Spec.Owner != people.Ada || len(a.Spec.Delegations) != 1 || a.Spec.Subjects[0].Name != "new" {
		t.Errorf("the agent is %+v", a.Spec)
	}
}

// hostile is what an agent or a person may write anywhere.
const hostile = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\u202c <script>alert(1)</script> \u009b31m 👩\u200d👩\u200d👧 "

func TestWhatStrangersWriteIsText(t *testing.T) {
	h := people.New(t)
	long := strings.Repeat("x", 8000)
	h.Task("evil", func(t *v1alpha1.Task) {
		t.Spec.Title, t.Spec.Detail, t.Spec.DefinitionOfDone, t.Spec.Assignee = hostile+long[:100], hostile+"\r\n"+long[:7000], hostile, ids.Plate(h.Helper)
	})
	for _, text := range []string{hostile + "\nline\ttwo\r" + hostile, long, strings.Repeat("e\u0301", 3000), strings.Repeat("👩\u200d👩\u200d👧", 1000)} {
		// With kubectl people can write what acts and the bridge refuse.
		batches, book := h.As(people.Bob).Batches(), roomlog.NewBook(nil)
		must(t, book.Open(t.Context(), batches, h.Room, func(*v1alpha1.MessageBatch) bool { return true }))
		_, err := roomlog.NewCommitter(batches, book, clock.RealClock{}, "kubectl", nil).Send(t.Context(), h.Room,
			v1alpha1.Message{Sender: acts.Sender(people.Bob), Body: text})
		must(t, err)
	}
	ada, bob := sit(h, people.Ada), sit(h, people.Bob)
	must(t, h.Env.Client.Get(t.Context(), h.Key("lab"), h.Room))
	h.Eventually("the display name", func(ctx context.Context) (bool, error) {
		h.Room.Spec.DisplayName, h.Room.Spec.Description = hostile, hostile
		err := h.Env.Client.Update(ctx, h.Room)
		if err != nil {
			_ = h.Env.Client.Get(ctx, h.Key("lab"), h.Room)
		}
		return err == nil, err
	})
	// ok fails when anything is written that a terminal obeys.
	for _, args := range [][]string{
		{"list"}, {"list", "-o", "wide"}, {"board", "lab"}, {"board", "lab", "-o", "wide"}, {"task", "show", "evil"}, {"tail", "lab", "--follow=false"}, {"top"},
		{"tail", "lab", "--follow=false", "-o", "wide"}, {"tail", "lab", "--follow=false", "-o", "yaml"}, {"tail", "lab", "--follow=false", "-o", "json"},
		{"list", "-o", "json"}, {"list", "-o", "yaml"}, {"board", "lab", "-o", "json"}, {"task", "show", "evil", "-o", "yaml"},
	} {
		ada.ok(nil, args...)
	}
	ada.ok(words{"Title:         ␛[2J␛]0;owned␇<U+202E>gnp.exe<U+202C> <script>alert(1)</script> <U+009B>31m 👩"}, "task", "show", "evil")
	bob.ok(words{"evil", "␛[2J"}, "inbox", "-o", "wide")
	bob.fails(words{"U+001B: remove it"}, "reject", "evil", "--reason", hostile)
	bob.fails(words{"U+001B: remove it"}, "send", "lab", hostile)
	bob.ok(words{"evil: rejected, \"␛[2J"}, "reject", "evil", "--reason", "\u202eon")
	ada.fails(words{"there is no room", "␛[2J"}, "board", "\x1b[2J")
	// Machines get what was written.
	var task v1alpha1.Task
	must(t, json.Unmarshal([]byte(ada.ok(nil, "task", "show", "evil", "-o", "json")), &task))
	if task.Spec.DefinitionOfDone != hostile || task.Status.Consent.Reason != "\u202eon" {
		t.Errorf("as JSON: %q, %q", task.Spec.DefinitionOfDone, task.Status.Consent.Reason)
	}
	var back v1alpha1.Task
	must(t, yaml.Unmarshal([]byte(ada.ok(nil, "task", "show", "evil", "-o", "yaml")), &back))
	if back.Spec.Detail != task.Spec.Detail {
		t.Errorf("as YAML: %q", back.Spec.Detail)
	}
}

func TestTheBoardFollowsChanges(t *testing.T) {
	h := people.New(t)
	h.Task("first", nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errs, code := sit(h, people.Rita).start(ctx, "board", "lab", "--watch")
	shows := func(text string) {
		t.Helper()
		must(t, wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return strings.Contains(out.String(), text), nil
		}))
	}
	shows("first")
	h.Task("second", nil)
	shows("second")
	h.Claim("second", h.CC, "s9")
	shows("@cc(ada)#s9")
	cancel()
	if c := <-code; c != 0 {
		t.Errorf("it ends with %d: %s", c, errs)
	}
	clean(t, out.String())
}

func TestCompletion(t *testing.T) {
	h := people.New(t)
	h.Task("task-one", nil)
	ada := sit(h, people.Ada)
	for _, tc := range []struct {
		want words
		args []string
	}{
		{words{"lab\n"}, words{"board", ""}},
		{words{"task-one\n"}, words{"task", "show", "ta"}},
		{words{"helper\n"}, words{"token", "he"}},
		{words{"TrustRoom\n"}, words{"consent", "lab", ""}},
		{words{"helper\n"}, words{"send", "lab", "x", "--mention", "h"}},
		{words{"json\n", "yaml\n"}, words{"list", "-o", ""}},
		{words{"cancel", "create", "show"}, words{"task", ""}},
	} {
		var out buffer
		args := append([]string{"__complete", "--kubeconfig", ada.file, "--as", people.Ada}, tc.args...)
		if code := plugin.Main(t.Context(), "test", args, plugin.Streams{In: strings.NewReader(""), Out: &out, Err: io.Discard}); code != 0 {
			t.Errorf("%v ends with %d", tc.args, code)
		}
		inOrder(t, out.String(), tc.want)
	}
}
