package consent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func standing(mode v1alpha1.ConsentMode, collaborators ...string) *v1alpha1.Consent {
	return &v1alpha1.Consent{Spec: v1alpha1.ConsentSpec{Owner: "maya", Mode: mode, Collaborators: collaborators}}
}

// asked gives said's proposal to maya's agent dd.
func asked(c *v1alpha1.Consent) consent.Proposal {
	return consent.Proposal{Proposer: "said", Assignee: "dd", AssigneeOwner: "maya", Consent: c}
}

func with(p consent.Proposal, change func(*consent.Proposal)) consent.Proposal {
	change(&p)
	return p
}

func TestJudge(t *testing.T) {
	auto := v1alpha1.TaskConsent{State: v1alpha1.ConsentAuto, Assignee: "dd"}
	pending := v1alpha1.TaskConsent{State: v1alpha1.ConsentPending, Assignee: "dd"}
	accepted := func(by v1alpha1.ConsentMode) v1alpha1.TaskConsent {
		return v1alpha1.TaskConsent{State: v1alpha1.ConsentAccepted, Assignee: "dd", By: string(by), Standing: true}
	}
	inRoom := func(p *consent.Proposal) { p.ProposerInRoom = true }
	unknown := func(p *consent.Proposal) { p.Proposer = "" }
	own := func(p *consent.Proposal) { p.Proposer = "maya" }
	tests := map[string]struct {
		proposal consent.Proposal
		want     v1alpha1.TaskConsent
	}{
		"a task for nobody needs no consent":              {consent.Proposal{Proposer: "said"}, v1alpha1.TaskConsent{State: v1alpha1.ConsentAuto}},
		"a task for one's own agent needs none":           {with(asked(nil), own), auto},
		"not even where the owner wants to be asked":      {with(asked(standing(v1alpha1.ConsentTaskByTask)), own), auto},
		"without a Consent the owner is asked":            {asked(nil), pending},
		"TaskByTask asks":                                 {asked(standing(v1alpha1.ConsentTaskByTask)), pending},
		"TaskByTask asks members of the room too":         {with(asked(standing(v1alpha1.ConsentTaskByTask)), inRoom), pending},
		"ApproveAll accepts":                              {asked(standing(v1alpha1.ConsentApproveAll)), accepted(v1alpha1.ConsentApproveAll)},
		"TrustCollaborator accepts the listed":            {asked(standing(v1alpha1.ConsentTrustCollaborator, "lea", "said")), accepted(v1alpha1.ConsentTrustCollaborator)},
		"TrustCollaborator asks about others":             {asked(standing(v1alpha1.ConsentTrustCollaborator, "lea")), pending},
		"TrustCollaborator asks about members too":        {with(asked(standing(v1alpha1.ConsentTrustCollaborator, "lea")), inRoom), pending},
		"TrustRoom accepts members":                       {with(asked(standing(v1alpha1.ConsentTrustRoom)), inRoom), accepted(v1alpha1.ConsentTrustRoom)},
		"TrustRoom asks about others":                     {asked(standing(v1alpha1.ConsentTrustRoom)), pending},
		"a mode of a later version asks":                  {asked(standing("TrustTheStars")), pending},
		"nobody's proposal to nobody's agent is not auto": {consent.Proposal{Assignee: "dd"}, pending},
		"an unknown proposer is no collaborator":          {with(asked(standing(v1alpha1.ConsentTrustCollaborator, "")), unknown), pending},
		"an unknown proposer is no member":                {with(with(asked(standing(v1alpha1.ConsentTrustRoom)), inRoom), unknown), pending},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, consent.Judge(tc.proposal)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInForce(t *testing.T) {
	at := func(name string, age time.Duration) *v1alpha1.Consent {
		return &v1alpha1.Consent{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	}
	going := at("going", 3*time.Hour)
	going.DeletionTimestamp = &metav1.Time{Time: now}
	restored := at("restored", 0)
	restored.Annotations = map[string]string{v1alpha1.IDAnnotation: ids.ID(&v1alpha1.Consent{
		ObjectMeta: metav1.ObjectMeta{UID: "x", CreationTimestamp: metav1.NewTime(now.Add(-2 * time.Hour))},
	})}
	tests := map[string]struct {
		consents []*v1alpha1.Consent
		want     string
	}{
		"a restored one has its age":          {[]*v1alpha1.Consent{at("a", time.Hour), restored}, "restored"},
		"none of none":                        {nil, ""},
		"the only one":                        {[]*v1alpha1.Consent{at("a", 0)}, "a"},
		"the oldest of several":               {[]*v1alpha1.Consent{at("a", time.Hour), at("b", 2*time.Hour), at("c", 0)}, "b"},
		"the first by name of equal age":      {[]*v1alpha1.Consent{at("b", time.Hour), at("a", time.Hour)}, "a"},
		"not one that is being deleted":       {[]*v1alpha1.Consent{going, at("a", time.Hour)}, "a"},
		"none if the only one is on its way":  {[]*v1alpha1.Consent{going}, ""},
		"whatever the order they are read in": {[]*v1alpha1.Consent{at("c", 0), at("b", 2*time.Hour), at("a", time.Hour)}, "b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if c := consent.InForce(tc.consents); c != nil {
				got = c.Name
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func task(state v1alpha1.TaskState, c *v1alpha1.TaskConsent, d *v1alpha1.TaskDecision) *v1alpha1.Task {
	return &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Decision: d}, Status: v1alpha1.TaskStatus{State: state, Consent: c}}
}

// worded gives a task for dd on which maya decided when its title was "water the plants".
func worded(state v1alpha1.TaskState, decided v1alpha1.ConsentState, title string) *v1alpha1.Task {
	t := task(state, &v1alpha1.TaskConsent{
		State: decided, Assignee: "dd", By: "maya", At: metav1.NewTime(now.Add(-time.Hour)),
		Terms: consent.Terms(&v1alpha1.TaskSpec{Title: "water the plants", DefinitionOfDone: "wet"}),
	}, nil)
	t.Spec.Title, t.Spec.DefinitionOfDone = title, "wet"
	return t
}

func TestSettle(t *testing.T) {
	const (
		todo, doing, done, blocked = v1alpha1.TaskTodo, v1alpha1.TaskDoing, v1alpha1.TaskDone, v1alpha1.TaskBlocked
		pending, accepted          = v1alpha1.ConsentPending, v1alpha1.ConsentAccepted
		rejected, auto             = v1alpha1.ConsentRejected, v1alpha1.ConsentAuto
	)
	before := metav1.NewTime(now.Add(-time.Hour))
	old := func(state v1alpha1.ConsentState, standing bool, by string) *v1alpha1.TaskConsent {
		c := &v1alpha1.TaskConsent{State: state, Assignee: "dd", Standing: standing, By: by, At: before}
		if state == pending {
			c.Terms = consent.Terms(&v1alpha1.TaskSpec{})
		}
		return c
	}
	decision := func(v v1alpha1.Verdict, by string) *v1alpha1.TaskDecision {
		return &v1alpha1.TaskDecision{Verdict: v, By: by, Reason: "so"}
	}
	onTerms := func(title string) *v1alpha1.TaskDecision {
		d := decision(v1alpha1.VerdictAccept, "maya")
		d.Terms = consent.Terms(&v1alpha1.TaskSpec{Title: title})
		return d
	}
	all, ask := standing(v1alpha1.ConsentApproveAll), standing(v1alpha1.ConsentTaskByTask)
	tests := map[string]struct {
		task     *v1alpha1.Task
		proposal consent.Proposal
		want     v1alpha1.ConsentState
		by       string
		changed  bool
	}{
		"a new task is judged":                                         {task(todo, nil, nil), asked(ask), pending, "", true},
		"a new task for one's own agent is judged":                     {task(todo, nil, nil), with(asked(nil), func(p *consent.Proposal) { p.Proposer = "maya" }), auto, "", true},
		"what was judged stays while nothing changes":                  {task(todo, old(pending, false, ""), nil), asked(ask), pending, "", false},
		"a Consent that is given takes what is pending":                {task(todo, old(pending, false, ""), nil), asked(all), accepted, "ApproveAll", true},
		"a Consent that is withdrawn takes back what has not begun":    {task(todo, old(accepted, true, "ApproveAll"), nil), asked(ask), pending, "", true},
		"it takes back what is blocked":                                {task(blocked, old(accepted, true, "ApproveAll"), nil), asked(ask), pending, "", true},
		"what is being done is finished":                               {task(doing, old(accepted, true, "ApproveAll"), nil), asked(ask), accepted, "ApproveAll", false},
		"what is done stays done":                                      {task(done, old(accepted, true, "ApproveAll"), nil), asked(ask), accepted, "ApproveAll", false},
		"a Consent of another mode is noted":                           {task(todo, old(accepted, true, "TrustRoom"), nil), asked(all), accepted, "ApproveAll", true},
		"what was accepted in person outlives every Consent":           {task(todo, old(accepted, false, "maya"), nil), asked(ask), accepted, "maya", false},
		"it outlives them as long as the words stay":                   {worded(todo, accepted, "water the plants"), asked(ask), accepted, "maya", false},
		"other words are another proposal":                             {worded(todo, accepted, "burn the house"), asked(ask), pending, "", true},
		"also for a blocked task":                                      {worded(blocked, accepted, "burn the house"), asked(ask), pending, "", true},
		"a Consent may take them":                                      {worded(todo, accepted, "burn the house"), asked(all), accepted, "ApproveAll", true},
		"what is being done goes on":                                   {worded(doing, accepted, "burn the house"), asked(ask), accepted, "maya", false},
		"what is done stays":                                           {worded(done, accepted, "burn the house"), asked(ask), accepted, "maya", false},
		"other words revive nothing that was rejected":                 {worded(todo, rejected, "burn the house"), asked(all), rejected, "maya", false},
		"what was rejected in person stays rejected":                   {task(todo, old(rejected, false, "maya"), nil), asked(all), rejected, "maya", false},
		"another assignee is another proposal":                         {task(todo, &v1alpha1.TaskConsent{State: accepted, Assignee: "cc", By: "lea"}, nil), asked(ask), pending, "", true},
		"even a rejected one, even while being done":                   {task(doing, &v1alpha1.TaskConsent{State: rejected, Assignee: "cc", By: "lea"}, nil), asked(all), accepted, "ApproveAll", true},
		"one's own agent needs no consent any more":                    {task(todo, old(pending, false, ""), nil), with(asked(nil), func(p *consent.Proposal) { p.Proposer = "maya" }), auto, "", true},
		"another proposer is judged anew":                              {task(todo, old(auto, false, ""), nil), asked(ask), pending, "", true},
		"the owner's decision is carried out":                          {task(todo, old(pending, false, ""), decision(v1alpha1.VerdictAccept, "maya")), asked(ask), accepted, "maya", true},
		"so is a rejection":                                            {task(todo, old(pending, false, ""), decision(v1alpha1.VerdictReject, "maya")), asked(ask), rejected, "maya", true},
		"a decision that came with the task is carried out":            {task(todo, nil, decision(v1alpha1.VerdictAccept, "maya")), asked(ask), accepted, "maya", true},
		"the proposer's decision counts for nothing":                   {task(todo, old(pending, false, ""), decision(v1alpha1.VerdictAccept, "said")), asked(ask), pending, "", false},
		"a stranger's decision counts for nothing":                     {task(todo, old(pending, false, ""), decision(v1alpha1.VerdictAccept, "mallory")), asked(ask), pending, "", false},
		"an unsigned decision counts for nothing":                      {task(todo, old(pending, false, ""), decision(v1alpha1.VerdictAccept, "")), with(asked(ask), func(p *consent.Proposal) { p.AssigneeOwner = "" }), pending, "", false},
		"a decision on these terms is carried out":                     {task(todo, old(pending, false, ""), onTerms("")), asked(ask), accepted, "maya", true},
		"a decision on other terms counts for nothing":                 {task(todo, old(pending, false, ""), onTerms("water the plants")), asked(ask), pending, "", false},
		"nor when it comes with the task":                              {task(todo, nil, onTerms("water the plants")), asked(ask), pending, "", true},
		"what waits with other words waits under other terms":          {worded(todo, pending, "burn the house"), asked(ask), pending, "", true},
		"a decision changes nothing about what a Consent has accepted": {task(todo, old(accepted, true, "ApproveAll"), decision(v1alpha1.VerdictReject, "maya")), asked(all), accepted, "ApproveAll", false},
		"a decision is carried out when the Consent goes":              {task(todo, old(accepted, true, "ApproveAll"), decision(v1alpha1.VerdictReject, "maya")), asked(ask), rejected, "maya", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, changed := consent.Settle(tc.task, tc.proposal, now)
			if got.State != tc.want || got.By != tc.by || changed != tc.changed {
				t.Fatalf("got %s by %q, changed %v; want %s by %q, changed %v", got.State, got.By, changed, tc.want, tc.by, tc.changed)
			}
			if got.State == pending && got.Terms != consent.Terms(&tc.task.Spec) {
				t.Errorf("it waits under the terms %q, want those of the task", got.Terms)
			}
			if got.Assignee != "dd" {
				t.Errorf("decided for %q, want dd", got.Assignee)
			}
			if want := map[bool]time.Time{true: now, false: before.Time}[changed]; !got.At.Time.Equal(want) {
				t.Errorf("decided at %v, want %v", got.At, want)
			}
			if got.By == "maya" && changed && (got.Standing || got.Reason != "so" || got.Terms != consent.Terms(&tc.task.Spec)) {
				t.Errorf("a decision in person is %+v", got)
			}
		})
	}
}

// Settling twice is settling once: whoever comes second finds nothing to do.
func TestSettlingIsIdempotent(t *testing.T) {
	modes := []*v1alpha1.Consent{nil, standing(v1alpha1.ConsentTaskByTask), standing(v1alpha1.ConsentApproveAll), standing(v1alpha1.ConsentTrustCollaborator, "said"), standing(v1alpha1.ConsentTrustRoom)}
	decisions := []*v1alpha1.TaskDecision{nil, {Verdict: v1alpha1.VerdictAccept, By: "maya"}, {Verdict: v1alpha1.VerdictReject, By: "maya"}, {Verdict: v1alpha1.VerdictAccept, By: "said"}}
	states := []v1alpha1.TaskState{v1alpha1.TaskTodo, v1alpha1.TaskDoing, v1alpha1.TaskBlocked, v1alpha1.TaskDone}
	var consents []*v1alpha1.TaskConsent
	for _, assignee := range []string{"dd", "cc"} {
		for _, s := range []v1alpha1.ConsentState{v1alpha1.ConsentAuto, v1alpha1.ConsentPending, v1alpha1.ConsentAccepted, v1alpha1.ConsentRejected} {
			consents = append(consents, &v1alpha1.TaskConsent{State: s, Assignee: assignee}, &v1alpha1.TaskConsent{State: s, Assignee: assignee, Standing: true, By: "ApproveAll"})
		}
	}
	for _, mode := range modes {
		for _, proposer := range []string{"said", "maya", ""} {
			for _, d := range decisions {
				for _, state := range states {
					for _, c := range append(consents, nil) {
						tk := task(state, c, d)
						p := with(asked(mode), func(p *consent.Proposal) { p.Proposer = proposer })
						first, _ := consent.Settle(tk, p, now)
						tk.Status.Consent = &first
						if second, changed := consent.Settle(tk, p, now.Add(time.Minute)); changed {
							t.Fatalf("%+v settles as %+v and then as %+v", c, first, second)
						}
						if first.State == v1alpha1.ConsentAccepted && !first.Standing && (c == nil || c.Assignee != "dd") && (d == nil || d.By != "maya") {
							t.Fatalf("accepted in person and nobody did: %+v", first)
						}
					}
				}
			}
		}
	}
}

func TestDecide(t *testing.T) {
	const accept, reject = v1alpha1.VerdictAccept, v1alpha1.VerdictReject
	maya := consent.Decider{Owner: "maya", Delegated: true}
	held := func(s v1alpha1.ConsentState, standing bool) *v1alpha1.TaskConsent {
		return &v1alpha1.TaskConsent{State: s, Assignee: "dd", Standing: standing}
	}
	all := standing(v1alpha1.ConsentApproveAll)
	ours := held(v1alpha1.ConsentAccepted, true)
	ours.By = string(v1alpha1.ConsentApproveAll)
	tests := map[string]struct {
		task     *v1alpha1.Task
		proposal consent.Proposal
		decider  consent.Decider
		verdict  v1alpha1.Verdict
		want     v1alpha1.ConsentState
		changed  bool
		code     problem.Code
	}{
		"the owner accepts":                                  {task("Todo", held(v1alpha1.ConsentPending, false), nil), asked(nil), maya, accept, v1alpha1.ConsentAccepted, true, ""},
		"the owner rejects":                                  {task("Todo", held(v1alpha1.ConsentPending, false), nil), asked(nil), maya, reject, v1alpha1.ConsentRejected, true, ""},
		"before anybody has judged":                          {task("Todo", nil, nil), asked(nil), maya, accept, v1alpha1.ConsentAccepted, true, ""},
		"on a blocked task":                                  {task("Blocked", held(v1alpha1.ConsentPending, false), nil), asked(nil), maya, accept, v1alpha1.ConsentAccepted, true, ""},
		"accepting twice is accepting once":                  {task("Todo", held(v1alpha1.ConsentAccepted, false), nil), asked(nil), maya, accept, v1alpha1.ConsentAccepted, false, ""},
		"rejecting twice is rejecting once":                  {task("Todo", held(v1alpha1.ConsentRejected, false), nil), asked(nil), maya, reject, v1alpha1.ConsentRejected, false, ""},
		"what a Consent accepted may be accepted in person":  {task("Todo", ours, nil), asked(all), maya, accept, v1alpha1.ConsentAccepted, true, ""},
		"but not when it has begun":                          {task("Doing", ours, nil), asked(all), maya, accept, v1alpha1.ConsentAccepted, false, ""},
		"nobody rejects what was accepted":                   {task("Todo", held(v1alpha1.ConsentAccepted, false), nil), asked(nil), maya, reject, "", false, problem.Conflict},
		"nor what a Consent accepted":                        {task("Todo", ours, nil), asked(all), maya, reject, "", false, problem.Conflict},
		"nobody accepts what was rejected":                   {task("Todo", held(v1alpha1.ConsentRejected, false), nil), asked(nil), maya, accept, "", false, problem.Conflict},
		"nobody accepts what is over":                        {task("Cancelled", held(v1alpha1.ConsentPending, false), nil), asked(nil), maya, accept, "", false, problem.Conflict},
		"an agent without the delegation may not":            {task("Todo", held(v1alpha1.ConsentPending, false), nil), asked(nil), consent.Decider{Owner: "maya"}, accept, "", false, problem.Forbidden},
		"another owner may not":                              {task("Todo", held(v1alpha1.ConsentPending, false), nil), asked(nil), consent.Decider{Owner: "lea", Delegated: true}, accept, "", false, problem.Forbidden},
		"the proposer may not":                               {task("Todo", held(v1alpha1.ConsentPending, false), nil), asked(nil), consent.Decider{Owner: "said", Delegated: true}, accept, "", false, problem.Forbidden},
		"nobody decides on their own proposal":               {task("Todo", held(v1alpha1.ConsentAuto, false), nil), with(asked(nil), func(p *consent.Proposal) { p.Proposer = "maya" }), maya, accept, "", false, problem.Forbidden},
		"nobody decides on a task for nobody":                {task("Todo", nil, nil), consent.Proposal{Proposer: "said"}, consent.Decider{Owner: "", Delegated: true}, accept, "", false, problem.Forbidden},
		"a decision for the assignee before counts no more":  {task("Todo", &v1alpha1.TaskConsent{State: v1alpha1.ConsentRejected, Assignee: "cc"}, nil), asked(nil), maya, accept, v1alpha1.ConsentAccepted, true, ""},
		"nor can what is accepted be rejected while it runs": {task("Doing", held(v1alpha1.ConsentAccepted, false), nil), asked(nil), maya, reject, "", false, problem.Conflict},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, changed, p := consent.Decide(tc.task, tc.proposal, tc.decider, tc.verdict, "so", now)
			if tc.code != "" {
				if p == nil || p.Code != tc.code || changed {
					t.Fatalf("got %+v, changed %v, %v; want %s", got, changed, p, tc.code)
				}
				return
			}
			if p != nil || got.State != tc.want || changed != tc.changed {
				t.Fatalf("got %+v, changed %v, %v; want %s, changed %v", got, changed, p, tc.want, tc.changed)
			}
			if changed {
				want := v1alpha1.TaskConsent{State: tc.want, Assignee: "dd", By: "maya", Terms: consent.Terms(&tc.task.Spec), Reason: "so", At: metav1.NewTime(now)}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestRequired(t *testing.T) {
	for state, free := range map[v1alpha1.ConsentState]bool{
		v1alpha1.ConsentAuto: true, v1alpha1.ConsentAccepted: true, v1alpha1.ConsentPending: false, v1alpha1.ConsentRejected: false, "": false,
	} {
		t.Run(fmt.Sprintf("%q", state), func(t *testing.T) {
			p := consent.Required(v1alpha1.TaskConsent{State: state})
			if (p == nil) != free {
				t.Fatalf("got %v", p)
			}
			if p != nil && p.Code != problem.ConsentRequired {
				t.Errorf("got %s, want CONSENT_REQUIRED", p.Code)
			}
		})
	}
	if p := consent.Required(v1alpha1.TaskConsent{State: v1alpha1.ConsentRejected, Reason: "no time"}); p == nil || p.Message != "the assignee's owner rejected this task: no time" {
		t.Errorf("got %v", p)
	}
}

func TestIneffective(t *testing.T) {
	const todo = v1alpha1.TaskTodo
	accept := func(by string) *v1alpha1.TaskDecision {
		return &v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictAccept, By: by}
	}
	reject := func(by string) *v1alpha1.TaskDecision {
		return &v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictReject, By: by}
	}
	stale := accept("maya")
	stale.Terms = consent.Terms(&v1alpha1.TaskSpec{Title: "water the plants"})
	all := standing(v1alpha1.ConsentApproveAll)
	for name, tc := range map[string]struct {
		decision *v1alpha1.TaskDecision
		before   *v1alpha1.TaskConsent
		proposal consent.Proposal
		reason   string
		says     string
	}{
		"no decision":                           {nil, nil, asked(nil), "", ""},
		"the owner's":                           {accept("maya"), nil, asked(nil), "", ""},
		"the owner's rejection":                 {reject("maya"), nil, asked(nil), "", ""},
		"a stranger's":                          {accept("mallory"), nil, asked(nil), "NoSay", "only maya decides"},
		"a stranger's to what is accepted":      {accept("mallory"), nil, asked(all), "NoSay", "only maya decides"},
		"the proposer's":                        {accept("said"), nil, asked(nil), "NoSay", "said has no say"},
		"nobody's":                              {accept(""), nil, asked(nil), "NoSay", "nobody known has no say"},
		"on a task for nobody":                  {accept("maya"), nil, consent.Proposal{Proposer: "said"}, "NoSay", "nobody is assigned"},
		"on a task for who does not exist":      {accept("maya"), nil, consent.Proposal{Proposer: "said", Assignee: "x"}, "NoSay", "does not exist"},
		"the owner's on their own proposal":     {reject("maya"), nil, with(asked(nil), func(p *consent.Proposal) { p.Proposer = "maya" }), "OwnProposal", "their own proposal"},
		"the owner's on other terms":            {stale, nil, asked(nil), "TermsChanged", "status.consent"},
		"a rejection of what a Consent took":    {reject("maya"), nil, asked(all), "NotPending", "Consent of maya"},
		"an acceptance of what a Consent took":  {accept("maya"), nil, asked(all), "", ""},
		"a second thought after a rejection":    {accept("maya"), &v1alpha1.TaskConsent{State: "Rejected", Assignee: "dd", By: "maya"}, asked(nil), "NotPending", "is Rejected already"},
		"one that was carried out for another":  {accept("lea"), &v1alpha1.TaskConsent{State: "Accepted", Assignee: "dd", By: "lea"}, asked(nil), "", ""},
		"a stranger's to what maya has decided": {reject("lea"), &v1alpha1.TaskConsent{State: "Accepted", Assignee: "dd", By: "maya"}, asked(nil), "NoSay", "lea has no say"},
	} {
		t.Run(name, func(t *testing.T) {
			task := task(todo, tc.before, tc.decision)
			settled, _ := consent.Settle(task, tc.proposal, now)
			task.Status.Consent = &settled
			reason, message := consent.Ineffective(task, tc.proposal)
			if reason != tc.reason || !strings.Contains(message, tc.says) || (reason == "") != (message == "") {
				t.Errorf("%s: %q, want %s: …%s…", reason, message, tc.reason, tc.says)
			}
		})
	}
}
