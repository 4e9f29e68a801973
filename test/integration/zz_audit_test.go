package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// granted gives the rules of the roles in a file.
func granted(t *testing.T, files ...string) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, file := range files {
		raw, err := os.ReadFile(filepath.Join(harness.Root(), "config", "rbac", file))
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(raw), "\n---\n") {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
				t.Fatal(err)
			}
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

func allows(rules []rbacv1.PolicyRule, e harness.AuditEvent) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, e.Verb) && slices.Contains(r.APIGroups, e.ObjectRef.APIGroup) &&
			slices.Contains(r.Resources, e.Resource())
	})
}

// TestNoVerbIsUsedThatIsNotGrantedAndNoneIsRefused reads what the parts of Agent Rooms did in all tests before this one.
func TestNoVerbIsUsedThatIsNotGrantedAndNoneIsRefused(t *testing.T) {
	w, room := team(t)
	worker := w.As("worker", "w")
	task := newTask(t, w.As("boss", "b"), room, "seen in the audit log", "@worker")
	harness.Get[rooms.Claim](t, worker, "claim_task", harness.Args{"task_id": task.TaskID})
	roles := map[string][]rbacv1.PolicyRule{
		harness.BridgeUser:  granted(t, "bridge_role.yaml"),
		harness.ManagerUser: granted(t, "manager_role.yaml", "leader_election_role.yaml"),
	}
	for user, rules := range roles {
		for _, r := range rules {
			if slices.Contains(r.Verbs, "*") || slices.Contains(r.Resources, "*") || slices.Contains(r.APIGroups, "*") {
				t.Errorf("the role of %s grants everything of something: %+v", user, r)
			}
		}
	}
	seen := map[string]map[string]int{}
	harness.Await(t, "the audit log to show the claim and its lease", func() bool {
		seen = map[string]map[string]int{harness.BridgeUser: {}, harness.ManagerUser: {}}
		for _, e := range plane.Audit(t, time.Time{}) {
			if counts, ok := seen[e.User.Username]; ok {
				counts[e.Verb+" "+e.Resource()]++
			}
		}
		return seen[harness.BridgeUser]["update tasks/status"] > 0 && seen[harness.ManagerUser]["create leases"] > 0
	})
	for _, e := range plane.Audit(t, time.Time{}) {
		rules, ours := roles[e.User.Username]
		if !ours || e.ObjectRef.Resource == "" {
			continue
		}
		if e.ResponseStatus.Code == 403 && !strings.HasPrefix(e.ObjectRef.Namespace, "w") {
			t.Errorf("refused: %s %s %s", e.User.Username, e.Verb, e.Resource())
		}
		if !allows(rules, e) {
			t.Errorf("used and not granted: %s %s %s %s", e.User.Username, e.Verb, e.ObjectRef.APIGroup, e.Resource())
		}
	}
	t.Logf("used by the bridge: %v", seen[harness.BridgeUser])
	t.Logf("used by the manager: %v", seen[harness.ManagerUser])
}
