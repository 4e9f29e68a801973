package controlplane

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The module that pins the control plane: copies of hack/controlplane's, kept the same by `make generate` and a test.
var (
	//go:embed module/go.mod.txt
	goMod []byte
	//go:embed module/go.sum.txt
	goSum []byte
)

// packages maps each program to the package that it is built from.
var packages = map[string]string{
	Etcd:              "go.etcd.io/etcd/server/v3",
	APIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
	ControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
}

// KubernetesVersion is the version of Kubernetes that gets built, such as v1.37.2.
func KubernetesVersion() string { return requiredVersion("k8s.io/kubernetes") }

// EtcdVersion is the version of etcd that gets built, such as v3.7.3.
func EtcdVersion() string { return requiredVersion("go.etcd.io/etcd/server/v3") }

// CacheKey names the folder of a build: another version, platform or dependency is another folder.
func CacheKey() string {
	hash := sha256.New()
	hash.Write(goMod)
	hash.Write([]byte{0})
	hash.Write(goSum)
	return fmt.Sprintf("k8s-%s-etcd-%s-%s-%s-%s", strings.TrimPrefix(KubernetesVersion(), "v"),
		strings.TrimPrefix(EtcdVersion(), "v"), runtime.GOOS, runtime.GOARCH, hex.EncodeToString(hash.Sum(nil))[:12])
}

// requiredVersion reads a module's version from the require lines of the embedded go.mod.
func requiredVersion(module string) string {
	for line := range strings.Lines(string(goMod)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1]
		}
	}
	return "unknown"
}

// linkerFlags strip the symbols and, for Kubernetes, set the version that the program reports (and judges features by).
func linkerFlags(name string) string {
	flags := "-s -w"
	if name == Etcd {
		return flags
	}
	const pkg = "k8s.io/component-base/version"
	major, minor, _ := strings.Cut(strings.TrimPrefix(KubernetesVersion(), "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	return fmt.Sprintf("%s -X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s",
		flags, pkg, KubernetesVersion(), pkg, major, pkg, minor)
}

// writeModule writes the module that the programs are built in.
func writeModule(dir string) error {
	for name, content := range map[string][]byte{"go.mod": goMod, "go.sum": goSum} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("writing the control plane's module: %w", err)
		}
	}
	return nil
}
