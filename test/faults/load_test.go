package faults

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/test/harness"
)

const (
	instances = 4 // of each agent
	openTasks = 6 // that clients may claim at any time
	leaseTime = 10 * time.Second
	pace      = 60 * time.Millisecond // between the steps of a client, on average
)

// agents of the load, all of one owner.
var agents = []string{"ann", "bob", "cyd"}

// load is clients that work in one room until they are told to stop, and what they were told.
type load struct {
	t       *testing.T
	world   *harness.World
	api     client.Client
	room    string
	clients []*instance
	calls   calls
	stop    chan struct{}
	running sync.WaitGroup

	// tasks, log and inboxes are the histories, by task id, room and mention id.
	tasks, log, inboxes *history

	mu         sync.Mutex
	open       []string
	created    map[string]string // task id by title
	messages   map[string]*sentMessage
	givens     map[string][]given
	acked      map[string]bool
	finished   map[string]finish
	complaints map[string]int
	notes      map[string]int
}

// sentMessage is a message as its sender knows it, by its body.
type sentMessage struct {
	client, replica int
	keyed           bool
	call, ret       int64
	seq             int64 // 0 while it is not known to be sent
	mentions        string
}

// given is a mention that an instance got.
type given struct {
	agent     string
	session   string
	call, ret int64
	seq       int64
}

// finish is an acknowledged end of a task.
type finish struct{ holder, summary string }

// startLoad makes a room with a short lease and lets clients work in it.
func startLoad(t *testing.T) *load {
	t.Helper()
	w := plane.World(t)
	var members []v1alpha1.RoomMember
	for _, name := range agents {
		w.Agent(name, "olga")
		members = append(members, harness.Member(name))
	}
	room := w.Room("busy", func(s *v1alpha1.RoomSpec) {
		s.LeasePolicy = &v1alpha1.LeasePolicy{DurationSeconds: int32(leaseTime / time.Second)}
	}, members...)
	began := time.Now()
	l := &load{
		t: t, world: w, api: plane.Client, room: room, stop: make(chan struct{}),
		tasks: newHistory(began), log: newHistory(began), inboxes: newHistory(began),
		created: map[string]string{}, messages: map[string]*sentMessage{}, givens: map[string][]given{},
		acked: map[string]bool{}, finished: map[string]finish{}, complaints: map[string]int{}, notes: map[string]int{},
	}
	for i := range instances * len(agents) {
		l.clients = append(l.clients, l.connect(i))
	}
	for _, c := range l.clients {
		l.running.Go(c.run)
	}
	return l
}

func (l *load) connect(i int) *instance {
	c := &instance{
		load: l, id: i, agent: agents[i%len(agents)], random: rand.New(rand.NewPCG(seed, uint64(i))), //nolint:gosec // a test
	}
	c.die()
	for replica := range plane.Replicas {
		c.links = append(c.links, l.world.At(replica, c.agent, ""))
	}
	return c
}

// finishSteps lets every client end what it is at.
func (l *load) finishSteps() {
	close(l.stop)
	l.running.Wait()
}

// run takes steps until the load ends. A step that began is brought to its end.
func (c *instance) run() {
	for {
		timer := time.NewTimer(time.Duration(c.random.Int64N(int64(2 * pace))))
		select {
		case <-c.load.stop:
			timer.Stop()
			return
		case <-timer.C:
			c.step()
		}
	}
}

// complain notes what may not happen. The same thing is told once, with how often it came.
func (l *load) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.complaints[fmt.Sprintf(format, args...)]++
}

var address = regexp.MustCompile(`(http://)?[0-9.]+:[0-9]+(->[0-9.]+:[0-9]+)?`)

// note counts what may happen while parts are down.
func (l *load) note(tool, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes[tool+": "+address.ReplaceAllString(text, "…")]++
}

// tell reports the complaints as errors.
func (l *load) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := 0
	for text, times := range l.complaints {
		if shown++; shown > 40 {
			l.t.Errorf("and %d more", len(l.complaints)-40)
			return
		}
		l.t.Errorf("%d times: %s", times, text)
	}
}

// pick gives a task that may be free.
func (l *load) pick(r *rand.Rand) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 0 {
		return "", false
	}
	return l.open[r.IntN(len(l.open))], true
}

// short says whether there are too few tasks.
func (l *load) short() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open) < openTasks
}

// closed takes a task off the list of those to claim.
func (l *load) closed(task string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = slices.DeleteFunc(l.open, func(id string) bool { return id == task })
}
