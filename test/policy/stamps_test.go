package policy_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func spec(u *unstructured.Unstructured, field string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", field)
	return v
}

func byUser(name string) map[string]any   { return map[string]any{"user": name} }
func byPlate(plate string) map[string]any { return map[string]any{"plate": plate} }

func TestTheCreatorOfATaskIsWhoeverCreatedIt(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	for _, tc := range []struct {
		name, user, change string
		want               any
	}{
		{"a user who names nobody", said, "", byUser(said)},
		{"a user who names themselves", said, "spec: {creator: {user: said}}", byUser(said)},
		{"a user who names somebody else", said, "spec: {creator: {user: maya}}", byUser(said)},
		{"a user who names an agent", said, "spec: {creator: {plate: " + plate + "}}", byUser(said)},
		{"the bridge that names an agent", bridge, "spec: {creator: {plate: " + plate + "}}", byPlate(plate)},
		{"the bridge that names a person", bridge, "spec: {creator: {user: maya}}", byUser(maya)},
		{"the bridge that names nobody", bridge, "", nil},
		{"the manager that names an agent", manager, "spec: {creator: {plate: " + plate + "}}", byPlate(plate)},
		{"a restorer who names who it was", restorer, "spec: {creator: {plate: " + plate + "}}", byPlate(plate)},
		{"a restorer who names nobody", restorer, "", byUser(restorer)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := parse(ns, task, tc.change)
			must(t, as(tc.user).Create(t.Context(), u))
			must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
			var got any
			if c, ok := spec(u, "creator").(map[string]any); ok {
				got = c
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("creator (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheAssignerOfATaskIsWhoeverAssignedIt(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	// Each starts from a task that an agent created and assigned to cc, and changes it. Without a change the task is created
	// by the user.
	const before = "spec: {assignee: cc, creator: {plate: " + plate + "}, assignedBy: {plate: " + plate + "}}"
	for _, tc := range []struct {
		name, user, creates, changes string
		want                         any
	}{
		{"a user who creates a task for somebody", said, "spec: {assignee: dd}", "", byUser(said)},
		{"a user who creates one in somebody's name", said, "spec: {assignee: dd, assignedBy: {user: maya}}", "", byUser(said)},
		{"a user who creates a task for nobody", said, "", "", nil},
		{"the bridge that creates one for an agent", bridge, before, "", byPlate(plate)},
		{"a restorer who creates one as it was", restorer, before, "", byPlate(plate)},
		{"a restorer who creates one and says nothing", restorer, "spec: {assignee: dd}", "", byUser(restorer)},

		{"a user who reassigns", said, "", "spec: {assignee: dd}", byUser(said)},
		{"a user who reassigns in somebody's name", said, "", "spec: {assignee: dd, assignedBy: {plate: null, user: maya}}", byUser(said)},
		{"a user who changes something else", said, "", "spec: {priority: 9, order: 3}", byPlate(plate)},
		{"a user who changes the title", said, "", "spec: {title: Other}", byUser(said)},
		{"a user who changes the detail", said, "", "spec: {detail: Other}", byUser(said)},
		{"a user who changes when it is done", said, "", "spec: {definitionOfDone: Other}", byUser(said)},
		{"a user who changes the title in somebody's name", said, "", "spec: {title: Other, assignedBy: {plate: null, user: maya}}", byUser(said)},
		{"a user who changes the title of a task for nobody", said, "", "spec: {title: Other, assignee: null, assignedBy: null}", nil},
		{"the bridge that changes the title", bridge, "", "spec: {title: Other}", byPlate(plate)},
		{"the bridge that reassigns", bridge, "", "spec: {assignee: dd, assignedBy: {plate: null, user: maya}}", byUser(maya)},
		{"the manager that changes something else", manager, "", "spec: {title: Other}", byPlate(plate)},
		{"a restorer who reassigns and says nothing", restorer, "", "spec: {assignee: dd}", byUser(restorer)},
		{"a restorer who puts the assigner right", restorer, "", "spec: {assignee: dd, assignedBy: {plate: null, user: maya}}", byUser(maya)},
		{"a user who drops the assigner and not the assignee", said, "", "spec: {assignedBy: null}", byPlate(plate)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := parse(ns, task, tc.creates)
			if tc.changes == "" {
				must(t, as(tc.user).Create(t.Context(), u))
			} else {
				u = parse(ns, task, before)
				must(t, as(bridge).Create(t.Context(), u))
				must(t, patch(t.Context(), tc.user, u, tc.changes))
			}
			must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
			var got any
			if c, ok := spec(u, "assignedBy").(map[string]any); ok {
				got = c
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("assignedBy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheOneWhoDecidedIsWhoeverWroteTheDecision(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	for _, tc := range []struct {
		name, before, user, change, want string
	}{
		{"a user who decides", "", said, "spec: {decision: {verdict: Accept}}", said},
		{"a user who decides in somebody's name", "", said, "spec: {decision: {verdict: Accept, by: maya}}", said},
		{"a user who changes somebody's decision", "spec: {decision: {verdict: Accept, by: maya}}", said, "spec: {decision: {verdict: Reject}}", said},
		{"a user who changes the reason only", "spec: {decision: {verdict: Accept, by: maya}}", said, "spec: {decision: {reason: mine}}", said},
		{"a user who changes who it was only", "spec: {decision: {verdict: Accept, by: maya}}", said, "spec: {decision: {by: someone}}", said},
		{"a user who changes something else", "spec: {decision: {verdict: Accept, by: maya}}", said, "spec: {priority: 9}", maya},
		{"the bridge", "", bridge, "spec: {decision: {verdict: Accept, by: maya}}", maya},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := parse(ns, task, "spec: {assignee: cc}", tc.before)
			must(t, as(bridge).Create(t.Context(), u))
			must(t, patch(t.Context(), tc.user, u, tc.change))
			must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
			if got, _, _ := unstructured.NestedString(u.Object, "spec", "decision", "by"); got != tc.want {
				t.Errorf("decided by %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("a restorer who creates a task as it was", func(t *testing.T) {
		u := parse(ns, task, "spec: {assignee: cc, decision: {verdict: Accept, by: maya}}")
		must(t, as(restorer).Create(t.Context(), u))
		if got, _, _ := unstructured.NestedString(u.Object, "spec", "decision", "by"); got != maya {
			t.Errorf("decided by %q, want %q", got, maya)
		}
	})
}

func TestTheOneWhoGaveAnOrderIsWhoeverWroteIt(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	const before = "spec: {intervention: {id: i1, action: Release, by: maya}}"
	for _, tc := range []struct {
		name, before, user, change, want string
	}{
		{"a user who gives an order", "", said, "spec: {intervention: {id: i2, action: Release}}", said},
		{"a user who gives one in somebody's name", "", said, "spec: {intervention: {id: i2, action: Release, by: maya}}", said},
		{"a user who gives another than the one before", before, said, "spec: {intervention: {id: i2}}", said},
		{"a user who changes who it was only", before, said, "spec: {intervention: {by: someone}}", said},
		{"a user who changes something else", before, said, "spec: {priority: 9}", maya},
		{"the bridge", "", bridge, "spec: {intervention: {id: i2, action: Release, by: maya}}", maya},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := parse(ns, task, tc.before)
			must(t, as(bridge).Create(t.Context(), u))
			must(t, patch(t.Context(), tc.user, u, tc.change))
			must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
			if got, _, _ := unstructured.NestedString(u.Object, "spec", "intervention", "by"); got != tc.want {
				t.Errorf("ordered by %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("a restorer who creates a task as it was", func(t *testing.T) {
		u := parse(ns, task, before)
		must(t, as(restorer).Create(t.Context(), u))
		if got, _, _ := unstructured.NestedString(u.Object, "spec", "intervention", "by"); got != maya {
			t.Errorf("ordered by %q, want %q", got, maya)
		}
	})
}

func TestStampsStayWhereTheManifestDoesNotHoldThem(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	const wanted = "spec: {assignee: cc, priority: 9}"
	u := parse(ns, task, "spec: {assignee: cc}")
	must(t, as(said).Create(t.Context(), u))

	replaced := parse(ns, task, wanted)
	replaced.SetName(u.GetName())
	replaced.SetResourceVersion(u.GetResourceVersion())
	must(t, as(maya).Update(t.Context(), replaced))
	want := map[string]any{"creator": byUser(said), "assignedBy": byUser(said), "priority": int64(9)}
	got := map[string]any{"creator": spec(replaced, "creator"), "assignedBy": spec(replaced, "assignedBy"), "priority": spec(replaced, "priority")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Server-side apply of one manifest, again and by others, changes nothing.
func TestApplyingATaskAgainChangesNothing(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	apply := func(user string) string {
		u := parse(ns, task, "{metadata: {name: applied}, spec: {assignee: cc}}")
		must(t, as(user).Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl")))
		must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
		if diff := cmp.Diff(byUser(said), spec(u, "creator")); diff != "" {
			t.Errorf("creator (-want +got):\n%s", diff)
		}
		return u.GetResourceVersion()
	}
	apply(said)
	settled := apply(said)
	for _, user := range []string{said, maya} {
		if got := apply(user); got != settled {
			t.Errorf("applied again by %s: resourceVersion went from %s to %s", user, settled, got)
		}
	}
}

// Where the stamps are not in force, what they would have written is demanded.
func TestWhatIsNotStampedIsRefused(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	bindings, err := manifests("../../config/policy/stamps.yaml")
	must(t, err)
	ctx := context.WithoutCancel(t.Context())
	for _, b := range bindings {
		if b.GetKind() == "MutatingAdmissionPolicyBinding" {
			must(t, env.Client.Delete(ctx, b.DeepCopy()))
		}
	}
	t.Cleanup(func() {
		for _, b := range bindings {
			if b.GetKind() == "MutatingAdmissionPolicyBinding" {
				if err := env.Client.Create(ctx, b.DeepCopy()); err != nil {
					t.Errorf("putting %s back: %v", b.GetName(), err)
				}
			}
		}
		if err := await(ctx, probes()[0]); err != nil {
			t.Error(err)
		}
	})
	unstamped := func(ctx context.Context) (bool, error) {
		u := parse(ns, task, "spec: {assignee: cc, decision: {verdict: Accept}}")
		err := as(restorer).Create(ctx, u, client.DryRunAll)
		_, hasCreator := spec(u, "creator").(map[string]any)
		_, hasAssigner := spec(u, "assignedBy").(map[string]any)
		by, _, _ := unstructured.NestedString(u.Object, "spec", "decision", "by")
		return err == nil && !hasCreator && !hasAssigner && by == "", nil
	}
	must(t, await(t.Context(), unstamped))

	const (
		creator  = "spec.creator must be the one who creates the task: {user: said}"
		assigner = "spec.assignedBy must be the one who assigns the task: {user: said}"
		decider  = "spec.decision.by must be the one who decides: said"
		orderer  = "spec.intervention.by must be the one who gives the order: said"
	)
	for _, tc := range []struct{ name, change, refused string }{
		{"a task of one's own", "spec: {creator: {user: said}}", ""},
		{"a task of nobody", "", creator},
		{"a task of somebody else", "spec: {creator: {user: maya}}", creator},
		{"a task of an agent", "spec: {creator: {plate: " + plate + "}}", creator},
		{"a task one assigned", "spec: {creator: {user: said}, assignee: cc, assignedBy: {user: said}}", ""},
		{"a task that nobody assigned", "spec: {creator: {user: said}, assignee: cc}", assigner},
		{"a task that somebody else assigned", "spec: {creator: {user: said}, assignee: cc, assignedBy: {user: maya}}", assigner},
		{"an assigner of nothing", "spec: {creator: {user: said}, assignedBy: {user: maya}}", assigner},
		{"a decision of one's own", "spec: {creator: {user: said}, decision: {verdict: Accept, by: said}}", ""},
		{"a decision of nobody", "spec: {creator: {user: said}, decision: {verdict: Accept}}", decider},
		{"a decision of somebody else", "spec: {creator: {user: said}, decision: {verdict: Accept, by: maya}}", decider},
		{"an order of one's own", "spec: {creator: {user: said}, intervention: {id: i1, action: Release, by: said}}", ""},
		{"an order of nobody", "spec: {creator: {user: said}, intervention: {id: i1, action: Release}}", orderer},
		{"an order of somebody else", "spec: {creator: {user: said}, intervention: {id: i1, action: Release, by: maya}}", orderer},
	} {
		t.Run("said "+verdict(tc.refused)+" create "+tc.name, func(t *testing.T) {
			check(t, as(said).Create(t.Context(), parse(ns, task, tc.change)), tc.refused)
		})
	}
	const before = "spec: {creator: {user: maya}, assignee: cc, assignedBy: {user: maya}, decision: {verdict: Accept, by: maya}}"
	for _, tc := range []struct{ name, user, change, refused string }{
		{"change the priority", said, "spec: {priority: 9}", ""},
		{"change the title as themselves", said, "spec: {title: Other, assignedBy: {user: said}, decision: null}", ""},
		{"change the title as the one before", said, "spec: {title: Other, decision: null}", assigner},
		{"reassign as themselves", said, "spec: {assignee: dd, assignedBy: {user: said}, decision: null}", ""},
		{"reassign as the one before", said, "spec: {assignee: dd, decision: null}", assigner},
		{"name another assigner", said, "spec: {assignedBy: {user: someone}}", assigner},
		{"drop the assigner, so that the creator seems to have assigned", said, "spec: {assignedBy: null}", assigner},
		{"take the assignee away", said, "spec: {assignee: null, decision: null}", ""},
		{"take the assignee and the assigner away", said, "spec: {assignee: null, assignedBy: null, decision: null}", ""},
		{"turn somebody's decision around", said, "spec: {decision: {verdict: Reject}}", decider},
		{"turn it around in their own name", said, "spec: {decision: {verdict: Reject, by: said}}", ""},
		{"take a decision away", said, "spec: {decision: null}", ""},
		{"turn it around to restore it", restorer, "spec: {decision: {verdict: Reject}}", ""},
	} {
		t.Run(tc.user+" "+verdict(tc.refused)+" "+tc.name, func(t *testing.T) {
			u := parse(ns, task, before)
			must(t, as(bridge).Create(t.Context(), u))
			check(t, patch(t.Context(), tc.user, u, tc.change), tc.refused)
		})
	}
	t.Run("said may not make themselves the creator of a task that has none", func(t *testing.T) {
		u := parse(ns, task)
		must(t, as(bridge).Create(t.Context(), u))
		check(t, patch(t.Context(), said, u, "spec: {creator: {user: said}}"), "spec.creator may not be changed")
	})
}
