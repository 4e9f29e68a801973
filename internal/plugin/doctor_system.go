package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/config"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/leases"
)

// installAdvice says how to put an installation right.
const installAdvice = "apply the installation of the plugin's own version again: kubectl apply --server-side -f dist/install.yaml"

// checkKinds holds the kinds that the cluster serves against those that the plugin was built with.
func (d *doctor) checkKinds(ctx context.Context) error {
	return d.compare(ctx, "kinds", "crd/bases")
}

// checkPolicies holds the admission policies and their bindings against those that the plugin was built with.
func (d *doctor) checkPolicies(ctx context.Context) error {
	return d.compare(ctx, "policies", "policy")
}

// compare looks for the objects of a folder of manifests in the cluster.
func (d *doctor) compare(ctx context.Context, check, dir string) error {
	wanted, err := manifests(dir)
	if err != nil {
		return err
	}
	var absent, other []string
	for _, w := range wanted {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(w.GroupVersionKind())
		err := d.o.watch.Get(ctx, client.ObjectKeyFromObject(w), live)
		switch {
		case apierrors.IsNotFound(err):
			absent = append(absent, w.GetKind()+" "+w.GetName())
		case apierrors.IsForbidden(err) && check == "kinds":
			return d.servedKinds()
		case err != nil:
			return acts.Explain(err, "reading "+w.GetKind()+" "+w.GetName())
		case !within(w.Object["spec"], live.Object["spec"]):
			other = append(other, w.GetKind()+" "+w.GetName())
		}
	}
	switch {
	case len(absent) > 0:
		d.add(check, broken, installAdvice, "missing: %s", strings.Join(absent, ", "))
	case len(other) > 0:
		d.add(check, warning, installAdvice, "of another version than this plugin: %s", strings.Join(other, ", "))
	default:
		d.add(check, fine, "", "all %d %s are there, of the plugin's own version", len(wanted), check)
	}
	return nil
}

// servedKinds is what those can find out who may not read the definitions of kinds.
func (d *doctor) servedKinds() error {
	discovery, err := d.o.flags.ToDiscoveryClient()
	if err != nil {
		return fmt.Errorf("asking which kinds are served: %w", err)
	}
	served, err := discovery.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		return acts.Explain(err, "asking which kinds are served")
	}
	d.add("kinds", fine, "", "%d kinds and subresources are served; you may not see of which version", len(served.APIResources))
	return nil
}

// manifests reads the objects that the plugin was built with.
func manifests(dir string) ([]*unstructured.Unstructured, error) {
	entries, err := fs.ReadDir(config.Files, dir)
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	var found []*unstructured.Unstructured
	for _, e := range entries {
		if e.Name() == "kustomization.yaml" {
			continue
		}
		raw, err := fs.ReadFile(config.Files, path.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the manifests: %w", err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
		for {
			u := &unstructured.Unstructured{}
			if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("reading %s: %w", e.Name(), err)
			}
			if len(u.Object) > 0 {
				found = append(found, u)
			}
		}
	}
	return found, nil
}

// within says whether everything that is wanted stands in what is there, which the API server fills up with defaults.
func within(wanted, there any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		t, ok := there.(map[string]any)
		if !ok {
			return len(w) == 0 && there == nil
		}
		for k, v := range w {
			if !within(v, t[k]) {
				return false
			}
		}
		return true
	case []any:
		t, ok := there.([]any)
		if !ok || len(t) != len(w) {
			return false
		}
		for i := range w {
			if !within(w[i], t[i]) {
				return false
			}
		}
		return true
	default:
		a, isNumber := number(wanted)
		b, alsoNumber := number(there)
		return reflect.DeepEqual(wanted, there) || (isNumber && alsoNumber && a == b)
	}
}

// number reads a number as YAML or JSON gives it. None in a manifest has more digits than a float holds.
func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	default:
		return 0, false
	}
}

// grace is how long the manager and holders of leases may take.
const grace = 30 * time.Second

// checkManager looks for what the manager should have dealt with.
func (d *doctor) checkManager(ctx context.Context) error {
	var rooms v1alpha1.RoomList
	var tasks v1alpha1.TaskList
	for _, l := range []client.ObjectList{&rooms, &tasks} {
		if err := d.o.watch.List(ctx, l, client.InNamespace(d.namespace)); err != nil {
			return acts.Explain(err, "looking at what the manager does")
		}
	}
	var left []string
	note := func(kind string, o client.Object, observed int64) {
		if observed < o.GetGeneration() && d.now().Sub(o.GetCreationTimestamp().Time) > grace {
			left = append(left, kind+" "+o.GetNamespace()+"/"+o.GetName())
		}
	}
	for i := range rooms.Items {
		note("room", &rooms.Items[i], rooms.Items[i].Status.ObservedGeneration)
	}
	for i := range tasks.Items {
		note("task", &tasks.Items[i], tasks.Items[i].Status.ObservedGeneration)
	}
	switch {
	case len(left) > 0:
		d.add("manager", warning, "it runs as deployment agentrooms-manager in namespace agentrooms-system, or as a child of rooms up: see its log",
			"%d objects wait for it: %s", len(left), some(left))
	case len(rooms.Items) == 0:
		d.add("manager", unknown, "kubectl rooms new room NAME | kubectl apply -f - makes a room", "there is no room to see it by")
	default:
		d.add("manager", fine, "", "%d rooms and %d tasks are up to date", len(rooms.Items), len(tasks.Items))
	}
	return nil
}

// now is the API server's time, about.
func (d *doctor) now() time.Time { return time.Now().Add(d.skew) }

// some names the first of many.
func some(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// checkLeases looks for tasks whose holder does not renew, or whose lease should have been taken away.
func (d *doctor) checkLeases(ctx context.Context) error {
	var tasks v1alpha1.TaskList
	err := d.o.watch.List(ctx, &tasks, client.InNamespace(d.namespace), client.MatchingFields{"status.state": string(v1alpha1.TaskDoing)})
	if err != nil {
		return acts.Explain(err, "looking for stuck leases")
	}
	held := d.o.leases(ctx, d.namespace)
	if len(held) == 0 && len(tasks.Items) > 0 {
		d.add("leases", unknown, "the ClusterRole view lets you see leases", "%d tasks are held, and you see no leases", len(tasks.Items))
		return nil
	}
	var stale, stuck []string
	for i := range tasks.Items {
		t := &tasks.Items[i]
		name := t.Namespace + "/" + t.Name
		l := held[t.Name]
		switch {
		case l == nil || leases.Epoch(l) != t.Status.Epoch:
			if d.now().Sub(t.Status.Claim.AcquiredAt.Time) > grace {
				stuck = append(stuck, name)
			}
		case expiredCondition(t):
			stale = append(stale, name)
		case d.now().Sub(leases.ExpiresAt(l)) > grace:
			stuck = append(stuck, name)
		}
	}
	switch {
	case len(stuck) > 0:
		d.add("leases", broken, "the manager takes leases away when they run out: is it running? kubectl rooms task release TASK frees one",
			"held beyond their lease: %s", some(stuck))
	case len(stale) > 0:
		d.add("leases", warning, "their room says MarkStale: kubectl rooms task release TASK frees one", "their holders do not renew: %s", some(stale))
	default:
		d.add("leases", fine, "", "%d tasks are held, all under leases that run", len(tasks.Items))
	}
	return nil
}

func expiredCondition(t *v1alpha1.Task) bool {
	for _, c := range t.Status.Conditions {
		if c.Type == v1alpha1.LeaseLiveCondition && c.Status == "False" {
			return true
		}
	}
	return false
}
