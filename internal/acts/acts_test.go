package acts_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/roomlog"
	"github.com/agentrooms/agentrooms/test/people"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// refused wants a problem of a code whose text holds some words.
func refused(t *testing.T, err error, code problem.Code, words string) {
	t.Helper()
	p, ok := problem.As(err)
	switch {
	case err == nil:
		t.Errorf("accepted, want %s", code)
	case !ok:
		t.Errorf("no problem, but %v; want %s", err, code)
	case p.Code != code || !strings.Contains(p.Message, words):
		t.Errorf("%v (%s), want %s with %q", p, p.Hint, code, words)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// log reads a room's whole log.
func log(t *testing.T, h *people.House) []roomlog.Entry {
	t.Helper()
	book := roomlog.NewBook(nil)
	must(t, book.Open(t.Context(), h.As(people.Rita).Batches(), h.Room, func(*v1alpha1.MessageBatch) bool { return false }))
	return book.Log(roomlog.KeyOf(h.Room)).Before(0, 10000)
}

func TestPeopleSpeakInTheirOwnName(t *testing.T) {
	h := people.New(t)
	ada, bob := h.As(people.Ada), h.As(people.Bob)
	first, err := ada.Send(t.Context(), h.Room, acts.Draft{Text: "Hello", Mentions: []string{"@helper(bob)", "helper", "@cc(ada)#s1"}})
	must(t, err)
	second, err := bob.Send(t.Context(), h.Room, acts.Draft{Text: "Hi", ParentID: first.ID})
	must(t, err)

	got := log(t, h)
	if len(got) != 2 || first.Seq != 1 || second.Seq != 2 {
		t.Fatalf("the log has %d messages, sent as %d and %d", len(got), first.Seq, second.Seq)
	}
	want := v1alpha1.Message{
		Sender: v1alpha1.MessageSender{Type: v1alpha1.SenderHuman, ID: people.Ada, Name: people.Ada}, Body: "Hello",
		Mentions: []v1alpha1.Mention{{Plate: ids.Plate(h.Helper)}, {Plate: ids.Plate(h.CC), Session: "s1"}}, At: got[0].Message.At,
	}
	if diff := cmp.Diff(want, *got[0].Message); diff != "" {
		t.Errorf("the first message (-want +got):\n%s", diff)
	}
	if m := got[1].Message; m.ParentID != first.ID || m.Sender.ID != people.Bob {
		t.Errorf("the answer is %+v", m)
	}
	// Whoever says that they are somebody else is not let in, whatever their rights.
	liar := acts.New(ada.Client, people.Bob)
	_, err = liar.Send(t.Context(), h.Room, acts.Draft{Text: "I am Bob"})
	refused(t, err, problem.Forbidden, "every message must have the sender {type: Human, id: ada}")
}

func TestWhatCannotBeSaidIsRefusedAndNothingIsSent(t *testing.T) {
	h := people.New(t)
	ada := h.As(people.Ada)
	for name, tc := range map[string]struct {
		draft acts.Draft
		code  problem.Code
		words string
	}{
		"nothing":            {acts.Draft{Text: " \n\t"}, problem.Validation, "text may not be blank"},
		"too much":           {acts.Draft{Text: strings.Repeat("x", 8001)}, problem.TooLarge, "8001 characters"},
		"no text":            {acts.Draft{Text: "a\xff"}, problem.Validation, "UTF-8"},
		"orders to screens":  {acts.Draft{Text: "a\x1b[2J"}, problem.Validation, "U+001B: remove it"},
		"nobody":             {acts.Draft{Text: "x", Mentions: []string{"@mallory"}}, problem.Validation, "names nobody in this room"},
		"too many":           {acts.Draft{Text: "x", Mentions: make([]string, 51)}, problem.Validation, "at most 50"},
		"an answer to air":   {acts.Draft{Text: "x", ParentID: "01K00000000000000000000000"}, problem.Validation, "names no message"},
		"an answer to trash": {acts.Draft{Text: "x", ParentID: "\x1b[31m"}, problem.Validation, "names no message"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ada.Send(t.Context(), h.Room, tc.draft)
			refused(t, err, tc.code, tc.words)
		})
	}
	_, err := h.As(people.Rita).Send(t.Context(), h.Room, acts.Draft{Text: "x"})
	refused(t, err, problem.Forbidden, "you may not create messagebatches in namespace "+h.Namespace)
	_, err = h.As(people.Nora).Send(t.Context(), h.Room, acts.Draft{Text: "x"})
	refused(t, err, problem.Forbidden, "you may not get messagebatches")
	archived := h.Room.DeepCopy()
	archived.Spec.State = v1alpha1.RoomArchived
	_, err = ada.Send(t.Context(), archived, acts.Draft{Text: "x"})
	refused(t, err, problem.RoomNotActive, "archived")
	if got := log(t, h); len(got) != 0 {
		t.Errorf("%d messages were sent", len(got))
	}
}

// Several processes speak at once, none of which follows the log.
func TestManySpeakersLeaveNoGap(t *testing.T) {
	h := people.New(t)
	const speakers, each = 6, 8
	var group sync.WaitGroup
	failures := make(chan error, speakers*each)
	for n := range speakers {
		p := h.As([]string{people.Ada, people.Bob}[n%2])
		group.Go(func() {
			for i := range each {
				_, err := p.Send(t.Context(), h.Room, acts.Draft{Text: fmt.Sprintf("%d.%d", n, i)})
				failures <- err
			}
		})
	}
	group.Wait()
	close(failures)
	for err := range failures {
		must(t, err)
	}
	seen, next := map[string]bool{}, int64(1)
	for _, e := range log(t, h) {
		if seen[e.Message.Body] || e.Seq != next {
			t.Errorf("seq %d after %d says %q, seen before: %t", e.Seq, next-1, e.Message.Body, seen[e.Message.Body])
		}
		seen[e.Message.Body], next = true, next+1
	}
	if len(seen) != speakers*each {
		t.Errorf("the log holds %d of %d messages", len(seen), speakers*each)
	}
}

func TestTasksFromBirthToArchive(t *testing.T) {
	h := people.New(t)
	ada := h.As(people.Ada)
	ctx := t.Context()
	_, err := ada.CreateTask(ctx, h.Room, acts.NewTask{Title: " ", DefinitionOfDone: "x"})
	refused(t, err, problem.Validation, "title may not be blank")
	_, err = ada.CreateTask(ctx, h.Room, acts.NewTask{Title: "x", DefinitionOfDone: "x\a"})
	refused(t, err, problem.Validation, "U+0007")
	_, err = ada.CreateTask(ctx, h.Room, acts.NewTask{Title: "x", DefinitionOfDone: "x", Priority: 101})
	refused(t, err, problem.Validation, "spec.priority")
	_, err = ada.CreateTask(ctx, h.Room, acts.NewTask{Title: "x", DefinitionOfDone: "x", Assignee: "@mallory"})
	refused(t, err, problem.Validation, "names nobody")
	_, err = h.As(people.Rita).CreateTask(ctx, h.Room, acts.NewTask{Title: "x", DefinitionOfDone: "x"})
	refused(t, err, problem.Forbidden, "you may not create tasks in namespace "+h.Namespace)

	made, err := ada.CreateTask(ctx, h.Room, acts.NewTask{Title: "Write", DefinitionOfDone: "It is written", Assignee: "@cc(ada)"})
	must(t, err)
	key := client.ObjectKeyFromObject(made)
	task := h.Settled(key.Name)
	if task.Status.Consent.State != v1alpha1.ConsentAuto || task.Spec.Creator.User != people.Ada {
		t.Errorf("consent is %+v, creator %+v", task.Status.Consent, task.Spec.Creator)
	}
	for _, ref := range []string{made.Name, ids.ID(made)} {
		if found, err := ada.Task(ctx, h.Namespace, ref); err != nil || found.UID != made.UID {
			t.Errorf("%s is not found: %v", ref, err)
		}
	}
	second, err := ada.CreateTask(ctx, h.Room, acts.NewTask{Title: "Print", DefinitionOfDone: "x", DependsOn: []string{ids.ID(made)}})
	must(t, err)
	if diff := cmp.Diff([]string{made.Name}, second.Spec.DependsOn); diff != "" {
		t.Errorf("it depends on (-want +got):\n%s", diff)
	}

	changed, err := ada.Reprioritise(ctx, key, new(int64(-3)), new(int32(70)))
	must(t, err)
	if changed.Spec.Order != -3 || changed.Spec.Priority != 70 {
		t.Errorf("order %d, priority %d", changed.Spec.Order, changed.Spec.Priority)
	}
	_, err = ada.ArchiveTask(ctx, key, true)
	refused(t, err, problem.Conflict, "only one that is Done, Failed or Cancelled")
	_, err = ada.Reopen(ctx, key, "")
	refused(t, err, problem.Conflict, "the task is open")
	_, err = ada.Release(ctx, key, "", nil)
	refused(t, err, problem.Conflict, "nobody holds the task")
	_, err = ada.Cancel(ctx, key, " ")
	refused(t, err, problem.Validation, "reason must be given")

	task, err = ada.Cancel(ctx, key, "not wanted")
	must(t, err)
	last := task.Status.History[len(task.Status.History)-1]
	if task.Status.State != v1alpha1.TaskCancelled || task.Status.Reason != "not wanted" || last.By != people.Ada {
		t.Errorf("it is %s (%s) by %s", task.Status.State, task.Status.Reason, last.By)
	}
	_, err = ada.Assign(ctx, key, "cc")
	refused(t, err, problem.Conflict, "reopen it before")
	_, err = ada.ArchiveTask(ctx, key, true)
	must(t, err)
	task, err = ada.Reopen(ctx, key, "wanted after all")
	must(t, err)
	if task.Status.State != v1alpha1.TaskTodo || task.Spec.Archived {
		t.Errorf("reopened, it is %s, archived %t", task.Status.State, task.Spec.Archived)
	}
}

func TestAStuckLeaseIsReleased(t *testing.T) {
	h := people.New(t)
	ctx := t.Context()
	h.Task("stuck", nil)
	held := h.Claim("stuck", h.CC, "dead")
	for _, who := range []string{people.Rita, people.Nora} {
		_, err := h.As(who).Release(ctx, h.Key("stuck"), "", nil)
		refused(t, err, problem.Forbidden, "you may not")
	}
	bob := h.As(people.Bob)
	before := held.Status.Epoch - 1
	_, err := bob.Release(ctx, h.Key("stuck"), "", &before)
	refused(t, err, problem.Conflict, "changed hands")
	task, err := bob.Release(ctx, h.Key("stuck"), "its holder died", &held.Status.Epoch)
	must(t, err)
	last := task.Status.LastClaim
	if task.Status.State != v1alpha1.TaskTodo || last == nil || last.Ended != v1alpha1.ClaimRevoked || task.Status.Epoch != held.Status.Epoch+1 {
		t.Errorf("released, it is %s under epoch %d, last claim %+v", task.Status.State, task.Status.Epoch, last)
	}
	// An order is carried out once: who claims afterwards keeps the task.
	h.Claim("stuck", h.CC, "alive")
	_, err = bob.Reprioritise(ctx, h.Key("stuck"), nil, new(int32(1)))
	must(t, err)
	if task := h.Settled("stuck"); task.Status.State != v1alpha1.TaskDoing || task.Status.Claim.Session != "alive" {
		t.Errorf("the order was carried out again: %s, %+v", task.Status.State, task.Status.Claim)
	}
}

func TestOwnersDecideOnProposals(t *testing.T) {
	h := people.New(t)
	ctx := t.Context()
	ada, bob := h.As(people.Ada), h.As(people.Bob)
	propose := func(name string) *v1alpha1.Task {
		_, err := ada.CreateTask(ctx, h.Room, acts.NewTask{Name: name, Title: name, DefinitionOfDone: "x", Assignee: "@helper(bob)"})
		must(t, err)
		task := h.Settled(name)
		if task.Status.Consent.State != v1alpha1.ConsentPending {
			t.Fatalf("the proposal is %+v", task.Status.Consent)
		}
		return task
	}
	task := propose("first")
	_, err := ada.Accept(ctx, h.Key("first"), "", "")
	refused(t, err, problem.Forbidden, "only the owner of the assigned agent")
	_, err = h.As(people.Rita).Accept(ctx, h.Key("first"), "", "")
	refused(t, err, problem.Forbidden, "only the owner")
	_, err = bob.Accept(ctx, h.Key("first"), "other words", "")
	refused(t, err, problem.Conflict, "something else now")
	task, err = bob.Accept(ctx, h.Key("first"), consent.Terms(&task.Spec), "gladly")
	must(t, err)
	if c := task.Status.Consent; c.State != v1alpha1.ConsentAccepted || c.By != people.Bob || c.Standing {
		t.Errorf("accepted, it is %+v", c)
	}
	_, err = bob.Accept(ctx, h.Key("first"), "", "")
	must(t, err)
	_, err = bob.Reject(ctx, h.Key("first"), "", "")
	refused(t, err, problem.Conflict, "not pending")

	propose("second")
	task, err = bob.Reject(ctx, h.Key("second"), "", "no time")
	must(t, err)
	if c := task.Status.Consent; c.State != v1alpha1.ConsentRejected || c.Reason != "no time" {
		t.Errorf("rejected, it is %+v", c)
	}
	_, err = ada.Assign(ctx, h.Key("second"), "@helper(bob)")
	refused(t, err, problem.Conflict, "bob rejected this task for that agent: no time")
	_, err = ada.Assign(ctx, h.Key("second"), "")
	must(t, err)
	h.Settled("second")
	_, err = ada.Assign(ctx, h.Key("second"), ids.Plate(h.Helper))
	must(t, err)
	if c := h.Settled("second").Status.Consent; c.State != v1alpha1.ConsentPending {
		t.Errorf("proposed anew, it is %+v", c)
	}
}

func TestConsentIsSetOnceHoweverManySetIt(t *testing.T) {
	h := people.New(t)
	ctx := t.Context()
	var group sync.WaitGroup
	errs := make(chan error, 4)
	for range 4 {
		bob := h.As(people.Bob)
		group.Go(func() {
			_, err := bob.SetConsent(ctx, h.Room, v1alpha1.ConsentTrustCollaborator, []string{people.Ada})
			errs <- err
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		must(t, err)
	}
	var list v1alpha1.ConsentList
	must(t, h.Env.Client.List(ctx, &list, client.InNamespace(h.Namespace)))
	if len(list.Items) != 1 || list.Items[0].Spec.Owner != people.Bob {
		t.Fatalf("there are %d consents: %+v", len(list.Items), list.Items)
	}
	_, err := h.As(people.Ada).CreateTask(ctx, h.Room, acts.NewTask{Name: "taken", Title: "x", DefinitionOfDone: "x", Assignee: "helper"})
	must(t, err)
	if c := h.Settled("taken").Status.Consent; c.State != v1alpha1.ConsentAccepted || !c.Standing {
		t.Errorf("under the consent it is %+v", c)
	}
	bob := h.As(people.Bob)
	_, err = bob.Accept(ctx, h.Key("taken"), "", "")
	must(t, err) // it is accepted already
	_, err = bob.SetConsent(ctx, h.Room, "Whatever", nil)
	refused(t, err, problem.Validation, "spec.mode")
	_, err = h.As(people.Rita).SetConsent(ctx, h.Room, v1alpha1.ConsentApproveAll, nil)
	refused(t, err, problem.Forbidden, "you may not create consents")
}

func TestRoomsArePausedByWhoMay(t *testing.T) {
	h := people.New(t)
	ctx := t.Context()
	room, err := h.As(people.Ada).SetRoomState(ctx, h.Key("lab"), v1alpha1.RoomPaused)
	must(t, err)
	if room.Spec.State != v1alpha1.RoomPaused {
		t.Errorf("the room is %s", room.Spec.State)
	}
	if _, err := h.As(people.Ada).Send(ctx, room, acts.Draft{Text: "The agents have a break."}); err != nil {
		t.Errorf("in a paused room people speak: %v", err)
	}
	_, err = h.As(people.Ada).SetRoomState(ctx, h.Key("lab"), "Closed")
	refused(t, err, problem.Validation, "Active, Paused or Archived")
	_, err = h.As(people.Bob).SetRoomState(ctx, h.Key("lab"), v1alpha1.RoomActive)
	refused(t, err, problem.Forbidden, "you may not update rooms in namespace "+h.Namespace)
}

func TestWhatIsFound(t *testing.T) {
	h := people.New(t)
	ctx := t.Context()
	rita := h.As(people.Rita)
	for _, ref := range []string{"lab", "The Lab", ids.ID(h.Room)} {
		if r, err := rita.Room(ctx, h.Namespace, ref); err != nil || r.UID != h.Room.UID {
			t.Errorf("room %q: %v", ref, err)
		}
	}
	twin := testenv.Room(h.Namespace, "lab-2")
	twin.Spec.DisplayName = "The Lab"
	h.Env.Create(t, twin)
	_, err := rita.Room(ctx, h.Namespace, "The Lab")
	refused(t, err, problem.Validation, "several rooms are called")
	_, err = rita.Room(ctx, h.Namespace, "attic")
	refused(t, err, problem.NotFound, "there is no room")
	_, err = rita.Room(ctx, "", "lab")
	refused(t, err, problem.Forbidden, "you may not list rooms in the whole cluster")
	_, err = h.As(people.Nora).Room(ctx, h.Namespace, "lab")
	refused(t, err, problem.Forbidden, "you may not list rooms")
	_, err = rita.Task(ctx, h.Namespace, "nothing")
	refused(t, err, problem.NotFound, "there is no task")
}

func TestRightsAreWhatTheRolesSay(t *testing.T) {
	h := people.New(t)
	for user, want := range map[string]acts.Rights{
		people.Ada: {
			ReadRooms: true, ReadAgents: true, ReadTasks: true, ReadConsents: true, ReadMessages: true,
			Send: true, CreateTasks: true, ChangeTasks: true, SetConsent: true, ChangeRooms: true,
		},
		people.Rita: {ReadRooms: true, ReadAgents: true, ReadTasks: true, ReadConsents: true, ReadMessages: true},
		people.Nora: {},
	} {
		got, err := h.As(user).Rights(t.Context(), h.Namespace)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the rights of %s (-want +got):\n%s", user, diff)
		}
	}
}

func TestALostConnectionIsSaidSo(t *testing.T) {
	h := people.New(t)
	cfg := h.Config(people.Ada)
	cfg.Host = "https://127.0.0.1:1"
	_, err := acts.Login(t.Context(), cfg)
	refused(t, err, problem.Unavailable, "cannot be reached")
	ctx, cancel := context.WithCancel(t.Context())
	ada := h.As(people.Ada)
	cancel()
	if _, err := ada.Room(ctx, h.Namespace, "lab"); !errors.Is(err, context.Canceled) {
		t.Errorf("given up, it says %v", err)
	}
}
