package project

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// The API server itself judges dist/install.yaml: unknown fields are refused, and pods must fit the namespace's security level.
func TestClusterTakesTheInstaller(t *testing.T) {
	if testing.Short() || os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("needs an API server: set KUBEBUILDER_ASSETS, or run make test")
	}
	plane := &envtest.Environment{}
	if _, err := plane.Start(); err != nil {
		t.Fatalf("starting the API server: %v", err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, plane.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	installer := readFile(t, "dist/install.yaml")
	// Twice: what is installed can be installed over.
	for range 2 {
		apply := exec.CommandContext(t.Context(), "kubectl", "--kubeconfig", kubeconfig,
			"apply", "--server-side", "--validate=strict", "-f", "-")
		apply.Stdin = bytes.NewReader(installer)
		out, err := apply.CombinedOutput()
		if err != nil || strings.Contains(string(out), "Warning") {
			t.Fatalf("kubectl apply: %v\n%s", err, out)
		}
	}
}
