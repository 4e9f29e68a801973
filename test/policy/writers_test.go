package policy_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOnlyARestoreSetsIDs(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	const (
		id   = "metadata: {annotations: {agentrooms.dev/id: 01K00000000000000000000000}}"
		mark = "metadata: {annotations: {agentrooms.dev/restoring: x}}"
	)
	for kind, manifest := range map[string]string{
		"agents": agent, "consents": consent, "files": file, "inboxes": inbox, "messagebatches": batch, "rooms": room, "tasks": task,
	} {
		refused := "the annotations agentrooms.dev/id and agentrooms.dev/restoring may only be set or changed with the verb restore in all namespaces on " + kind
		writer := said // may write every kind but Inboxes and Files
		if kind == "inboxes" || kind == "files" {
			writer = bridge
		}
		t.Run(kind, func(t *testing.T) {
			check(t, as(writer).Create(t.Context(), parse(ns, manifest)), "")
			check(t, as(writer).Create(t.Context(), parse(ns, manifest, id)), refused)
			check(t, as(writer).Create(t.Context(), parse(ns, manifest, mark)), refused)
			change := ""
			if kind == "agents" || kind == "consents" {
				change = "spec: {owner: restorer}"
			}
			check(t, as(restorer).Create(t.Context(), parse(ns, manifest, id, change)), "")
			if kind == "messagebatches" {
				return // nobody changes one
			}
			u := made(t, env, parse(ns, manifest, id))
			check(t, patch(t.Context(), writer, u, "metadata: {annotations: {agentrooms.dev/id: other}}"), refused)
			check(t, patch(t.Context(), writer, u, "metadata: {annotations: {agentrooms.dev/id: null}}"), refused)
			check(t, patch(t.Context(), writer, made(t, env, parse(ns, manifest, mark)), "metadata: {annotations: {agentrooms.dev/restoring: null}}"), refused)
			check(t, patch(t.Context(), writer, u, "metadata: {annotations: {note: x}}"), "")
			if kind == "consents" {
				return // a restorer who is not the owner may not change one, whatever its id
			}
			if kind != "agents" {
				check(t, patch(t.Context(), restorer, u, "metadata: {annotations: {agentrooms.dev/id: other}}"), "")
			}
		})
	}
}

func TestAnAgentBelongsToWhoeverMakesIt(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	subject := func(s string) string { return fmt.Sprintf("spec: {subjects: [%s]}", s) }
	const (
		owner     = "spec.owner must be "
		user      = "spec.subjects: a User must be "
		namespace = "spec.subjects: the namespace of a ServiceAccount must be the one of the Agent: "
		account   = "spec.subjects: naming a ServiceAccount takes the verb impersonate on serviceaccounts in this namespace"
	)
	for _, tc := range []struct{ name, user, change, refused string }{
		{"an agent of their own", said, "", ""},
		{"an agent of somebody else", maya, "", owner + maya},
		{"an agent of somebody else, as one who assigns owners", assigner, "", ""},
		{"an agent of somebody else, as one who restores", restorer, "", owner + restorer},
		{"a service account by name", said, subject("{kind: ServiceAccount, name: cc}"), ""},
		{"a service account of the agent's namespace", said, subject("{kind: ServiceAccount, name: cc, namespace: " + ns + "}"), ""},
		{"a service account of another namespace", said, subject("{kind: ServiceAccount, name: cc, namespace: other}"), namespace + ns},
		{"a service account of another namespace, as one who assigns owners", assigner, subject("{kind: ServiceAccount, name: cc, namespace: other}"), namespace + ns},
		{"a service account that they may not act as", maya, "spec: {owner: maya, subjects: [{kind: ServiceAccount, name: cc}]}", account},
		{"a service account that they may not act as, as one who assigns owners", assigner, subject("{kind: ServiceAccount, name: cc}"), ""},
		{"themselves as a subject", said, subject("{kind: User, name: said}"), ""},
		{"somebody else as a subject", said, subject("{kind: User, name: maya}"), user + said},
		{"somebody else behind themselves", said, subject("{kind: User, name: said}, {kind: User, name: maya}"), user + said},
		{"somebody else as a subject, as one who assigns owners", assigner, subject("{kind: User, name: maya}"), ""},
	} {
		t.Run(tc.user+" "+verdict(tc.refused)+" create "+tc.name, func(t *testing.T) {
			check(t, as(tc.user).Create(t.Context(), parse(ns, agent, tc.change)), tc.refused)
		})
	}
	before := subject("{kind: User, name: maya}, {kind: ServiceAccount, name: cc}")
	for _, tc := range []struct{ name, user, change, refused string }{
		{"give their agent a scope", said, "spec: {scopes: [Read]}", ""},
		{"give somebody's agent a scope", maya, "spec: {scopes: [Read]}", owner + maya},
		{"give somebody's agent the say of its owner", maya, "spec: {delegations: [Consent]}", owner + maya},
		{"join the subjects of somebody's agent", maya, subject("{kind: User, name: maya}, {kind: ServiceAccount, name: dd}"), owner + maya},
		{"give somebody's agent a scope, as one who assigns owners", assigner, "spec: {scopes: [Read]}", ""},
		{"add a service account", said, subject("{kind: ServiceAccount, name: cc}, {kind: ServiceAccount, name: dd}"), ""},
		{"keep a subject that an admin named", said, subject("{kind: User, name: maya}"), ""},
		{"add a subject of another name", said, subject("{kind: User, name: maya}, {kind: User, name: mallory}"), user + said},
		{"add a service account of another namespace", said, subject("{kind: ServiceAccount, name: cc, namespace: other}"), namespace + ns},
		{"label somebody's agent", maya, "metadata: {labels: {team: red}}", ""},
	} {
		t.Run(tc.user+" "+verdict(tc.refused)+" "+tc.name, func(t *testing.T) {
			u := made(t, env, parse(ns, agent, before))
			check(t, patch(t.Context(), tc.user, u, tc.change), tc.refused)
		})
	}
}

// Whoever has every verb in a namespace of their own still speaks for nobody else in it: people, and what they agreed to, are
// the same in all namespaces.
func TestANamespaceOfOnesOwnGivesNoSayOverPeople(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	const steward = "steward"
	for _, o := range []client.Object{
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: steward},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: steward},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: steward}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: steward},
		},
	} {
		must(t, env.Client.Create(t.Context(), o))
	}
	mine := func(subject string) string { return "spec: {owner: steward, subjects: [" + subject + "]}" }
	account := mine("{kind: ServiceAccount, name: cc}")
	must(t, await(t.Context(), func(ctx context.Context) (bool, error) {
		return as(steward).Create(ctx, parse(ns, agent, account), client.DryRunAll) == nil, nil
	}))
	const owner = "spec.owner must be " + steward
	for _, tc := range []struct{ name, manifest, change, refused string }{
		{"an agent for a service account", agent, account, ""},
		{"an agent for themselves", agent, mine("{kind: User, name: steward}"), ""},
		{"an agent for somebody else", agent, mine("{kind: User, name: maya}"), "spec.subjects: a User must be " + steward},
		{"an agent of somebody else", agent, "", owner},
		{"a consent of their own", consent, "spec: {owner: steward}", ""},
		{"a consent of somebody else", consent, "", owner},
		{"a message of somebody else", batch, "", "every message must have the sender {type: Human, id: steward}"},
		{"the id of another room", room, "metadata: {annotations: {agentrooms.dev/id: 01K00000000000000000000000}}", "the annotations agentrooms.dev/id and agentrooms.dev/restoring may only be set"},
		{"an inbox", inbox, "", "an Inbox is written by the bridge only"},
	} {
		t.Run(verdict(tc.refused)+" "+tc.name, func(t *testing.T) {
			check(t, as(steward).Create(t.Context(), parse(ns, tc.manifest, tc.change)), tc.refused)
		})
	}
	u := parse(ns, task, "spec: {assignee: cc, creator: {user: maya}, assignedBy: {user: maya}, decision: {verdict: Accept, by: maya}}")
	must(t, as(steward).Create(t.Context(), u))
	want := map[string]any{"creator": byUser(steward), "assignedBy": byUser(steward), "decision": map[string]any{"verdict": "Accept", "by": steward}}
	got := map[string]any{"creator": spec(u, "creator"), "assignedBy": spec(u, "assignedBy"), "decision": spec(u, "decision")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a task in somebody's name (-want +got):\n%s", diff)
	}
	check(t, patch(t.Context(), steward, u, "status: {consent: {state: Accepted, by: maya}}", "status"), "status.consent may not be changed")
}

func TestAConsentIsItsOwnersToWrite(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	refused := func(user string) string { return "spec.owner must be " + user }
	for _, tc := range []struct{ user, refused string }{
		{said, ""}, {maya, refused(maya)}, {restorer, refused(restorer)}, {assigner, ""},
		{bridge, ""}, {manager, ""}, {collector, ""}, {namespaces, ""},
	} {
		t.Run(tc.user, func(t *testing.T) {
			t.Run(verdict(tc.refused)+" create", func(t *testing.T) {
				check(t, as(tc.user).Create(t.Context(), parse(ns, consent)), tc.refused)
			})
			t.Run(verdict(tc.refused)+" change", func(t *testing.T) {
				check(t, patch(t.Context(), tc.user, made(t, env, parse(ns, consent)), "spec: {mode: ApproveAll}"), tc.refused)
			})
			t.Run(verdict(tc.refused)+" hand it to the garbage collector", func(t *testing.T) {
				u := made(t, env, parse(ns, consent))
				check(t, patch(t.Context(), tc.user, u, "metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: gone, uid: gone}]}"), tc.refused)
			})
			t.Run(verdict(tc.refused)+" delete", func(t *testing.T) {
				check(t, as(tc.user).Delete(t.Context(), made(t, env, parse(ns, consent))), tc.refused)
			})
			t.Run(verdict(tc.refused)+" delete with others", func(t *testing.T) {
				u := made(t, env, parse(ns, consent, "metadata: {labels: {batch: of-"+counterName()+"}}"))
				check(t, as(tc.user).DeleteAllOf(t.Context(), u, client.InNamespace(ns), client.MatchingLabels(u.GetLabels())), tc.refused)
				err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(u), u)
				if deleted := apierrors.IsNotFound(err); deleted != (tc.refused == "") {
					t.Errorf("deleted: %v (%v)", deleted, err)
				}
			})
		})
	}
}

func counterName() string { return fmt.Sprint(counter.Add(1)) }

func TestOnlyTheSystemSaysThatAnOwnerAgreed(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	const refused = "status.consent may not be changed: the assignee's owner decides, by spec.decision or a Consent"
	pending := func(t *testing.T) *unstructured.Unstructured {
		t.Helper()
		u := parse(ns, task)
		must(t, as(said).Create(t.Context(), u))
		must(t, patch(t.Context(), bridge, u, "status: {consent: {state: Pending, assignee: x}}", "status"))
		return u
	}
	for _, tc := range []struct{ name, user, change, refused string }{
		{"accept", said, "status: {consent: {state: Accepted}}", refused},
		{"change for whom it is", said, "status: {consent: {assignee: other}}", refused},
		{"take it away", said, "status: {consent: null}", refused},
		{"take the whole status away", said, "status: null", refused},
		{"claim and accept in one write", said, "status: {state: Doing, epoch: 1, consent: {state: Accepted}, claim: {holder: said}}", refused},
		{"block the task", said, "status: {state: Blocked, reason: waits}", ""},
		{"accept", bridge, "status: {consent: {state: Accepted}}", ""},
		{"accept", manager, "status: {consent: {state: Accepted}}", ""},
		{"accept", restorer, "status: {consent: {state: Accepted}}", ""},
		{"accept", assigner, "status: {consent: {state: Accepted}}", refused},
	} {
		t.Run(tc.user+" "+verdict(tc.refused)+" "+tc.name, func(t *testing.T) {
			check(t, patch(t.Context(), tc.user, pending(t), tc.change, "status"), tc.refused)
		})
	}
	t.Run("said may not begin with a consent", func(t *testing.T) {
		u := parse(ns, task)
		must(t, as(said).Create(t.Context(), u))
		check(t, patch(t.Context(), said, u, "status: {consent: {state: Auto}}", "status"), refused)
	})
	t.Run("said may claim what was agreed to, and finish it", func(t *testing.T) {
		u := pending(t)
		must(t, patch(t.Context(), manager, u, "status: {consent: {state: Accepted, at: '2026-01-01T00:00:00Z'}}", "status"))
		check(t, patch(t.Context(), said, u, "status: {state: Doing, epoch: 1, claim: {holder: said}}", "status"), "")
		check(t, patch(t.Context(), said, u, "status: {state: Done, epoch: 2, claim: null}", "status"), "")
	})
}

func TestTheLogSaysWhoSpoke(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	sender := func(s string) string {
		return fmt.Sprintf("spec: {messages: [{sender: %s, body: x, at: '2026-01-01T00:00:00.000000Z'}]}", s)
	}
	at := func(ago time.Duration) string {
		return fmt.Sprintf("spec: {messages: [{sender: {type: Human, id: said}, body: x, at: '%s'}]}",
			time.Now().UTC().Add(-ago).Format(metav1.RFC3339Micro))
	}
	const (
		untimely = "the time of every message (at) must be within five minutes of the cluster: it is "
		forged   = "every message must have the sender {type: Human, id: "
		fixed    = "what was said in a room may not be changed or deleted"
		agents   = "{type: Agent, id: " + plate + "}"
		two      = "spec: {messages: [{sender: {type: Human, id: said}, body: x, at: '2026-01-01T00:00:00.000000Z'}, {sender: {type: Human, id: maya}, body: x, at: '2026-01-01T00:00:00.000000Z'}]}"
		keyed    = "spec: {messages: [{sender: {type: Human, id: said}, key: A000000000000000000000000000000000000000000, body: x, at: '2026-01-01T00:00:00.000000Z'}]}"
	)
	for _, tc := range []struct{ name, user, change, refused string }{
		{"as themselves", said, "", ""},
		{"as somebody else", maya, "", forged + maya},
		{"as an agent", said, sender(agents), forged + said},
		{"as an agent that is called like them", said, sender("{type: Agent, id: said}"), forged + said},
		{"as the system", said, sender("{type: System, id: said}"), forged + said},
		{"by their name", said, sender("{type: Human, id: said, name: said}"), ""},
		{"by somebody else's name", said, sender("{type: Human, id: said, name: maya}"), forged + said},
		{"as somebody else behind themselves", said, two, forged + said},
		{"under a key, which only agents have", said, keyed, forged + said},
		{"as an agent", bridge, sender(agents), ""},
		{"as the system", manager, sender("{type: System, id: task-controller}"), ""},
		{"as an agent", restorer, sender(agents), ""},
		{"as an agent", assigner, sender(agents), forged + assigner},
		{"as an agent", collector, sender(agents), forged + collector},
		{"by a clock that is a bit behind", said, at(2 * time.Minute), ""},
		{"by a clock that is a bit ahead", said, at(-2 * time.Minute), ""},
		{"from the past", said, at(time.Hour), untimely},
		{"from the future", said, at(-24 * 365 * time.Hour), untimely},
		{"from the past", restorer, at(time.Hour), ""},
		{"from the past", bridge, at(time.Hour), ""},
	} {
		t.Run(tc.user+" "+verdict(tc.refused)+" speak "+tc.name, func(t *testing.T) {
			check(t, as(tc.user).Create(t.Context(), parse(ns, batch, tc.change)), tc.refused)
		})
	}
	for _, tc := range []struct{ user, refused string }{
		{said, fixed}, {assigner, fixed}, {bridge, fixed}, {manager, ""}, {restorer, ""}, {collector, ""}, {namespaces, ""},
	} {
		t.Run(tc.user+" "+verdict(tc.refused)+" touch or delete what was said", func(t *testing.T) {
			u := made(t, env, parse(ns, batch))
			check(t, patch(t.Context(), tc.user, u, "metadata: {labels: {seen: 'true'}}"), tc.refused)
			check(t, as(tc.user).Delete(t.Context(), u), tc.refused)
		})
	}
}

func TestAnInboxIsWrittenByTheSystem(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	const refused = "an Inbox is written by the bridge only"
	for _, tc := range []struct{ user, refused string }{
		{said, refused}, {assigner, refused}, {bridge, ""}, {manager, ""}, {restorer, ""}, {collector, ""}, {namespaces, ""},
	} {
		t.Run(tc.user+" "+verdict(tc.refused)+" write", func(t *testing.T) {
			check(t, as(tc.user).Create(t.Context(), parse(ns, inbox)), tc.refused)
			u := made(t, env, parse(ns, inbox))
			check(t, patch(t.Context(), tc.user, u, "metadata: {labels: {seen: 'true'}}"), tc.refused)
			check(t, patch(t.Context(), tc.user, u, "status: {ackedThrough: 1}", "status"), tc.refused)
			check(t, as(tc.user).Delete(t.Context(), u), tc.refused)
		})
	}
}

func TestTheLeasesOfTasksAndInstancesAreWrittenByTheSystem(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	const refused = "the Lease of a task or an instance is written by Agent Rooms only"
	for _, label := range []string{"agentrooms.dev/task", "agentrooms.dev/instance"} {
		ours := fmt.Sprintf("metadata: {labels: {%s: x}}", label)
		for _, tc := range []struct{ user, refused, undeletable string }{
			{said, refused, refused}, {assigner, refused, refused}, {restorer, refused, ""},
			{bridge, "", ""}, {manager, "", ""}, {collector, "", ""}, {namespaces, "", ""},
		} {
			t.Run(tc.user+" "+verdict(tc.refused)+" write a Lease with the label "+label, func(t *testing.T) {
				check(t, as(tc.user).Create(t.Context(), parse(ns, lease, ours)), tc.refused)
				u := parse(ns, lease, ours)
				must(t, as(bridge).Create(t.Context(), u))
				check(t, patch(t.Context(), tc.user, u, "spec: {holderIdentity: mallory}"), tc.refused)
				check(t, patch(t.Context(), tc.user, u, fmt.Sprintf("metadata: {labels: {%s: null}}", label)), tc.refused)
			})
			t.Run(tc.user+" "+verdict(tc.undeletable)+" delete a Lease with the label "+label, func(t *testing.T) {
				u := parse(ns, lease, ours)
				must(t, as(bridge).Create(t.Context(), u))
				check(t, as(tc.user).Delete(t.Context(), u), tc.undeletable)
				u = parse(ns, lease, ours, "metadata: {labels: {batch: of-"+counterName()+"}}")
				must(t, as(bridge).Create(t.Context(), u))
				check(t, as(tc.user).DeleteAllOf(t.Context(), u, client.InNamespace(ns), client.MatchingLabels{"batch": u.GetLabels()["batch"]}), tc.undeletable)
			})
		}
		t.Run("said may not turn their Lease into one with the label "+label, func(t *testing.T) {
			u := parse(ns, lease)
			must(t, as(said).Create(t.Context(), u))
			check(t, patch(t.Context(), said, u, ours), refused)
		})
	}
	t.Run("the admin of the cluster may clear up", func(t *testing.T) {
		u := parse(ns, lease, "metadata: {labels: {agentrooms.dev/task: x}}")
		must(t, as(bridge).Create(t.Context(), u))
		check(t, env.Client.Delete(t.Context(), u), "")
	})
	t.Run("said may do with other Leases what they like", func(t *testing.T) {
		u := parse(ns, lease, "metadata: {labels: {app: theirs}}")
		check(t, as(said).Create(t.Context(), u), "")
		check(t, patch(t.Context(), said, u, "spec: {holderIdentity: said}"), "")
		check(t, as(said).Delete(t.Context(), u), "")
	})
}

func TestAFileIsWrittenByTheSystem(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	const (
		created  = "a File is made by writing it through the bridge"
		deleted  = "deleting the object would lose the content at once"
		changed  = "spec.versions and spec.uploads are written by the bridge"
		version  = "{version: 3, sha256: '0000000000000000000000000000000000000000000000000000000000000000', size: 1, contentType: text/plain, "
		versions = "spec: {versions: [" + version + "by: {plate: " + plate + "}, at: '2026-01-01T00:00:00.000000Z'}]}"
	)
	for _, tc := range []struct {
		user                      string
		created, changed, deleted string
	}{
		{said, created, changed, deleted}, {assigner, created, changed, deleted}, {bridge, "", "", ""}, {restorer, "", "", ""},
	} {
		t.Run(tc.user+" "+verdict(tc.created)+" write", func(t *testing.T) {
			check(t, as(tc.user).Create(t.Context(), parse(ns, file, versions)), tc.created)
			u := made(t, env, parse(ns, file))
			check(t, patch(t.Context(), tc.user, u, versions), tc.changed)
			check(t, as(tc.user).Delete(t.Context(), u), tc.deleted)
		})
	}
}
