package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/internal/controlplane"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// seed of all chance, so that a run can be told to take the same turns.
var seed = uint64(time.Now().UnixNano()) //nolint:gosec // a seed

// parts that are killed. The whole plane is killed and started again on its folder.
var parts = []string{
	"bridge-0", "bridge-1", "manager", controlplane.APIServer, controlplane.APIServer, controlplane.Etcd,
	controlplane.ControllerManager, "everything",
}

// kill is a death and what it took to get over it.
type kill struct {
	part      string
	recovered time.Duration
}

func (k kill) String() string { return fmt.Sprintf("%s %.1f s", k.part, k.recovered.Seconds()) }

// killer kills parts in random order, all of them before one comes again.
type killer struct {
	t      *testing.T
	random *rand.Rand
	turn   []string
	kills  []kill
	probe  *instance
}

func newKiller(t *testing.T, probe *instance) *killer {
	t.Helper()
	return &killer{t: t, probe: probe, random: rand.New(rand.NewPCG(seed, 999))} //nolint:gosec // a test
}

// next kills a part, sometimes a second one right after, and waits until the system works again.
func (k *killer) next() {
	victims := []string{k.draw()}
	if k.random.IntN(4) == 0 {
		victims = append(victims, k.draw())
	}
	began := time.Now()
	k.t.Logf("killing %v", victims)
	for _, part := range victims {
		k.kill(part)
		k.rest(800)
	}
	k.awaitWork()
	k.kills = append(k.kills, kill{strings.Join(victims, "+"), time.Since(began)})
	k.t.Logf("%s", k.kills[len(k.kills)-1])
}

func (k *killer) draw() string {
	if len(k.turn) == 0 {
		k.turn = append(k.turn, parts...)
		k.random.Shuffle(len(k.turn), func(i, j int) { k.turn[i], k.turn[j] = k.turn[j], k.turn[i] })
	}
	part := k.turn[0]
	k.turn = k.turn[1:]
	return part
}

func (k *killer) kill(part string) {
	if part == "everything" {
		plane.Kill(k.t)
		plane.Start(k.t)
		return
	}
	plane.KillChild(k.t, part)
}

// rest lets the load run for up to a number of milliseconds.
func (k *killer) rest(upTo int) {
	timer := time.NewTimer(time.Duration(k.random.IntN(upTo)) * time.Millisecond)
	defer timer.Stop()
	<-timer.C
}

// awaitWork waits until every replica takes a message and every other one shows it.
func (k *killer) awaitWork() {
	k.t.Helper()
	for replica := range plane.Replicas {
		body := k.probe.next("probe")
		var seq int64
		harness.AwaitFor(k.t, patience, fmt.Sprintf("replica %d to take a message", replica), func() bool {
			answer, outcome := k.probe.at(replica, "send_message", harness.Args{
				"room": k.probe.load.room, "body": body, "idempotency_key": body,
			})
			if outcome != told || answer.err != nil {
				return false
			}
			seq = into[rooms.Sent](answer.result).Seq
			return true
		})
		k.awaitSeen(seq)
	}
}

func (k *killer) awaitSeen(seq int64) {
	k.t.Helper()
	for replica := range plane.Replicas {
		harness.AwaitFor(k.t, patience, fmt.Sprintf("replica %d to show message %d", replica, seq), func() bool {
			answer, outcome := k.probe.at(replica, "read_room", harness.Args{"room": k.probe.load.room, "limit": 1})
			if outcome != told || answer.err != nil {
				return false
			}
			page := into[rooms.Page](answer.result)
			return len(page.Messages) == 1 && page.Messages[0].Seq >= seq
		})
	}
}

// awaitReady waits until every replica and the manager say that they are ready.
func awaitReady(t *testing.T) {
	t.Helper()
	for _, url := range plane.Replicas {
		harness.AwaitFor(t, patience, url+" to be ready", func() bool {
			r, err := http.Get(strings.TrimSuffix(url, "/mcp") + "/readyz")
			if err != nil {
				return false
			}
			_ = r.Body.Close()
			return r.StatusCode == http.StatusOK
		})
	}
}
