package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/test/harness"
)

const (
	memoryRooms    = 5
	memoryTasks    = 10_000
	memoryMessages = 50_000
	// maxResident bounds the memory of a bridge that holds all of it, in MiB.
	maxResident = 400
	// maxBoard bounds the time for a board of 2,000 tasks.
	maxBoard = 2 * time.Second
)

// TestMemoryStaysBounded fills a plane with 10,000 tasks and 50,000 messages. It takes minutes, so it runs only when BENCH_MEMORY
// is set.
func TestMemoryStaysBounded(t *testing.T) {
	if os.Getenv("BENCH_MEMORY") == "" {
		t.Skip("set BENCH_MEMORY to fill a plane with 10,000 tasks and 50,000 messages")
	}
	p := harness.Up(t, harness.Options{Bridges: 2})
	w := p.World(t)
	w.Agent(worker, "ann")
	rooms := make([]*v1alpha1.Room, memoryRooms)
	roomIDs := make([]string, memoryRooms)
	for i := range rooms {
		name := fmt.Sprintf("room-%d", i)
		roomIDs[i] = w.Room(name, nil, harness.Member(worker))
		rooms[i] = &v1alpha1.Room{}
		if err := p.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, rooms[i]); err != nil {
			t.Fatal(err)
		}
	}
	m := newMCP(p.MCP, w.Tokens[worker])
	t.Logf("resident before: bridges %v MiB, manager %d MiB", resident(t, p, "bridge-0", "bridge-1"), resident(t, p, "manager")[0])
	began := time.Now()
	fillTasks(t, w, rooms)
	fillMessages(t, w, rooms)
	t.Logf("filled in %s", time.Since(began).Round(time.Second))
	awaitFull(t, m, roomIDs)

	full := resident(t, p, "bridge-0", "bridge-1")
	t.Logf("resident with %d tasks and %d messages: bridges %v MiB, manager %d MiB", memoryTasks, memoryMessages, full,
		resident(t, p, "manager")[0])
	since := time.Now()
	took, size := readBoards(t, m, roomIDs[0], 50)
	t.Logf("read_board of %d tasks: %d KiB, p50 %s, p99 %s, first %s", memoryTasks/memoryRooms, size>>10, took[len(took)/2], took[len(took)-1], took[0])
	if p50 := took[len(took)/2]; p50 > maxBoard {
		t.Errorf("reading a board of %d tasks takes %s, want at most %s", memoryTasks/memoryRooms, p50, maxBoard)
	}
	// A call that is made afterwards shows that the audit log has come so far.
	if err := m.must(t.Context(), toolCall("send_message", map[string]any{"room": roomIDs[0], "body": "last"}), `"seq":`); err != nil {
		t.Fatal(err)
	}
	var events []harness.AuditEvent
	harness.Await(t, "the audit log", func() bool {
		events = p.Audit(t, since)
		return slices.ContainsFunc(events, func(e harness.AuditEvent) bool {
			return e.User.Username == harness.BridgeUser && e.Resource() == "messagebatches"
		})
	})
	for _, e := range events {
		if e.User.Username == harness.BridgeUser && e.Verb != "watch" &&
			!slices.Contains([]string{"leases", "tokenreviews", "messagebatches"}, e.ObjectRef.Resource) {
			t.Errorf("reading boards made the call %s %s %s", e.Verb, e.Resource(), e.ObjectRef.Name)
		}
	}
	after := resident(t, p, "bridge-0", "bridge-1")
	t.Logf("resident after reading: bridges %v MiB", after)
	if most := slices.Max(append(full, after...)); most > maxResident {
		t.Errorf("a bridge takes %d MiB, want at most %d", most, maxResident)
	}
}

// fillTasks makes tasks that somebody has worked on as they come out of the hands of agents: with a detail and a creator.
func fillTasks(t *testing.T, w *harness.World, rooms []*v1alpha1.Room) {
	t.Helper()
	detail := string(bytes.Repeat([]byte("Read the report and note what is missing. "), 8))
	_, _, err := loop(t.Context(), 16, func(_, n int) error {
		return w.Plane.Client.Create(context.Background(), &v1alpha1.Task{ //nolint:wrapcheck // the test says it
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: fmt.Sprintf("task-%d", n)},
			Spec: v1alpha1.TaskSpec{
				RoomRef: v1alpha1.RoomReference{Name: rooms[n%len(rooms)].Name}, Title: fmt.Sprintf("Task %d", n), Detail: detail,
				DefinitionOfDone: "file:result.md exists and is reviewed", Assignee: w.Plates[worker],
				Creator: &v1alpha1.TaskCreator{Plate: w.Plates[worker]},
			},
		})
	}, memoryTasks, 0)
	if err != nil {
		t.Fatal(err)
	}
}

// fillMessages writes full batches, as busy rooms have them.
func fillMessages(t *testing.T, w *harness.World, rooms []*v1alpha1.Room) {
	t.Helper()
	batches := memoryMessages / v1alpha1.MaxBatchMessages / len(rooms)
	_, _, err := loop(t.Context(), len(rooms), func(_, n int) error {
		room, number := rooms[n/batches], int64(n%batches)+1
		batch := &v1alpha1.MessageBatch{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: ids.BatchName(room.Name, room.UID, number)},
			Spec: v1alpha1.MessageBatchSpec{
				RoomRef: v1alpha1.RoomReference{Name: room.Name}, Number: number, Writer: "bench",
				FirstSeq: (number-1)*v1alpha1.MaxBatchMessages + 1,
			},
		}
		for range v1alpha1.MaxBatchMessages {
			batch.Spec.Messages = append(batch.Spec.Messages, v1alpha1.Message{
				Sender: v1alpha1.MessageSender{Type: v1alpha1.SenderAgent, ID: w.Plates[worker], Name: worker},
				Body:   messageBody, At: metav1.NowMicro(),
			})
		}
		return w.Plane.Client.Create(context.Background(), batch) //nolint:wrapcheck // the test says it
	}, batches*len(rooms), 0)
	if err != nil {
		t.Fatal(err)
	}
}

// awaitFull waits until a bridge has seen everything.
func awaitFull(t *testing.T, m *mcp, roomIDs []string) {
	t.Helper()
	batches := memoryMessages / v1alpha1.MaxBatchMessages / len(roomIDs)
	harness.AwaitFor(t, 5*time.Minute, "the bridge to see all tasks and messages", func() bool {
		var list struct {
			Rooms []struct {
				LastSeq int64 `json:"last_seq"`
			} `json:"rooms"`
		}
		if m.get(t.Context(), "list_rooms", nil, &list) != nil || len(list.Rooms) != len(roomIDs) {
			return false
		}
		for _, room := range list.Rooms {
			if room.LastSeq < int64(batches*v1alpha1.MaxBatchMessages) {
				return false
			}
		}
		for _, id := range roomIDs {
			var board struct {
				Counts map[string]int `json:"counts"`
			}
			if m.get(t.Context(), "read_board", map[string]any{"room": id, "status": "failed"}, &board) != nil ||
				board.Counts["todo"] < memoryTasks/len(roomIDs) {
				return false
			}
		}
		return true
	})
}

// readBoards reads a board several times and gives how long it took, sorted, and how large it is.
func readBoards(t *testing.T, m *mcp, room string, times int) ([]time.Duration, int) {
	t.Helper()
	body, size := toolCall("read_board", map[string]any{"room": room}), 0
	var took []time.Duration
	for range times {
		began := time.Now()
		answer, err := m.post(t.Context(), body)
		if err != nil {
			t.Fatal(err)
		}
		took, size = append(took, time.Since(began)), len(answer)
	}
	slices.Sort(took)
	return took, size
}

// resident gives how much memory processes hold, in MiB.
func resident(t *testing.T, p *harness.Plane, names ...string) []int {
	t.Helper()
	var all []int
	for _, name := range names {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PIDs[name]))
		if err != nil {
			t.Skipf("there is no /proc: %v", err)
		}
		_, rest, _ := bytes.Cut(raw, []byte("VmRSS:"))
		fields := bytes.Fields(rest)
		kib, err := strconv.Atoi(string(fields[0]))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, kib>>10)
	}
	return all
}
