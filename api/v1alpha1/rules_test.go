package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatIsFixedAtCreationStaysAsItIs(t *testing.T) {
	c := server(t)
	for _, tc := range []struct{ kind, path, other, message string }{
		{"Agent", "spec.owner", "mallory", "owner may not be changed: create another Agent"},
		{"Consent", "spec.roomRef", "{name: elsewhere}", "roomRef may not be changed"},
		{"Consent", "spec.owner", "mallory", "owner may not be changed"},
		{"Inbox", "spec.roomRef", "{name: elsewhere}", "an Inbox may not change hands"},
		{"Inbox", "spec.plate", "BRNL-AGT-00000000000000000000000009", "an Inbox may not change hands"},
		{"MessageBatch", "spec.roomRef", "{name: elsewhere}", "a MessageBatch may not be changed"},
		{"MessageBatch", "spec.number", "2", "a MessageBatch may not be changed"},
		{"MessageBatch", "spec.firstSeq", "2", "a MessageBatch may not be changed"},
		{"MessageBatch", "spec.writer", "somebody", "a MessageBatch may not be changed"},
		{"MessageBatch", "spec.messages", `[{sender: {type: Human, id: said}, body: "No.", at: "2026-01-01T00:00:00.000000Z"}]`, "a MessageBatch may not be changed"},
		{"Task", "spec.roomRef", "{name: elsewhere}", "roomRef may not be changed"},
		{"Task", "spec.creator", "{user: mallory}", "creator may not be changed"},
		{"Task", "spec.creator", "{user: null, plate: BRNL-AGT-00000000000000000000000009}", "creator may not be changed"},
	} {
		t.Run(tc.kind+" "+tc.path+" to "+tc.other, func(t *testing.T) {
			u := object(t, full[tc.kind])
			must(t, create(t, c, u))
			before := get(u.Object, "spec")
			field := strings.TrimPrefix(tc.path, "spec.")
			change := fmt.Sprintf("spec: {%s: %s}", field, tc.other)

			check(t, patch(t, c, u, change), tc.message)
			if err := patch(t, c, u, fmt.Sprintf("spec: {%s: null}", field)); err == nil {
				t.Error("unset: accepted")
			}
			check(t, patch(t, c, u, change), tc.message)
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(u), u))
			if diff := cmp.Diff(before, get(u.Object, "spec")); diff != "" {
				t.Errorf("spec changed (-before +after):\n%s", diff)
			}
			check(t, patch(t, c, u, "metadata: {labels: {seen: 'true'}}"), "")
		})
	}
}

func TestATaskWithoutACreatorMayBeGivenOneOnce(t *testing.T) {
	c := server(t)
	u := object(t, full["Task"], "spec: {creator: null}")
	must(t, create(t, c, u))
	check(t, patch(t, c, u, "spec: {creator: {user: said}}"), "")
	check(t, patch(t, c, u, "spec: {creator: {user: mallory}}"), "creator may not be changed")
}

// Rules of one object, judged when it is created.
func TestRulesOfOneObject(t *testing.T) {
	c := server(t)
	people := func(n, length int) string {
		var list []map[string]any
		for i := range n {
			list = append(list, map[string]any{"user": fmt.Sprintf("%0*d", length, i)})
		}
		raw, _ := json.Marshal(list) //nolint:errchkjson // strings always marshal
		return fmt.Sprintf("spec: {members: %s}", raw)
	}
	messages := func(bodies, mentions []int) string {
		var list []map[string]any
		for i, n := range bodies {
			m := map[string]any{
				"sender": map[string]any{"type": "Human", "id": "said"}, "body": strings.Repeat("x", n), "at": "2026-01-01T00:00:00.000000Z",
			}
			var ms []map[string]any
			for range mentions[i] {
				ms = append(ms, map[string]any{"plate": "BRNL-AGT-00000000000000000000000001"})
			}
			if ms != nil {
				m["mentions"] = ms
			}
			list = append(list, m)
		}
		raw, _ := json.Marshal(list) //nolint:errchkjson // strings always marshal
		return fmt.Sprintf("spec: {messages: %s}", raw)
	}
	subject := func(s string) string { return fmt.Sprintf("spec: {subjects: [%s]}", s) }
	for _, tc := range []struct{ kind, name, change, refused string }{
		{"Agent", "an alias of letters, digits, dots and dashes", "spec: {displayName: c.c-1_x}", ""},
		{"Agent", "an alias with a space", "spec: {displayName: c c}", "spec.displayName"},
		{"Agent", "an alias with a parenthesis", "spec: {displayName: c(said)}", "spec.displayName"},
		{"Agent", "an alias that ends in a dot", "spec: {displayName: cc.}", "spec.displayName"},
		{"Agent", "an owner as a cluster may name people", "spec: {owner: 'oidc:Ü#1@example.com'}", ""},
		{"Agent", "an owner with a parenthesis, which no handle could name", "spec: {owner: 'a(b'}", "spec.owner"},
		{"Agent", "an owner with a line break", `spec: {owner: "a\nb"}`, "spec.owner"},
		{"Agent", "an owner with a letter of markup", "spec: {owner: 'a<b'}", "spec.owner"},
		{"Agent", "a scope twice", "spec: {scopes: [Read, Read]}", "Duplicate value"},
		{"Agent", "a delegation twice", "spec: {delegations: [Consent, Consent]}", "Duplicate value"},
		{"Agent", "a ServiceAccount without a namespace", subject("{kind: ServiceAccount, name: cc}"), ""},
		{"Agent", "a User with a namespace", subject("{kind: User, name: said, namespace: default}"), "namespace may not be set for a User"},
		{"Agent", "a User who is a ServiceAccount in disguise", subject("{kind: User, name: 'system:serviceaccount:other:cc'}"), "a ServiceAccount must be named by kind ServiceAccount"},
		{"Agent", "a ServiceAccount that is called like a user", subject("{kind: ServiceAccount, name: 'system:serviceaccount:x'}"), ""},

		{"Room", "members of each kind", "", ""},
		{"Room", "a member who is neither an agent nor a person", "spec: {members: [{role: Member}]}", "exactly one of the fields in [agent user] must be set"},
		{"Room", "a member who is both an agent and a person", "spec: {members: [{user: said, agent: {name: cc}}]}", "exactly one of the fields in [agent user] must be set"},
		{"Room", "an agent by neither name nor plate", "spec: {members: [{agent: {}}]}", "exactly one of the fields in [name plate] must be set"},
		{"Room", "an agent by name and plate", "spec: {members: [{agent: {name: cc, plate: BRNL-AGT-00000000000000000000000001}}]}", "exactly one of the fields in [name plate] must be set"},
		{"Room", "an agent by what is no name", "spec: {members: [{agent: {name: 'C C'}}]}", "spec.members[0].agent.name"},
		{"Room", "an agent by a plate with a letter that Crockford left out", "spec: {members: [{agent: {plate: BRNL-AGT-0000000000000000000000000U}}]}", "spec.members[0].agent.plate"},
		{"Room", "a person whose name holds markup", "spec: {members: [{user: 'a&b'}]}", "spec.members[0].user"},
		{"Room", "usernames of 32768 characters together", people(256, 128), ""},
		{"Room", "usernames of more than 32768 characters together", people(256, 129), "the usernames of all members must have at most 32768 characters together"},

		{"Consent", "TrustCollaborator with a collaborator", "spec: {mode: TrustCollaborator, collaborators: [said]}", ""},
		{"Consent", "TrustCollaborator without the field", "spec: {mode: TrustCollaborator, collaborators: null}", "collaborators must name at least one owner"},
		{"Consent", "TrustCollaborator with nobody", "spec: {mode: TrustCollaborator, collaborators: []}", "collaborators must name at least one owner"},
		{"Consent", "another mode with nobody", "spec: {mode: TrustRoom, collaborators: []}", ""},
		{"Consent", "a collaborator twice", "spec: {collaborators: [said, said]}", "Duplicate value"},
		{"Consent", "an owner whose name holds markup", "spec: {owner: 'a<b'}", "spec.owner"},
		{"Consent", "a collaborator whose name holds markup", "spec: {collaborators: ['a<b']}", "spec.collaborators[0]"},
		{"Consent", "a room by what is no name", "spec: {roomRef: {name: Launch Week}}", "spec.roomRef.name"},

		{"MessageBatch", "bodies of 16000 characters together", messages([]int{8000, 8000}, []int{0, 0}), ""},
		{"MessageBatch", "bodies of 16001 characters together", messages([]int{8000, 8000, 1}, []int{0, 0, 0}), "the bodies of a batch must have at most 16000 characters together"},
		{"MessageBatch", "100 mentions together", messages([]int{1, 1}, []int{50, 50}), ""},
		{"MessageBatch", "101 mentions together", messages([]int{1, 1, 1}, []int{50, 50, 1}), "the messages of a batch must have at most 100 mentions together"},
		{"MessageBatch", "a mention of what is no plate", "spec: {messages: [{sender: {type: Human, id: said}, body: x, at: '2026-01-01T00:00:00.000000Z', mentions: [{plate: brnl-agt-00000000000000000000000001}]}]}", "spec.messages[0].mentions[0].plate"},

		{"Inbox", "the inbox of what is no plate", "spec: {plate: BRNL-AGT-0000000000000000000000000U}", "spec.plate"},

		{"Task", "no assignee, creator or decision", "spec: {assignee: null, creator: null, assignedBy: null, decision: null}", ""},
		{"Task", "a creator who is neither an agent nor a person", "spec: {creator: {user: null}}", "exactly one of the fields in [plate user] must be set"},
		{"Task", "a creator who is both", "spec: {creator: {plate: BRNL-AGT-00000000000000000000000001}}", "exactly one of the fields in [plate user] must be set"},
		{"Task", "an assigner who is neither an agent nor a person", "spec: {assignedBy: {plate: null}}", "exactly one of the fields in [plate user] must be set"},
		{"Task", "an assigner who is both", "spec: {assignedBy: {user: said}}", "exactly one of the fields in [plate user] must be set"},
		{"Task", "a type of several words", "spec: {type: bug fix}", "spec.type"},
		{"Task", "a dependency that is named twice", "spec: {dependsOn: [a1, a1]}", "Duplicate value"},
		{"Task", "a dependency on what is no name", "spec: {dependsOn: [Not A Name]}", "spec.dependsOn[0]"},
		{"Task", "a dependency on another", "{metadata: {name: self}, spec: {dependsOn: [other]}}", ""},
		{"Task", "a dependency on itself", "{metadata: {name: self}, spec: {dependsOn: [other, self]}}", "a task may not depend on itself"},
		{"Task", "an order to cancel without a reason", "spec: {intervention: {reason: null}}", "reason must be given with Cancel: say why"},
		{"Task", "an order to cancel with an empty reason", "spec: {intervention: {reason: ''}}", "reason must be given with Cancel: say why"},
		{"Task", "an order to release without a reason", "spec: {intervention: {action: Release, reason: null, epoch: null}}", ""},
		{"Task", "archived from the start", "spec: {archived: true}", "only a Done, Failed or Cancelled task may be archived"},
		{"Task", "not archived, in so many words", "spec: {archived: false}", ""},
	} {
		t.Run(verdict(tc.refused)+" "+tc.kind+" with "+tc.name, func(t *testing.T) {
			check(t, create(t, c, object(t, full[tc.kind], tc.change)), tc.refused)
		})
	}
}

func verdict(refused string) string {
	if refused == "" {
		return "takes"
	}
	return "refuses"
}

func TestNamesAreBounded(t *testing.T) {
	c := server(t)
	for _, tc := range []struct {
		kind    string
		longest int
		message string
	}{
		{"Room", 63, "a Room's name must be at most 63 characters"},
		{"Agent", 63, "an Agent's name must be at most 63 characters"},
		{"Task", 63, "a Task's name must be at most 63 characters"},
		{"Consent", 128, "a Consent's name must be at most 128 characters"},
	} {
		named := func(n int) string { return fmt.Sprintf("metadata: {name: %s}", strings.Repeat("x", n)) }
		t.Run(tc.kind, func(t *testing.T) {
			check(t, create(t, c, object(t, full[tc.kind], named(tc.longest))), "")
			check(t, create(t, c, object(t, full[tc.kind], named(tc.longest+1))), tc.message)
		})
	}
}

// The name of a MessageBatch is the compare-and-swap on its place in the log, so it must say the place.
func TestTheNameOfABatchHoldsItsNumber(t *testing.T) {
	c := server(t)
	const wrong = "a MessageBatch's name must begin with its room's name and end in -b and its number in ten digits"
	for _, tc := range []struct{ name, number, refused string }{
		{"launch-000000-b0000000007", "7", ""},
		{"launch-b0000000007", "7", ""},
		{"launch-000000-b9999999999", "9999999999", ""},
		{"launch-000000-b0000000008", "7", wrong},
		{"launch-000000-b7", "7", wrong},
		{"launch-000000-b00000000007", "7", wrong},
		{"launch-000000-x0000000007", "7", wrong},
		{"elsewhere-000000-b0000000007", "7", wrong},
		{"launch0-000000-b0000000007", "7", wrong},
	} {
		t.Run(verdict(tc.refused)+" "+tc.name+" for "+tc.number, func(t *testing.T) {
			u := object(t, full["MessageBatch"], fmt.Sprintf("{metadata: {name: %s}, spec: {number: %s}}", tc.name, tc.number))
			check(t, create(t, c, u), tc.refused)
		})
	}
}

// What a Go client could not read back never gets in: it would blind every reader of the kind.
func TestTimesAreAsGoReadsThem(t *testing.T) {
	c := server(t)
	good := map[string][]string{
		"seconds":      {"2026-01-01T00:00:00Z", "2026-01-01T02:00:00+02:00"},
		"microseconds": {"2026-01-01T00:00:00.000000Z", "2026-01-01T02:00:00.123456-11:30"},
	}
	bad := map[string][]string{
		"seconds":      {"2026-01-01t00:00:00z", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z", "yesterday"},
		"microseconds": {"2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123Z", "2026-01-01T00:00:00.123456789Z", "2026-01-01t00:00:00.000000z", "2026-01-01T00:00:00,000000Z"},
	}
	for kind, paths := range times {
		for path, precision := range paths {
			if path == "status.lastClaim.at" {
				continue // TestTheLastClaimIsBounded
			}
			try := func(t *testing.T, v, refused string) {
				t.Helper()
				u := object(t, full[kind])
				set(t, u.Object, path, v)
				check(t, write(t, c, u, path), refused)
			}
			for _, v := range good[precision] {
				t.Run(fmt.Sprintf("%s %s takes %s", kind, path, v), func(t *testing.T) { try(t, v, "") })
			}
			for _, v := range bad[precision] {
				t.Run(fmt.Sprintf("%s %s refuses %s", kind, path, v), func(t *testing.T) {
					try(t, v, path[strings.LastIndex(path, ".")+1:])
				})
			}
		}
	}
}

func TestConditionsAreBoundedAndReadable(t *testing.T) {
	c := server(t)
	for _, kind := range []string{"Room", "Agent", "Consent", "Task"} {
		for _, tc := range []struct{ name, path, value, refused string }{
			{"a message of 1024 characters", "message", strings.Repeat("x", 1024), ""},
			{"a message of 1025 characters", "message", strings.Repeat("x", 1025), "condition messages must be at most 1024 characters"},
			{"a time that Go can read", "lastTransitionTime", "2026-01-01T02:00:00+02:00", ""},
			{"a time that Go cannot read", "lastTransitionTime", "2026-01-01t00:00:00z", "status.conditions"},
		} {
			t.Run(fmt.Sprintf("%s %s %s", kind, verdict(tc.refused), tc.name), func(t *testing.T) {
				u := object(t, full[kind])
				set(t, u.Object, "status.conditions[]."+tc.path, tc.value)
				check(t, write(t, c, u, "status.conditions"), tc.refused)
			})
		}
	}
}
