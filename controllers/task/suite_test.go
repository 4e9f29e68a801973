package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// stage is a room with agents on a real API server, and a reconciler that the test calls by hand: each step, and what comes
// between two of its writes, is the test's to choose. Its cache waits for its own writes.
//
// The agents are cc and dd of said, and helper and deputy of bob; deputy may decide in bob's name. All are members of the
// room lab.
type stage struct {
	*testing.T
	env       *testenv.Env
	ns        string
	cache     cache.Cache
	client    client.Client
	clock     *clocktesting.FakePassiveClock
	hooks     *hooks
	poster    *poster
	events    *recorder
	r         *Reconciler
	agents    map[string]*v1alpha1.Agent
	startedAt time.Time
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, env: testenv.Get(t), startedAt: time.Now().Truncate(time.Second), agents: map[string]*v1alpha1.Agent{}}
	s.ns = s.env.Namespace(t)
	for name, owner := range map[string]string{"cc": "said", "dd": "said", "helper": "bob", "deputy": "bob"} {
		s.agents[name] = testenv.Agent(s.ns, name, owner)
	}
	s.agents["deputy"].Spec.Delegations = []v1alpha1.Delegation{v1alpha1.DelegationConsent}
	for _, a := range s.agents {
		s.env.Create(t, a)
	}
	room := testenv.Room(s.ns, "lab", "cc", "dd", "helper", "deputy")
	room.Spec.LeasePolicy = &v1alpha1.LeasePolicy{DurationSeconds: 60}
	s.env.Create(t, room)
	s.clock = clocktesting.NewFakePassiveClock(s.startedAt)
	s.cache, s.client = consistent(t, s.env)
	s.poster, s.events, s.hooks = &poster{sent: map[string]string{}}, &recorder{}, &hooks{}
	s.restart()
	return s
}

// consistent makes a cache with the indexes, and a client that reads from it what it has written.
func consistent(t *testing.T, env *testenv.Env) (cache.Cache, client.Client) {
	t.Helper()
	c, err := cache.New(env.Config, cache.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := index.Register(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Start(t.Context()) }()
	cl, err := client.New(env.Config, client.Options{
		Scheme: env.Scheme, Cache: &client.CacheOptions{Reader: c, EnableReadYourWritesConsistency: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []client.Object{&v1alpha1.Room{}, &v1alpha1.Agent{}, &v1alpha1.Task{}, &v1alpha1.Consent{}, &coordinationv1.Lease{}} {
		if _, err := c.GetInformer(t.Context(), kind); err != nil {
			t.Fatal(err)
		}
	}
	return c, cl
}

// restart gives the stage a reconciler that remembers nothing, as after a crash.
func (s *stage) restart() {
	s.r = &Reconciler{
		Client: &hooked{Client: s.client, hooks: s.hooks}, Live: s.env.Client, Clock: s.clock, Events: s.events, Poster: s.poster,
	}
}

func (s *stage) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.ns, Name: name}
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// create makes objects through the consistent client.
func (s *stage) create(objects ...client.Object) {
	s.Helper()
	for _, o := range objects {
		s.must(s.client.Create(s.Context(), o))
	}
}

// task reads a task from the API server.
func (s *stage) task(name string) *v1alpha1.Task {
	s.Helper()
	t := &v1alpha1.Task{}
	s.must(s.env.Client.Get(s.Context(), s.key(name), t))
	return t
}

// lease reads a task's Lease from the API server, nil when there is none.
func (s *stage) lease(task string) *coordinationv1.Lease {
	s.Helper()
	l := &coordinationv1.Lease{}
	if err := s.env.Client.Get(s.Context(), s.key(ids.LeaseName(task)), l); err != nil {
		s.must(client.IgnoreNotFound(err))
		return nil
	}
	return l
}

// plate gives the plate of an agent.
func (s *stage) plate(agent string) string { return ids.Plate(s.agents[agent]) }

// once reconciles a task once.
func (s *stage) once(name string) (ctrl.Result, error) {
	return s.r.Reconcile(s.Context(), ctrl.Request{NamespacedName: s.key(name)})
}

// settle reconciles a task until it is written no more, and gives it.
func (s *stage) settle(name string) *v1alpha1.Task {
	s.Helper()
	for range 10 {
		before := s.hooks.count()
		if _, err := s.once(name); err != nil {
			s.Fatalf("reconciling %s: %v", name, err)
		}
		if s.hooks.count() == before {
			t := s.task(name)
			if p := testenv.StatusProblems(t.Generation, t.Status.ObservedGeneration, t.Status.Conditions); len(p) > 0 {
				s.Fatalf("the status of %s is not in order: %v", name, p)
			}
			return t
		}
	}
	s.Fatalf("%s does not come to rest", name)
	return nil
}

// update changes a task's spec, as kubectl would.
func (s *stage) update(name string, change func(*v1alpha1.Task)) {
	s.Helper()
	t := s.task(name)
	change(t)
	s.must(s.client.Update(s.Context(), t))
}

// claim claims a task for an agent's session in one write, as the bridge would.
func (s *stage) claim(name, agent, session string) *v1alpha1.Task {
	s.Helper()
	t := s.task(name)
	res, p := tasks.Claim(t, tasks.ClaimRequest{
		Actor: tasks.Actor{Plate: s.plate(agent), Session: session}, Consent: *t.Status.Consent,
	}, s.clock.Now())
	if p != nil || !res.Write {
		s.Fatalf("claiming %s: %v %+v", name, p, res)
	}
	t.Status = res.Status
	s.must(s.client.Status().Update(s.Context(), t))
	return t
}

// held makes a task that an agent holds under a Lease.
func (s *stage) held(name, agent string) *v1alpha1.Task {
	s.Helper()
	s.create(testenv.Task(s.ns, "lab", name, "said"))
	s.settle(name)
	s.claim(name, agent, "s1")
	return s.settle(name)
}

// renew renews a task's Lease straight at the API server, as the bridge would with what it remembers of both.
func (s *stage) renew(task *v1alpha1.Task, lease *coordinationv1.Lease) error {
	next, ok := leases.Renewed(lease, task, time.Minute, time.Now())
	if !ok {
		return errors.New("LEASE_LOST")
	}
	return s.env.Client.Update(context.Background(), next)
}

// awaitLease waits until the cache holds a task's Lease as it is at the API server.
func (s *stage) awaitLease(task string) {
	s.Helper()
	live := s.lease(task)
	// An update that changes nothing tells the consistent client which version to wait for.
	s.must(s.client.Update(s.Context(), live))
	s.must(s.client.Get(s.Context(), client.ObjectKeyFromObject(live), &coordinationv1.Lease{}))
}

// hooks stand between a reconciler and its writes.
type hooks struct {
	mu sync.Mutex
	// before is called before each write, named by verb and kind. What it returns is the outcome of the write, and the write
	// does not happen.
	before func(write string) error
	writes []string
}

func (h *hooks) call(verb string, o client.Object) error {
	name := fmt.Sprintf("%s %T", verb, o)
	h.mu.Lock()
	h.writes = append(h.writes, name)
	before := h.before
	h.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(name)
}

func (h *hooks) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.writes)
}

const (
	writeStatus = "status *v1alpha1.Task"
	writeLease  = "update *v1.Lease"
	makeLease   = "create *v1.Lease"
	dropLease   = "delete *v1.Lease"
)

// hooked is a client whose writes go through hooks.
type hooked struct {
	client.Client
	hooks *hooks
}

func (c *hooked) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if err := c.hooks.call("create", o); err != nil {
		return err
	}
	return c.Client.Create(ctx, o, opts...)
}

func (c *hooked) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	if err := c.hooks.call("update", o); err != nil {
		return err
	}
	return c.Client.Update(ctx, o, opts...)
}

func (c *hooked) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	if err := c.hooks.call("delete", o); err != nil {
		return err
	}
	return c.Client.Delete(ctx, o, opts...)
}

func (c *hooked) Status() client.SubResourceWriter {
	return &hookedStatus{SubResourceWriter: c.Client.Status(), hooks: c.hooks}
}

type hookedStatus struct {
	client.SubResourceWriter
	hooks *hooks
}

func (c *hookedStatus) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	if err := c.hooks.call("status", o); err != nil {
		return err
	}
	return c.SubResourceWriter.Update(ctx, o, opts...)
}

// poster is a log that drops what it has by its key, as the real one does.
type poster struct {
	mu       sync.Mutex
	sent     map[string]string
	messages []v1alpha1.Message
	fail     error
}

func (p *poster) Post(_ context.Context, _ *v1alpha1.Room, m v1alpha1.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return p.fail
	}
	if payload, known := p.sent[m.Key]; known {
		if payload != m.Payload {
			return errors.New("IDEMPOTENCY_CONFLICT")
		}
		return nil
	}
	p.sent[m.Key] = m.Payload
	p.messages = append(p.messages, m)
	return nil
}

// all gives what was posted, as "agent, agent: body".
func (p *poster) all() []v1alpha1.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]v1alpha1.Message(nil), p.messages...)
}

// recorder keeps Events.
type recorder struct {
	mu   sync.Mutex
	list []string
}

func (r *recorder) Eventf(_, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, fmt.Sprintf("%s %s %s: %s", eventType, reason, action, fmt.Sprintf(note, args...)))
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.list...)
}

// conditionsOf gives the reasons of conditions by type.
func conditionsOf(t *v1alpha1.Task) map[string]string {
	out := map[string]string{}
	for _, c := range t.Status.Conditions {
		out[c.Type] = string(c.Status) + " " + c.Reason
	}
	return out
}

// start runs the controller with a manager of its own and the system's clock, for tests of what wakes it.
func (s *stage) start() {
	s.Helper()
	opts := ctrl.Options{Scheme: s.env.Scheme}
	opts.Metrics.BindAddress, opts.HealthProbeBindAddress = "0", "0"
	opts.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(s.env.Config, opts)
	s.must(err)
	s.must(index.Register(s.Context(), mgr.GetFieldIndexer()))
	r := &Reconciler{
		Client: &hooked{Client: mgr.GetClient(), hooks: s.hooks}, Live: mgr.GetAPIReader(),
		Clock: clock.RealClock{}, Events: s.events, Poster: s.poster,
	}
	s.must(r.SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("the manager ended with: %v", err)
		}
	})
}
