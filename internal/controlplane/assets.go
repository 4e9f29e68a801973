package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// The file names of the three programs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
)

// Names lists the three programs in the order in which they are built and started.
var Names = []string{Etcd, APIServer, ControllerManager}

// Assets says where the three programs are.
type Assets struct {
	Etcd              string
	APIServer         string
	ControllerManager string
}

// Options says where to look. The zero value is the ordinary choice.
type Options struct {
	// Progress is told what is being built. Nil discards it.
	Progress io.Writer
	// CacheDir holds what was built; empty means agentrooms/controlplane in the user's cache folder.
	CacheDir string
	// AssetsDir stands for KUBEBUILDER_ASSETS when it is set.
	AssetsDir string
	// EnvtestDir stands for setup-envtest's store when it is set.
	EnvtestDir string

	// build replaces the real build in tests.
	build buildFunc
}

// Find returns the three programs, and builds those that are nowhere to be found.
func Find(ctx context.Context, opts Options) (Assets, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return Assets{}, err
	}
	paths := map[string]string{}
	var missing []string
	for _, name := range Names {
		if path := lookUp(name, opts); path != "" {
			paths[name] = path
			continue
		}
		missing = append(missing, name)
	}
	if len(missing) > 0 {
		built, err := buildMissing(ctx, opts, missing)
		if err != nil {
			return Assets{}, err
		}
		for _, name := range missing {
			paths[name] = filepath.Join(built, name)
		}
	}
	return Assets{Etcd: paths[Etcd], APIServer: paths[APIServer], ControllerManager: paths[ControllerManager]}, nil
}

// Dir returns one folder that holds all three programs. When they come from different places, it is a folder of links.
func (a Assets) Dir(opts Options) (string, error) {
	dir := filepath.Dir(a.Etcd)
	if filepath.Dir(a.APIServer) == dir && filepath.Dir(a.ControllerManager) == dir {
		return dir, nil
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(a.paths(), "\n")))
	target := filepath.Join(opts.CacheDir, "links-"+hex.EncodeToString(sum[:8]))
	if isDir(target) {
		return target, nil
	}
	return target, a.link(opts.CacheDir, target)
}

// link makes the folder of links beside its final place and renames it, so that nobody sees half of it.
func (a Assets) link(cacheDir, target string) error {
	temp, err := makeTemp(cacheDir)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	for i, path := range a.paths() {
		if err := os.Symlink(path, filepath.Join(temp, Names[i])); err != nil {
			return fmt.Errorf("linking %s: %w", Names[i], err)
		}
	}
	if err := os.Rename(temp, target); err != nil && !isDir(target) {
		return fmt.Errorf("putting the links in place: %w", err)
	}
	return nil
}

func (a Assets) paths() []string { return []string{a.Etcd, a.APIServer, a.ControllerManager} }

func (o Options) withDefaults() (Options, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.AssetsDir == "" {
		o.AssetsDir = os.Getenv("KUBEBUILDER_ASSETS")
	}
	if o.EnvtestDir == "" {
		o.EnvtestDir = defaultEnvtestDir()
	}
	if o.build == nil {
		o.build = goBuild
	}
	if o.CacheDir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("finding the cache folder: %w", err)
		}
		o.CacheDir = filepath.Join(dir, "agentrooms", "controlplane")
	}
	return o, nil
}

// lookUp returns the path of one program, or "" when it has to be built.
func lookUp(name string, opts Options) string {
	for _, dir := range []string{opts.AssetsDir, newestEnvtest(opts.EnvtestDir, name), opts.builtDir()} {
		if dir == "" {
			continue
		}
		path, err := filepath.Abs(filepath.Join(dir, name))
		if err == nil && isExecutable(path) {
			return path
		}
	}
	return ""
}

// builtDir is where this version's own builds are kept.
func (o Options) builtDir() string { return filepath.Join(o.CacheDir, CacheKey()) }

func makeTemp(cacheDir string) (string, error) {
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder: %w", err)
	}
	temp, err := os.MkdirTemp(cacheDir, tempPrefix)
	if err != nil {
		return "", fmt.Errorf("making a temporary folder: %w", err)
	}
	return temp, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// errNoGo tells what to do where there is nothing to build with.
var errNoGo = errors.New("there is no go command to build the control plane with: " +
	"install Go, or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kube-controller-manager")
