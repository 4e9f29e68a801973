package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/test/harness"
)

func list(t *testing.T, w *harness.World, lists ...client.ObjectList) error {
	t.Helper()
	var errs []error
	for _, l := range lists {
		errs = append(errs, w.Plane.Client.List(context.Background(), l, client.InNamespace(w.Namespace)))
	}
	return errors.Join(errs...)
}

func versions(l *v1alpha1.TaskList) string {
	var b strings.Builder
	for i := range l.Items {
		b.WriteString(l.Items[i].ResourceVersion + " ")
	}
	return b.String()
}

// entries unpacks an archive.
func entries(t *testing.T, file string) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(content(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = string(raw)
	}
}

func differ(t *testing.T, a, b string) string {
	t.Helper()
	x, y := entries(t, a), entries(t, b)
	delete(x, "index.json")
	delete(y, "index.json")
	return cmp.Diff(x, y)
}
