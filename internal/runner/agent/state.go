package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/agentrooms/agentrooms/internal/datadir"
	"github.com/agentrooms/agentrooms/internal/filelock"
	"github.com/agentrooms/agentrooms/internal/ids"
)

const (
	// pendingFile holds what the command has done and the rooms have not been told yet.
	pendingFile = "pending.json"
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

// keep remembers what has to be told, beyond the end of the process.
func (s *state) keep(what any) error {
	raw, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("encoding what is to be kept: %w", err)
	}
	return s.dir.WriteFile(pendingFile, raw, 0o600)
}

// kept reads what was kept, and says false when there is nothing. What cannot be read is of no use and is taken for nothing.
func (s *state) kept(into any) bool {
	raw, err := s.read(pendingFile)
	return err == nil && len(raw) > 0 && json.Unmarshal(raw, into) == nil
}

// settled forgets what was kept.
func (s *state) settled() error {
	if err := os.Remove(s.dir.Path(pendingFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
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
	f, err := os.Open(s.dir.Path(name))
	if err != nil {
		return nil, err //nolint:wrapcheck // callers take it for nothing
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxResultBytes))
}
