package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheEmbeddedModuleIsTheOneInHack(t *testing.T) {
	for name, embedded := range map[string][]byte{"go.mod": goMod, "go.sum": goSum} {
		original, err := os.ReadFile(filepath.Join("..", "..", "hack", "controlplane", name))
		if err != nil {
			t.Fatalf("reading the original: %v", err)
		}
		if !bytes.Equal(original, embedded) {
			t.Errorf("internal/controlplane/module/%s.txt differs from hack/controlplane/%s: run make generate", name, name)
		}
	}
}

func TestTheKeyNamesVersionsAndPlatform(t *testing.T) {
	want := fmt.Sprintf("k8s-%s-etcd-%s-%s-%s-", strings.TrimPrefix(KubernetesVersion(), "v"),
		strings.TrimPrefix(EtcdVersion(), "v"), runtime.GOOS, runtime.GOARCH)
	if got := CacheKey(); !strings.HasPrefix(got, want) || len(got) != len(want)+12 {
		t.Errorf("key = %q, want %q and twelve digits", got, want)
	}
	for _, v := range []string{KubernetesVersion(), EtcdVersion()} {
		if !strings.HasPrefix(v, "v") {
			t.Errorf("version = %q, want one from go.mod", v)
		}
	}
	before := CacheKey()
	defer func(saved []byte) { goSum = saved }(goSum)
	goSum = append(bytes.Clone(goSum), "one more line\n"...)
	if CacheKey() == before {
		t.Errorf("the key does not depend on go.sum")
	}
}

// place makes executable files of these names in a folder.
func place(t *testing.T, dir string, names ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("making a folder: %v", err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatalf("making a program: %v", err)
		}
	}
}

// fixture is a set of empty places to look in, and a build that only writes a file.
func fixture(t *testing.T) (opts Options, builds *atomic.Int32) {
	t.Helper()
	root := t.TempDir()
	builds = &atomic.Int32{}
	return Options{
		AssetsDir:  filepath.Join(root, "assets"),
		EnvtestDir: filepath.Join(root, "envtest"),
		CacheDir:   filepath.Join(root, "cache"),
		build: func(_ context.Context, _, _, output string) error {
			builds.Add(1)
			return os.WriteFile(output, nil, 0o755)
		},
	}, builds
}

func envtestDir(opts Options, version string) string {
	return filepath.Join(opts.EnvtestDir, fmt.Sprintf("%s-%s-%s", version, runtime.GOOS, runtime.GOARCH))
}

func find(t *testing.T, opts Options) Assets {
	t.Helper()
	assets, err := Find(t.Context(), opts)
	if err != nil {
		t.Fatalf("finding: %v", err)
	}
	return assets
}

func TestEachProgramIsLookedForOnItsOwn(t *testing.T) {
	opts, builds := fixture(t)
	place(t, opts.AssetsDir, Etcd)
	place(t, envtestDir(opts, "1.36.2"), Etcd, APIServer)
	got := find(t, opts)
	want := Assets{
		Etcd:              filepath.Join(opts.AssetsDir, Etcd),
		APIServer:         filepath.Join(envtestDir(opts, "1.36.2"), APIServer),
		ControllerManager: filepath.Join(opts.builtDir(), ControllerManager),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if builds.Load() != 1 {
		t.Errorf("built %d programs, want only the one that was missing", builds.Load())
	}
}

func TestTheNewestSuitableDownloadIsTaken(t *testing.T) {
	opts, _ := fixture(t)
	for _, version := range []string{"1.35.9", "1.36.0", "1.37.10", "1.37.9", "notes"} {
		place(t, envtestDir(opts, version), APIServer)
	}
	if err := os.MkdirAll(envtestDir(opts, "1.99.0"), 0o755); err != nil {
		t.Fatalf("making an empty download: %v", err)
	}
	if got, want := newestEnvtest(opts.EnvtestDir, APIServer), envtestDir(opts, "1.37.10"); got != want {
		t.Errorf("took %q, want %q", got, want)
	}
	old, _ := fixture(t)
	place(t, envtestDir(old, "1.35.9"), APIServer)
	if got := newestEnvtest(old.EnvtestDir, APIServer); got != "" {
		t.Errorf("took %q, want none that is older than 1.36", got)
	}
}

func TestOfTwoBuildersOneBuilds(t *testing.T) {
	opts, builds := fixture(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := Find(t.Context(), opts); err != nil {
				t.Errorf("finding: %v", err)
			}
		})
	}
	group.Wait()
	if builds.Load() != 3 {
		t.Errorf("built %d programs, want each of the three once", builds.Load())
	}
	left, err := filepath.Glob(filepath.Join(opts.CacheDir, tempPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAFailedBuildLeavesNothingToBeFound(t *testing.T) {
	opts, _ := fixture(t)
	var progress bytes.Buffer
	opts.Progress = &progress
	good := opts.build
	opts.build = func(ctx context.Context, dir, name, output string) error {
		_ = good(ctx, dir, name, output)
		if name == APIServer {
			return errors.New("no space left")
		}
		return nil
	}
	_, err := Find(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "building kube-apiserver: no space left") {
		t.Errorf("error = %v", err)
	}
	if lookUp(APIServer, opts) != "" {
		t.Errorf("the half-built program is found")
	}
	if lookUp(Etcd, opts) == "" {
		t.Errorf("what was built before the failure is not kept")
	}
	if !strings.Contains(progress.String(), "building kube-apiserver (2 of 3)") {
		t.Errorf("progress = %q", progress.String())
	}
}

func TestWithoutGoTheErrorSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	opts, _ := fixture(t)
	opts.build = nil
	_, err := Find(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "KUBEBUILDER_ASSETS") {
		t.Errorf("error = %v, want one that names what to set", err)
	}
}

func TestDirHoldsAllThree(t *testing.T) {
	opts, _ := fixture(t)
	place(t, opts.AssetsDir, Etcd)
	place(t, envtestDir(opts, "1.37.0"), APIServer)
	assets := find(t, opts)
	for range 2 { // the second time the folder is there already
		dir, err := assets.Dir(opts)
		if err != nil {
			t.Fatalf("linking: %v", err)
		}
		for _, name := range Names {
			if !isExecutable(filepath.Join(dir, name)) {
				t.Errorf("%s has no %s", dir, name)
			}
		}
	}
	together, _ := fixture(t)
	place(t, together.AssetsDir, Names...)
	if dir, err := find(t, together).Dir(together); err != nil || dir != together.AssetsDir {
		t.Errorf("dir = %q, %v, want %q without links", dir, err, together.AssetsDir)
	}
}
