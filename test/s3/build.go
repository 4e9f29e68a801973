package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/agentrooms/agentrooms/internal/filelock"
)

const (
	// serverPackage is what the server is built from; hack/s3server pins its version.
	serverPackage = "github.com/versity/versitygw/cmd/versitygw"
	// buildTimeout bounds the build, which takes some minutes once on two cores.
	buildTimeout = 30 * time.Minute
)

// program gives the path of the server's program, and builds it when this version of it is not in the user's cache yet.
func program(ctx context.Context) (string, error) {
	module, err := moduleDir()
	if err != nil {
		return "", err
	}
	sums, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return "", fmt.Errorf("reading the server's module: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	key := sha256.Sum256(sums)
	dir := filepath.Join(cache, "agentrooms", "s3server",
		fmt.Sprintf("%s-%s-%s", runtime.GOOS, runtime.GOARCH, hex.EncodeToString(key[:6])))
	path := filepath.Join(dir, "versitygw")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder: %w", err)
	}
	lock, err := filelock.Acquire(ctx, filepath.Join(dir, "build.lock"), nil)
	if err != nil {
		return "", fmt.Errorf("locking the server's cache: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, build(ctx, module, path)
}

// build builds beside the place of the program, so that nobody finds half of it.
func build(ctx context.Context, module, path string) error {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	temp := path + ".new"
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o", temp, serverPackage)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the S3 server: %w\n%s", err, out)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("putting the S3 server in place: %w", err)
	}
	return nil
}

// moduleDir finds hack/s3server above the folder that the test runs in.
func moduleDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the project: %w", err)
	}
	for {
		module := filepath.Join(dir, "hack", "s3server")
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			return module, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("hack/s3server is in no folder above the test")
		}
		dir = filepath.Dir(dir)
	}
}
