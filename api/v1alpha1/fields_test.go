package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// write creates an object from its spec and then writes its status, as far as it has one, and gives the answer to the write
// that holds the path.
func write(t *testing.T, c client.Client, u *unstructured.Unstructured, path string) error {
	t.Helper()
	status, hasStatus := u.Object["status"]
	err := create(t, c, u)
	if !strings.HasPrefix(path, "status.") {
		return err
	}
	must(t, err)
	if !hasStatus {
		t.Fatalf("the full %s has no status", u.GetKind())
	}
	raw, err := json.Marshal(status)
	must(t, err)
	return patchStatus(t, c, u, string(raw))
}

// null is a field that is given as null.
type null struct{}

// set puts a value at a path like spec.members[].user: [] stands for the first item that has what follows. It gives the path
// as the API server writes it. A nil value removes the field.
func set(t *testing.T, at map[string]any, path string, v any) string {
	t.Helper()
	step, rest, deeper := strings.Cut(path, ".")
	name, inList := strings.CutSuffix(step, "[]")
	if _, ok := at[name]; !ok && deeper {
		t.Fatalf("the full object has no %s", name)
	}
	if !inList {
		if deeper {
			return name + "." + set(t, at[name].(map[string]any), rest, v)
		}
		switch v.(type) {
		case nil:
			delete(at, name)
		case null:
			at[name] = nil
		default:
			at[name] = v
		}
		return name
	}
	list := at[name].([]any)
	if !deeper {
		list[0] = v
		return name + "[0]"
	}
	for i, item := range list {
		if m := item.(map[string]any); has(m, rest) {
			return fmt.Sprintf("%s[%d].%s", name, i, set(t, m, rest, v))
		}
	}
	t.Fatalf("no item of %s has %s", name, rest)
	return ""
}

func has(at map[string]any, path string) bool {
	step, rest, deeper := strings.Cut(path, ".")
	next, ok := at[strings.TrimSuffix(step, "[]")]
	if !ok || !deeper {
		return ok
	}
	m, isMap := next.(map[string]any)
	return !isMap || has(m, rest)
}

// get gives what stands at a path.
func get(at map[string]any, path string) any {
	step, rest, deeper := strings.Cut(path, ".")
	name, inList := strings.CutSuffix(step, "[]")
	next := at[name]
	if inList {
		next = next.([]any)[0]
	}
	if !deeper {
		return next
	}
	return get(next.(map[string]any), rest)
}

// sized gives a value of a size for a path: text in the form that the field wants, as many items, or the number itself.
func sized(u *unstructured.Unstructured, b bound, n int64) any {
	switch b.counts {
	case value:
		return n
	case items:
		list := make([]any, n)
		for i := range list {
			list[i] = numbered(get(u.Object, b.path+"[]"), i)
		}
		return list
	}
	switch {
	case strings.HasSuffix(b.path, "plate") && b.min == 35:
		return "BRNL-AGT-" + strings.Repeat("0", int(n)-len("BRNL-AGT-"))
	case strings.HasSuffix(b.path, "parentID"), strings.HasSuffix(b.path, "fileRef"), strings.HasSuffix(b.path, "sha256"),
		strings.HasSuffix(b.path, "uploadID"), strings.HasSuffix(b.path, "uploads[].id"):
		return strings.Repeat("0", int(n))
	default:
		return strings.Repeat("x", int(n))
	}
}

// numbered gives a copy of an item that differs from its siblings where a list is a set or a map.
func numbered(item any, i int) any {
	switch v := item.(type) {
	case string:
		values := []string{"Read", "Write", "Upload", "Download", "Invoke"}
		if i < len(values) && (v == "Read" || v == "Consent") {
			return values[i]
		}
		return fmt.Sprintf("x%d", i)
	case map[string]any:
		m := maps.Clone(v)
		if _, ok := m["seq"]; ok {
			m["seq"] = int64(i + 2)
		}
		if _, ok := m["version"]; ok {
			m["version"] = int64(1000 - i) // the newest first
		}
		if _, ok := m["expiresAt"]; ok {
			m["id"] = fmt.Sprintf("%026d", i)
		}
		if _, ok := m["lastTransitionTime"]; ok {
			m["type"] = fmt.Sprintf("Ready%d", i)
		}
		return m
	default:
		return item
	}
}

func TestEveryBoundIsKept(t *testing.T) {
	c := server(t)
	for kind, table := range bounds {
		for _, b := range table {
			try := func(t *testing.T, n int64, accepted bool) {
				t.Helper()
				u := object(t, full[kind], b.with)
				u.SetName("")
				v := sized(u, b, n)
				if b.path == "spec.delegations" && accepted {
					v = []any{"Consent"}[:n]
				}
				path := set(t, u.Object, b.path, v)
				raw, err := u.MarshalJSON()
				must(t, err)
				want := path
				if accepted {
					want = ""
				}
				check(t, write(t, c, object(t, string(raw)), b.path), want)
			}
			name := kind + " " + b.path
			t.Run(fmt.Sprintf("%s takes %d %s", name, b.max, b.counts), func(t *testing.T) { try(t, b.max, true) })
			t.Run(fmt.Sprintf("%s refuses %d %s", name, b.max+1, b.counts), func(t *testing.T) { try(t, b.max+1, false) })
			if b.min == 0 && b.counts != value {
				continue
			}
			if b.min != b.max {
				t.Run(fmt.Sprintf("%s takes %d %s", name, b.min, b.counts), func(t *testing.T) { try(t, b.min, true) })
			}
			t.Run(fmt.Sprintf("%s refuses %d %s", name, b.min-1, b.counts), func(t *testing.T) { try(t, b.min-1, false) })
		}
	}
}

func TestTheLastClaimIsBounded(t *testing.T) {
	c := server(t)
	const path = "status.lastClaim."
	held := func(t *testing.T, holder string) *unstructured.Unstructured {
		t.Helper()
		u := object(t, full["Task"])
		set(t, u.Object, "status.claim.holder", holder)
		must(t, write(t, c, u, "status.claim"))
		return u
	}
	end := func(t *testing.T, u *unstructured.Unstructured, change string) error {
		t.Helper()
		return patchStatus(t, c, u, string(mustMerge(t, doneOnce, change)))
	}
	for _, n := range []int{1, 253} {
		t.Run(fmt.Sprintf("takes a holder of %d characters", n), func(t *testing.T) {
			holder := strings.Repeat("x", n)
			check(t, end(t, held(t, holder), fmt.Sprintf("lastClaim: {holder: %s}", holder)), "")
		})
	}
	for _, n := range []int{0, 254} {
		t.Run(fmt.Sprintf("refuses a holder of %d characters", n), func(t *testing.T) {
			check(t, end(t, held(t, "x"), fmt.Sprintf("lastClaim: {holder: '%s'}", strings.Repeat("x", n))), path+"holder")
		})
	}
	for _, tc := range []struct{ name, change, refused string }{
		{"takes a session of 64 characters", fmt.Sprintf("lastClaim: {holder: x, session: %s}", strings.Repeat("s", 64)), ""},
		{"refuses a session of 65 characters", fmt.Sprintf("lastClaim: {holder: x, session: %s}", strings.Repeat("s", 65)), path + "session"},
		{"takes the epoch of the claim", "lastClaim: {holder: x, epoch: 1}", ""},
		{"refuses an epoch below zero", "lastClaim: {holder: x, epoch: -1}", path + "epoch"},
		{"refuses an epoch that no Lease can hold", "lastClaim: {holder: x, epoch: 2147483648}", path + "epoch"},
		{"takes Released", "lastClaim: {holder: x, ended: Released}", ""},
		{"takes Expired", "lastClaim: {holder: x, ended: Expired}", ""},
		{"takes Finished", "lastClaim: {holder: x, ended: Finished}", ""},
		{"takes Revoked", "lastClaim: {holder: x, ended: Revoked}", ""},
		{"refuses another end", "lastClaim: {holder: x, ended: Other}", path + "ended"},
		{"refuses a last claim without a holder", "lastClaim: {holder: null}", path + "holder"},
		{"refuses a last claim without an epoch", "lastClaim: {holder: x, epoch: null}", path + "epoch"},
		{"refuses a last claim without its end", "lastClaim: {holder: x, ended: null}", path + "ended"},
		{"takes a time in whole seconds", `lastClaim: {holder: x, at: "2026-01-01T02:00:00+02:00"}`, ""},
		{"refuses a time that Go cannot read", `lastClaim: {holder: x, at: "2026-01-01t00:00:00z"}`, path + "at"},
	} {
		t.Run(tc.name, func(t *testing.T) { check(t, end(t, held(t, "x"), tc.change), tc.refused) })
	}
}

func TestTheEpochIsBounded(t *testing.T) {
	c := server(t)
	for _, tc := range []struct{ name, epoch, refused string }{
		{"takes zero", "0", ""},
		{"refuses what is below zero", "-1", "status.epoch"},
		{"refuses what no Lease can hold", "2147483648", "status.epoch"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := object(t, full["Task"])
			must(t, create(t, c, u))
			check(t, patchStatus(t, c, u, "{epoch: "+tc.epoch+"}"), tc.refused)
		})
	}
}

func TestEveryEnumTakesItsValuesAndNoOther(t *testing.T) {
	c := server(t)
	// The states of a task and the ends of a claim depend on what was before; they have tests of their own.
	free := map[string]bool{"status.state": false, "status.lastClaim.ended": false}
	with := map[string]string{"spec.subjects[].kind": "spec: {subjects: [{kind: User, name: said}]}"}
	for kind, table := range enums {
		for path, values := range table {
			try := func(t *testing.T, v, refused string) {
				t.Helper()
				u := object(t, full[kind], with[path])
				set(t, u.Object, path, v)
				if path == "spec.scopes[]" {
					set(t, u.Object, "spec.scopes", []any{v})
				}
				if path == "status.consent.state" && (v == "Pending" || v == "Rejected") {
					u.Object["status"] = map[string]any{"consent": get(u.Object, "status.consent")}
				}
				check(t, write(t, c, u, path), refused)
			}
			if _, elsewhere := free[path]; !elsewhere {
				for _, v := range values {
					t.Run(fmt.Sprintf("%s %s takes %s", kind, path, v), func(t *testing.T) { try(t, v, "") })
				}
			}
			if path != "status.lastClaim.ended" {
				t.Run(fmt.Sprintf("%s %s refuses Other", kind, path), func(t *testing.T) { try(t, "Other", "Unsupported value") })
			}
		}
	}
}

func TestEveryRequiredFieldMustBeGiven(t *testing.T) {
	c := server(t)
	for kind, paths := range required {
		for _, path := range paths {
			if strings.HasPrefix(path, "status.lastClaim.") {
				continue // TestTheLastClaimIsBounded
			}
			t.Run(kind+" without "+path, func(t *testing.T) {
				u, nothing := object(t, full[kind]), any(nil)
				if strings.HasPrefix(path, "status.") {
					nothing = null{} // the default status holds some of them, so that leaving them out changes nothing
				}
				at := set(t, u.Object, path, nothing)
				check(t, write(t, c, u, path), at)
			})
		}
	}
}
