package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agentrooms/agentrooms/internal/datadir"
	"github.com/agentrooms/agentrooms/internal/filelock"
	"github.com/agentrooms/agentrooms/internal/ids"
)

const (
	// pendingPrefix begins the names of the files that hold what the command has done and the rooms have not been told yet.
	pendingPrefix = "pending-"
	// resultFile is where a command may write its result.
	resultFile = "result.json"
	// maxResultBytes bounds what is read of either.
	maxResultBytes = 64 << 10
)

// state is the folder of one instance, which no other process on this machine has.
type state struct{ dir *datadir.Dir }

// openState takes the folder of an instance. Two processes under the name of one instance would both take themselves for the
// holder of its tasks.
func openState(top, plate, session string) (*state, error) {
	path := filepath.Join(top, ids.Digest("runner", plate, session)[:24])
	dir, err := datadir.Open(path)
	if held, ok := errors.AsType[*filelock.HeldError](err); ok {
		return nil, fmt.Errorf("process %d runs as the instance %s of this agent already: stop that one, or give this one another --instance-id",
			held.PID, session)
	}
	if err != nil {
		return nil, fmt.Errorf("taking the state folder %s (another one can be named with --state-dir): %w", path, err)
	}
	return &state{dir: dir}, nil
}

func (s *state) close() error { return s.dir.Close() }

// keep remembers what has to be told about a task or a mention, beyond the end of the process.
func (s *state) keep(id string, what any) error {
	raw, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("encoding what is to be kept: %w", err)
	}
	return s.dir.WriteFile(pendingName(id), raw, 0o600)
}

func pendingName(id string) string { return pendingPrefix + ids.Digest(id)[:24] + ".json" }

// kept reads all that was kept. What cannot be read is of no use and is left out.
func kept[T any](s *state) []T {
	names, err := filepath.Glob(s.dir.Path(pendingPrefix + "*.json"))
	if err != nil {
		return nil
	}
	var list []T
	for _, name := range names {
		var one T
		if raw, err := s.read(filepath.Base(name)); err == nil && json.Unmarshal(raw, &one) == nil {
			list = append(list, one)
		}
	}
	return list
}

// settled forgets what was kept about a task or a mention.
func (s *state) settled(id string) error {
	if err := os.Remove(s.dir.Path(pendingName(id))); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forgetting what was told: %w", err)
	}
	return nil
}

// freshResult gives the path of an empty place for a result.
func (s *state) freshResult() (string, error) {
	path := s.dir.Path(resultFile)
	if err := os.RemoveAll(path); err != nil {
		return "", fmt.Errorf("removing an old result: %w", err)
	}
	return path, nil
}

// result reads what the command wrote as its result, empty for nothing.
func (s *state) result() string {
	raw, err := s.read(resultFile)
	if err != nil {
		return ""
	}
	return string(raw)
}

func (s *state) read(name string) ([]byte, error) {
	// The command has this folder to itself: what it put there instead of a file may neither be waited for nor followed.
	f, err := os.OpenFile(s.dir.Path(name), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // callers take it for nothing
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file: %w", name, errors.Join(err, os.ErrInvalid))
	}
	return io.ReadAll(io.LimitReader(f, maxResultBytes))
}
