package runner

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/internal/filelock"
)

// commandDir makes this test binary play the command of a runner, with that folder for its journal.
const commandDir = "RUNNER_TEST_COMMAND_DIR"

// script is what the command is asked to do, as JSON in the text of the message or in the detail of the task.
type script struct {
	// Takes is how long it works.
	Takes time.Duration `json:"takes,omitempty"`
	// Hang and Fail say for how many runs it hangs, then fails with Code.
	Hang int `json:"hang,omitempty"`
	Fail int `json:"fail,omitempty"`
	Code int `json:"code,omitempty"`
	// Say is printed at the end.
	Say string `json:"say,omitempty"`
	// Deaf ignores SIGTERM.
	Deaf bool `json:"deaf,omitempty"`
}

func (s script) String() string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// line of the journal.
type line struct {
	What    string    `json:"what"`
	ID      string    `json:"id"`
	Kind    string    `json:"kind,omitempty"`
	Fence   int64     `json:"fence,omitempty"`
	Attempt int       `json:"attempt"`
	PID     int       `json:"pid"`
	Child   int       `json:"child,omitempty"`
	At      time.Time `json:"at"`
	// Holder is the instance that ran it.
	Holder string `json:"holder"`
}

const (
	began   = "began"
	ended   = "ended"
	overlap = "overlap"
)

// playCommand does what the script in its input says, and writes down when it began and when it had finished.
func playCommand(dir string) int {
	raw, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var in struct {
		Kind      string `json:"kind"`
		MentionID string `json:"mention_id"`
		Text      string `json:"text"`
		TaskID    string `json:"task_id"`
		Detail    string `json:"detail"`
		Fence     int64  `json:"fence"`
		Attempt   int    `json:"attempt"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	text, l := in.Text, line{ID: in.MentionID, Kind: in.Kind, Fence: in.Fence, Attempt: in.Attempt, PID: os.Getpid(), Holder: os.Getenv("ROOMS_SESSION_ID")}
	if l.ID == "" {
		text, l.ID = in.Detail, in.TaskID
	}
	var s script
	if json.Unmarshal([]byte(text), &s) != nil {
		s = script{}
	}
	return s.play(dir, l)
}

func (s script) play(dir string, l line) int {
	if s.Deaf {
		ignoreTerm()
	}
	before := 0
	for _, old := range journalOf(dir) {
		if old.ID == l.ID && old.What == began {
			before++
		}
	}
	// Two runs of one thing at a time are what must never be.
	if _, err := filelock.Try(filepath.Join(dir, l.ID+".lock")); err != nil {
		note(dir, l, overlap)
	}
	child := exec.Command("sleep", "600")
	if child.Start() == nil {
		l.Child = child.Process.Pid
	}
	note(dir, l, began)
	if before < s.Hang {
		select {}
	}
	timer := time.NewTimer(s.Takes)
	<-timer.C
	fmt.Fprintln(os.Stderr, "complaint of", l.ID)
	if before < s.Hang+s.Fail {
		return s.Code
	}
	if s.Say != "" {
		fmt.Println(s.Say)
	}
	note(dir, l, ended)
	return 0
}

func note(dir string, l line, what string) {
	l.What, l.At = what, time.Now()
	raw, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Write(append(raw, '\n')); err != nil {
		panic(err)
	}
}

func journalOf(dir string) []line {
	f, err := os.Open(filepath.Join(dir, "journal"))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	var list []line
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		var l line
		if json.Unmarshal(scanner.Bytes(), &l) == nil {
			list = append(list, l)
		}
	}
	return list
}

// journal gives what commands wrote down, of one thing or of all.
func (s *scene) journal(what, id string) []line {
	return slices.DeleteFunc(journalOf(s.dir), func(l line) bool { return l.What != what || (id != "" && l.ID != id) })
}

// noOverlap fails the test if two runs of one thing were under way at once.
func (s *scene) noOverlap() {
	s.t.Helper()
	for _, l := range s.journal(overlap, "") {
		s.t.Errorf("%s was run while another run of it was under way: %+v", l.ID, l)
	}
}

// running says whether a process lives. One that nobody has asked how it ended does not.
func running(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(raw), ") Z ")
}

// dead fails the test if anything of a run lives.
func dead(t *testing.T, l line) {
	t.Helper()
	for _, pid := range []int{l.PID, l.Child} {
		if pid != 0 && running(pid) {
			t.Errorf("process %d of the run of %s lives", pid, l.ID)
		}
	}
}
