package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// The steps by which tests bring a task somewhere. Each is a careless merge patch of its status.
const (
	claimed   = "{state: Doing, epoch: 1, consent: {state: Auto}, claim: {holder: alice, session: s1}}"
	blocked   = "{state: Blocked, reason: waits for legal}"
	cancelled = "{state: Cancelled, reason: no longer wanted}"
	expired   = "{state: Todo, epoch: 2, claim: null, lastClaim: {holder: alice, session: s1, epoch: 1, ended: Expired}}"
	finished  = "{state: Done, epoch: 2, claim: null, lastClaim: {holder: alice, session: s1, epoch: 1, ended: Finished}}"
	failed    = "{state: Failed, epoch: 2, claim: null, reason: broke}"
	late      = "{state: Done, record: {plate: alice, session: s1, epoch: 1, state: Done, late: true}, lastClaim: {ended: Finished}}"
)

// plain gives a task that nobody is assigned to.
func plain(t *testing.T, c client.Client, steps ...string) *unstructured.Unstructured {
	t.Helper()
	u := object(t, full["Task"], "spec: {assignee: null, assignedBy: null, decision: null, dependsOn: null}")
	must(t, create(t, c, u))
	for _, step := range steps {
		if err := patchStatus(t, c, u, step); err != nil {
			t.Fatalf("on the way, %s: %v", step, err)
		}
	}
	return u
}

func TestATaskAppliedWithoutStatusBecomesANormalTask(t *testing.T) {
	c := server(t)
	want := map[string]any{"state": "Todo", "epoch": int64(0), "observedGeneration": int64(-1)}
	for _, tc := range []struct{ name, change string }{
		{"without a status", "status: null"},
		{"with a forged status", "status: {state: Done, epoch: 7, consent: {state: Accepted}}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := object(t, full["Task"], "status: null", tc.change)
			must(t, create(t, c, u))
			if diff := cmp.Diff(want, get(u.Object, "status")); diff != "" {
				t.Errorf("status in the answer (-want +got):\n%s", diff)
			}
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(u), u))
			if diff := cmp.Diff(want, get(u.Object, "status")); diff != "" {
				t.Errorf("status as stored (-want +got):\n%s", diff)
			}
			check(t, patchStatus(t, c, u, claimed), "")
		})
	}
}

func TestDefaults(t *testing.T) {
	c := server(t)
	const zero = int64(0)
	unseen := func(more map[string]any) map[string]any {
		more["observedGeneration"] = int64(-1)
		return more
	}
	room := unseen(map[string]any{"lastSeq": zero, "members": zero, "tasks": map[string]any{
		"todo": zero, "doing": zero, "blocked": zero, "done": zero, "failed": zero, "cancelled": zero,
	}})
	for _, tc := range []struct {
		kind, change, path string
		want               any
	}{
		{"Room", "spec: {state: null}", "spec.state", "Active"},
		{"Room", "spec: {members: [{user: said}]}", "spec.members[].role", "Member"},
		{"Room", "spec: {leasePolicy: {durationSeconds: null}}", "spec.leasePolicy.durationSeconds", int64(600)},
		{"Room", "spec: {leasePolicy: {onExpiry: null}}", "spec.leasePolicy.onExpiry", "Reopen"},
		{"Room", "status: null", "status", room},
		{"Agent", "status: null", "status", unseen(map[string]any{"liveInstances": zero})},
		{"Consent", "{spec: {mode: null}}", "spec.mode", "TaskByTask"},
		{"Consent", "status: null", "status", unseen(map[string]any{"pending": zero, "autoAccepted": zero})},
	} {
		t.Run(tc.kind+" "+tc.path, func(t *testing.T) {
			u := object(t, full[tc.kind], tc.change)
			must(t, create(t, c, u))
			if diff := cmp.Diff(tc.want, get(u.Object, tc.path)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStateMachine goes from every state to every state, with everything else in order.
func TestStateMachine(t *testing.T) {
	c := server(t)
	ways := map[string][]string{
		"Todo": nil, "Doing": {claimed}, "Blocked": {blocked}, "Cancelled": {cancelled},
		"Done": {claimed, finished}, "Failed": {claimed, failed},
	}
	allowed := map[string]map[string]bool{
		"Todo":      {"Todo": true, "Doing": true, "Blocked": true, "Cancelled": true},
		"Doing":     {"Todo": true, "Doing": true, "Blocked": true, "Done": true, "Failed": true, "Cancelled": true},
		"Blocked":   {"Todo": true, "Doing": true, "Blocked": true, "Failed": true, "Cancelled": true},
		"Done":      {"Done": true, "Todo": true},
		"Failed":    {"Failed": true, "Todo": true},
		"Cancelled": {"Cancelled": true, "Todo": true},
	}
	for _, from := range states {
		for _, to := range states {
			refused := "a task may go from"
			if allowed[from][to] {
				refused = ""
			}
			t.Run(fmt.Sprintf("%s to %s is %s", from, to, map[bool]string{true: "allowed", false: "refused"}[refused == ""]), func(t *testing.T) {
				u := plain(t, c, ways[from]...)
				epoch := get(u.Object, "status.epoch").(int64)
				claim := "claim: null"
				if to == "Doing" {
					claim = "consent: {state: Auto}, claim: {holder: alice, session: s1}"
				}
				if (from == "Doing") != (to == "Doing") {
					epoch++
				}
				check(t, patchStatus(t, c, u, fmt.Sprintf("{state: %s, epoch: %d, reason: why, %s}", to, epoch, claim)), refused)
			})
		}
	}
}

// Rules on how a task's status may change. The last step is judged, those before it must be accepted.
func TestRulesOfATasksStatus(t *testing.T) {
	c := server(t)
	const (
		needsClaim = "a Doing task must have a claim, and no other may have one"
		epochRule  = "epoch must rise by one when a claim is made or ended, and may not change otherwise: somebody else was faster"
		handOver   = "a held task may not change hands: already claimed"
		consent    = "a task may not be claimed before its assignee's owner agreed (status.consent)"
		reason     = "reason must be given for Blocked, Failed and Cancelled"
		edges      = "a task may go from Todo to Doing"
		lateOnly   = "a task that is not held may only be finished late"
		together   = "the artifacts of a record must have at most 2000 characters together"
		lastClaim  = "lastClaim may only change when a claim ends, and then to that claim"
	)
	for _, tc := range []struct {
		name    string
		steps   []string
		refused string
	}{
		{"takes a claim with epoch + 1", []string{claimed}, ""},
		{"refuses Doing without a claim", []string{"{state: Doing, epoch: 1, consent: {state: Auto}}"}, needsClaim},
		{"refuses a claim without Doing", []string{"{epoch: 1, claim: {holder: alice}}"}, needsClaim},
		{"refuses to finish and keep the claim", []string{claimed, "{state: Done, epoch: 2}"}, needsClaim},
		{"refuses a claim with the same epoch", []string{"{state: Doing, consent: {state: Auto}, claim: {holder: alice}}"}, epochRule},
		{"refuses a claim that skips an epoch", []string{"{state: Doing, epoch: 2, consent: {state: Auto}, claim: {holder: alice}}"}, epochRule},
		{"refuses to end a claim with the same epoch", []string{claimed, "{state: Todo, claim: null}"}, epochRule},
		{"refuses an epoch that goes back", []string{claimed, "{state: Todo, epoch: 0, claim: null}"}, epochRule},
		{"refuses an epoch that rises without a claim", []string{"{epoch: 1}"}, epochRule},
		{"refuses an epoch that rises under a claim", []string{claimed, "{epoch: 2}"}, epochRule},
		{"takes the same claim again", []string{claimed, claimed}, ""},
		{"refuses another holder", []string{claimed, "{claim: {holder: bob}}"}, handOver},
		{"refuses another holder with a new epoch", []string{claimed, "{epoch: 2, claim: {holder: bob}}"}, handOver},
		{"refuses another session of the same holder", []string{claimed, "{claim: {session: s2}}"}, handOver},
		{"refuses to drop the session", []string{claimed, "{claim: {session: null}}"}, handOver},
		{"refuses to add a session", []string{"{state: Doing, epoch: 1, consent: {state: Auto}, claim: {holder: alice}}", "{claim: {session: s1}}"}, handOver},
		{"refuses another time of acquisition", []string{claimed, `{claim: {acquiredAt: "2026-01-01T00:00:00.000000Z"}}`}, handOver},
		{"takes the same time of acquisition in another zone", []string{
			`{state: Doing, epoch: 1, consent: {state: Auto}, claim: {holder: alice, acquiredAt: "2026-01-01T00:00:00.000000Z"}}`,
			`{claim: {acquiredAt: "2026-01-01T02:00:00.000000+02:00"}}`,
		}, ""},
		{"takes a claim after a release", []string{claimed, "{state: Todo, epoch: 2, claim: null}", "{state: Doing, epoch: 3, claim: {holder: bob}}"}, ""},

		{"refuses a claim before any consent", []string{"{state: Doing, epoch: 1, claim: {holder: alice}}"}, consent},
		{"refuses a claim while consent is pending", []string{"{consent: {state: Pending}}", "{state: Doing, epoch: 1, claim: {holder: alice}}"}, consent},
		{"refuses a claim after a rejection", []string{"{consent: {state: Rejected}}", "{state: Doing, epoch: 1, claim: {holder: alice}}"}, consent},
		{"takes a claim after an acceptance", []string{"{consent: {state: Accepted}}", "{state: Doing, epoch: 1, claim: {holder: alice}}"}, ""},
		{"takes a claim that needs nobody's consent", []string{"{consent: {state: Auto}}", "{state: Doing, epoch: 1, claim: {holder: alice}}"}, ""},
		{"refuses a claim of a blocked task while consent is pending", []string{blocked, "{state: Doing, epoch: 1, consent: {state: Pending}, claim: {holder: alice}}"}, consent},
		{"lets work go on when consent is withdrawn", []string{claimed, "{consent: {state: Pending}}"}, ""},

		{"refuses Blocked without a reason", []string{"{state: Blocked}"}, reason},
		{"refuses Blocked with an empty reason", []string{"{state: Blocked, reason: ''}"}, reason},
		{"refuses Cancelled without a reason", []string{"{state: Cancelled}"}, reason},
		{"refuses Failed without a reason", []string{claimed, "{state: Failed, epoch: 2, claim: null}"}, reason},
		{"refuses to take the reason away", []string{blocked, "{reason: null}"}, reason},
		{"takes Done without a reason", []string{claimed, "{state: Done, epoch: 2, claim: null}"}, ""},

		{"takes a late result of the one whose lease ran out", []string{claimed, expired, late}, ""},
		{"takes a late failure too", []string{claimed, expired, "{state: Failed, reason: broke, record: {plate: alice, epoch: 1, state: Failed, late: true}, lastClaim: {ended: Finished}}"}, ""},
		{"refuses a result of one who never held the task", []string{"{state: Done, record: {plate: alice, epoch: 1, state: Done, late: true}}"}, edges},
		{"refuses a result after a release", []string{claimed, "{state: Todo, epoch: 2, claim: null, lastClaim: {holder: alice, epoch: 1, ended: Released}}", late}, edges},
		{"refuses a late result without a record", []string{claimed, expired, "{state: Done, lastClaim: {ended: Finished}}"}, lateOnly},
		{"refuses a late result that does not say so", []string{claimed, expired, "{state: Done, record: {plate: alice, epoch: 1, state: Done}, lastClaim: {ended: Finished}}"}, lateOnly},
		{"refuses a late result of somebody else", []string{claimed, expired, "{state: Done, record: {plate: bob, epoch: 1, state: Done, late: true}, lastClaim: {ended: Finished}}"}, lateOnly},
		{"refuses a late result under another epoch", []string{claimed, expired, "{state: Done, record: {plate: alice, epoch: 2, state: Done, late: true}, lastClaim: {ended: Finished}}"}, lateOnly},
		{"refuses a late result whose record says another state", []string{claimed, expired, "{state: Done, record: {plate: alice, epoch: 1, state: Failed, late: true}, lastClaim: {ended: Finished}}"}, lateOnly},
		{"refuses a late result that leaves the claim expired, to be finished again", []string{claimed, expired, "{state: Done, record: {plate: alice, epoch: 1, state: Done, late: true}}"}, lateOnly},
		{"refuses a second late result after the task was reopened", []string{claimed, expired, late, "{state: Todo}", late}, edges},
		{"refuses a late result after somebody else claimed and let go", []string{
			claimed, expired, "{state: Doing, epoch: 3, claim: {holder: bob}}", "{state: Todo, epoch: 4, claim: null}", late,
		}, lateOnly},

		{"takes the claim that ended as the last one", []string{claimed, expired}, ""},
		{"refuses another holder as the last one", []string{claimed, "{state: Todo, epoch: 2, claim: null, lastClaim: {holder: bob, epoch: 1, ended: Expired}}"}, lastClaim},
		{"refuses another epoch as the last one", []string{claimed, "{state: Todo, epoch: 2, claim: null, lastClaim: {holder: alice, epoch: 0, ended: Expired}}"}, lastClaim},
		{"refuses a last claim out of nothing", []string{"{lastClaim: {holder: alice, epoch: 0, ended: Expired}}"}, lastClaim},
		{"refuses to rewrite how the last claim ended", []string{claimed, expired, "{lastClaim: {ended: Released}}"}, lastClaim},
		{"refuses to forget the last claim", []string{claimed, expired, "{lastClaim: null}"}, lastClaim},
		{"refuses a late result that rewrites who was last", []string{claimed, expired, "{state: Done, record: {plate: alice, epoch: 1, state: Done, late: true}, lastClaim: {holder: bob, ended: Finished}}"}, lastClaim},

		{"takes artifacts of 2000 characters together", []string{claimed, artifacts("record", 10, 200)}, ""},
		{"refuses artifacts of more than 2000 characters together", []string{claimed, artifacts("record", 11, 182)}, together},
		{"refuses them in a contested record too", []string{claimed, artifacts("contested", 11, 182)}, together},

		{"refuses a claim by dropping the whole status first", []string{claimed, "null"}, epochRule},
	} {
		t.Run(tc.name, func(t *testing.T) {
			last := len(tc.steps) - 1
			u := plain(t, c, tc.steps[:last]...)
			check(t, patchStatus(t, c, u, tc.steps[last]), tc.refused)
		})
	}
}

// Rules on how a task's spec may change.
func TestRulesOfATasksSpec(t *testing.T) {
	c := server(t)
	const (
		archive  = "only a Done, Failed or Cancelled task may be archived"
		decision = "decision must be removed when assignee changes: the new assignee's owner decides anew"
		words    = "decision must be removed when title, detail or definitionOfDone changes: the assignee's owner decides anew"
	)
	for _, tc := range []struct {
		name, base      string
		status          []string
		change, refused string
	}{
		{"takes archiving a Done task", "", []string{claimed, finished}, "archived: true", ""},
		{"takes archiving a Failed task", "", []string{claimed, failed}, "archived: true", ""},
		{"takes archiving a Cancelled task", "", []string{cancelled}, "archived: true", ""},
		{"refuses archiving a Todo task", "", nil, "archived: true", archive},
		{"refuses archiving a Doing task", "", []string{claimed}, "archived: true", archive},
		{"refuses archiving a Blocked task", "", []string{blocked}, "archived: true", archive},
		{"refuses a dependency on itself", "metadata: {name: itself}", nil, "dependsOn: [itself]", "a task may not depend on itself"},
		{"takes a decision", "spec: {assignee: dd}", nil, "decision: {verdict: Accept}", ""},
		{"takes another assignee", "spec: {assignee: dd}", nil, "assignee: cc", ""},
		{"refuses another assignee under the old decision", "spec: {assignee: dd, decision: {verdict: Accept}}", nil, "assignee: cc", decision},
		{"refuses another assignee under a new decision over the old one", "spec: {assignee: dd, decision: {verdict: Accept}}", nil, "{assignee: cc, decision: {verdict: Reject}}", decision},
		{"refuses nobody under the old decision", "spec: {assignee: dd, decision: {verdict: Accept}}", nil, "assignee: null", decision},
		{"takes another assignee when the decision goes", "spec: {assignee: dd, decision: {verdict: Accept}}", nil, "{assignee: cc, decision: null}", ""},
		{"refuses another title under the old decision", "spec: {assignee: dd, decision: {verdict: Accept}}", nil, "title: Other", words},
		{"refuses another detail under the old decision", "spec: {assignee: dd, decision: {verdict: Accept}}", nil, "detail: Other", words},
		{"refuses no detail under the old decision", "spec: {assignee: dd, decision: {verdict: Accept}}", nil, "detail: null", words},
		{"refuses another end under a new decision over the old one", "spec: {assignee: dd, decision: {verdict: Accept}}", nil, "{definitionOfDone: other, decision: {verdict: Reject}}", words},
		{"takes other words when the decision goes", "spec: {assignee: dd, decision: {verdict: Accept}}", nil, "{title: Other, detail: null, definitionOfDone: other, decision: null}", ""},
		{"takes another priority under the old decision", "spec: {assignee: dd, decision: {verdict: Accept}}", nil, "{priority: 9, order: 3}", ""},
		{"takes a changed decision on the same assignee", "spec: {assignee: dd, decision: {verdict: Accept}}", nil, "decision: {verdict: Reject}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := object(t, full["Task"], "spec: {assignee: null, assignedBy: null, decision: null, dependsOn: null}", tc.base)
			must(t, create(t, c, u))
			for _, step := range tc.status {
				must(t, patchStatus(t, c, u, step))
			}
			raw, err := yaml.YAMLToJSON([]byte(tc.change))
			must(t, err)
			check(t, patch(t, c, u, fmt.Sprintf(`{"spec": %s}`, raw)), tc.refused)
		})
	}
}

func TestAnArchivedTaskIsNotReopened(t *testing.T) {
	c := server(t)
	u := plain(t, c, cancelled)
	must(t, patch(t, c, u, "spec: {archived: true}"))
	check(t, patchStatus(t, c, u, "{state: Todo}"), "only a Done, Failed or Cancelled task may be archived")
	must(t, patch(t, c, u, "spec: {archived: false}"))
	check(t, patchStatus(t, c, u, "{state: Todo}"), "")
}

// artifacts gives a status with a record that names so many artifacts of so many characters each.
func artifacts(field string, n, length int) string {
	record := "{plate: alice, state: Doing, artifacts: [" + strings.TrimSuffix(strings.Repeat(strings.Repeat("x", length)+", ", n), ", ") + "]}"
	if field == "contested" {
		record = "[" + record + "]"
	}
	return fmt.Sprintf("{%s: %s}", field, record)
}
