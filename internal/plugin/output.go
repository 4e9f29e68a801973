package plugin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/terminal"
)

func list(words []string) string { return strings.Join(words, ", ") }

func oneOf(flag, value string, allowed []string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return problem.New(problem.Validation, "--%s must be one of %s, not %q", flag, list(allowed), value)
}

// say writes a line for a person. The arguments may be what strangers wrote.
func (o *options) say(format string, args ...any) {
	for i, a := range args {
		switch v := a.(type) {
		case string:
			args[i] = terminal.Line(v)
		case fmt.Stringer:
			args[i] = terminal.Line(v.String())
		}
	}
	_, _ = fmt.Fprintf(o.Out, format+"\n", args...)
}

// table makes a table for the screen.
func (o *options) table(flexible string, columns ...string) *terminal.Table {
	return &terminal.Table{Columns: columns, Flexible: slices.Index(columns, flexible), Width: o.columns}
}

// write shows a table, or says that there is nothing in it.
func (o *options) write(t *terminal.Table, nothing string) error {
	if t.Len() == 0 {
		_, _ = fmt.Fprintln(o.Err, terminal.Line(nothing))
		return nil
	}
	return t.Write(o.Out, !o.noHeaders) //nolint:wrapcheck // says itself what it did
}

// objects shows objects as -o says: names, JSON or YAML. It answers false when a table is asked for.
func objects[T client.Object](o *options, found []T, single bool) (bool, error) {
	switch o.output {
	case "name":
		for _, obj := range found {
			gvk, err := apiutil.GVKForObject(obj, o.watch.Scheme())
			if err != nil {
				return true, fmt.Errorf("naming an object: %w", err)
			}
			mapping, err := o.watch.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
			if err != nil {
				return true, fmt.Errorf("naming an object: %w", err)
			}
			// As kubectl writes it: room.agentrooms.dev/lab.
			o.say("%s.%s/%s", strings.ToLower(mapping.GroupVersionKind.Kind), gvk.Group, obj.GetName())
		}
		return true, nil
	case "json", "yaml":
		items := make([]any, 0, len(found))
		for _, obj := range found {
			u, err := plain(o, obj)
			if err != nil {
				return true, err
			}
			items = append(items, u)
		}
		if single && len(items) == 1 {
			return true, o.encode(items[0])
		}
		return true, o.encode(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items})
	default:
		return false, nil
	}
}

// plain gives an object as kubectl shows it: with its kind and without managedFields.
func plain(o *options, obj client.Object) (map[string]any, error) {
	gvk, err := apiutil.GVKForObject(obj, o.watch.Scheme())
	if err != nil {
		return nil, fmt.Errorf("showing an object: %w", err)
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("showing an object: %w", err)
	}
	u["apiVersion"], u["kind"] = gvk.GroupVersion().String(), gvk.Kind
	if meta, ok := u["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	return u, nil
}

// encode writes a value as JSON or YAML, as -o says.
func (o *options) encode(v any) error {
	if o.output == "yaml" {
		return terminal.YAML(o.Out, v) //nolint:wrapcheck // says itself what it did
	}
	return terminal.JSON(o.Out, v, "    ") //nolint:wrapcheck // says itself what it did
}

// age gives how long ago something was, as kubectl does.
func age(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, time.Since(at)))
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
