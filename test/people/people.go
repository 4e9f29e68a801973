// Package people gives tests an installation with people in it: an API server with the kinds, roles and policies, a manager that
// runs as its service account, and a namespace with a room, agents, and users of different rights.
package people

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/install"
	"github.com/agentrooms/agentrooms/internal/manager"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/test/testenv"
)

// The people. Ada is an admin of the namespace, Bob may edit and owns the agent helper, Rita may look on, and Nora has no rights.
const (
	Ada  = "ada"
	Bob  = "bob"
	Rita = "rita"
	Nora = "nora"
)

// levels are the roles of Agent Rooms that each of them has in the namespace.
var levels = map[string][]string{
	Ada:  {"room-admin", "agent-admin", "task-admin", "consent-admin", "message-sender"},
	Bob:  {"room-viewer", "agent-viewer", "task-editor", "consent-editor", "message-sender"},
	Rita: {"room-viewer", "agent-viewer", "task-viewer", "consent-viewer", "message-viewer"},
}

const soon = time.Minute

// House is a namespace with the room lab, Ada's agent cc and Bob's agent helper in it.
type House struct {
	*testing.T
	// Env is the API server.
	Env *testenv.Env
	// Namespace of the house.
	Namespace string
	// CC belongs to Ada, Helper to Bob.
	CC, Helper *v1alpha1.Agent
	// Room of both, with Ada as a member.
	Room *v1alpha1.Room
}

var installed = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	i, err := install.New(shared.Config)
	if err != nil {
		return fmt.Errorf("making an installer: %w", err)
	}
	if err := i.System(ctx); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	if err := i.AwaitPolicies(ctx); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	return nil
})

// shared is set before installed is called.
var shared *testenv.Env

// manage runs a manager as long as a test.
func manage(t *testing.T) {
	t.Helper()
	o := manager.Options{MetricsAddress: "0", ProbeAddress: "0", SkipNameValidation: true}
	o.Controllers.CountsEvery = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	mgr, err := manager.New(ctx, shared.AsServiceAccount("agentrooms-manager"), o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
}

// New makes a House. The package's tests must be run by testenv.Main.
func New(t *testing.T) *House {
	t.Helper()
	shared = testenv.Get(t)
	if err := installed(); err != nil {
		t.Fatal(err)
	}
	manage(t)
	h := &House{T: t, Env: shared, Namespace: shared.Namespace(t)}
	h.CC = testenv.Agent(h.Namespace, "cc", Ada)
	h.Helper = testenv.Agent(h.Namespace, "helper", Bob)
	h.Room = testenv.Room(h.Namespace, "lab", "cc", "helper")
	h.Room.Spec.DisplayName = "The Lab"
	h.Room.Spec.Members = append(h.Room.Spec.Members, v1alpha1.RoomMember{User: Ada, Role: v1alpha1.RoleAdmin})
	h.Env.Create(t, h.CC, h.Helper, h.Room)
	for user, roles := range levels {
		for _, role := range roles {
			h.Env.Create(t, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: user + "-" + role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "agentrooms-" + role},
			})
		}
	}
	h.awaitRoles()
	return h
}

// awaitRoles waits until the API server has taken up the bindings.
func (h *House) awaitRoles() {
	h.T.Helper()
	for user, right := range map[string]acts.Right{
		Ada:  {Group: v1alpha1.GroupVersion.Group, Resource: "messagebatches", Verb: "create"},
		Bob:  {Group: v1alpha1.GroupVersion.Group, Resource: "messagebatches", Verb: "create"},
		Rita: {Group: v1alpha1.GroupVersion.Group, Resource: "messagebatches", Verb: "list"},
	} {
		p := h.As(user)
		h.Eventually("the roles of "+user, func(ctx context.Context) (bool, error) {
			all, err := p.Rights(ctx, h.Namespace)
			if err != nil || !all.ReadRooms || !all.ReadTasks || !all.ReadConsents || !all.ReadAgents {
				return false, err
			}
			if user != Rita && (!all.ChangeTasks || !all.SetConsent || (user == Ada && !all.ChangeRooms)) {
				return false, nil
			}
			return p.Can(ctx, h.Namespace, right)
		})
	}
}

// Config is what a user connects with.
func (h *House) Config(user string) *rest.Config { return h.Env.As(user, "system:authenticated") }

// As gives a person.
func (h *House) As(user string) *acts.Person {
	h.T.Helper()
	p, err := acts.Login(h.Context(), h.Config(user))
	if err != nil {
		h.Fatalf("signing in as %s: %v", user, err)
	}
	return p
}

// Eventually waits until something is so.
func (h *House) Eventually(what string, is func(context.Context) (bool, error)) {
	h.T.Helper()
	var last error
	err := wait.PollUntilContextTimeout(h.Context(), 20*time.Millisecond, soon, true, func(ctx context.Context) (bool, error) {
		ok, err := is(ctx)
		last = err
		return ok && err == nil, nil
	})
	if err != nil {
		h.Fatalf("waiting for %s: %v (last: %v)", what, err, last)
	}
}

// Task makes a task as the cluster's admin, in somebody's name, and waits until the manager has seen it.
func (h *House) Task(name string, change func(*v1alpha1.Task)) *v1alpha1.Task {
	h.T.Helper()
	t := testenv.Task(h.Namespace, h.Room.Name, name, Ada)
	if change != nil {
		change(t)
	}
	h.Env.Create(h.T, t)
	return h.Settled(name)
}

// Settled reads a task once the manager has dealt with it.
func (h *House) Settled(name string) *v1alpha1.Task {
	h.T.Helper()
	t := &v1alpha1.Task{}
	h.Eventually("task "+name, func(ctx context.Context) (bool, error) {
		err := h.Env.Client.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: name}, t)
		return err == nil && t.Status.ObservedGeneration == t.Generation && t.Status.Consent != nil, err
	})
	return t
}

// Claim claims a task for an agent, as the bridge would.
func (h *House) Claim(name string, agent *v1alpha1.Agent, session string) *v1alpha1.Task {
	h.T.Helper()
	var t *v1alpha1.Task
	h.Eventually("the claim of "+name, func(ctx context.Context) (bool, error) {
		t = h.Settled(name)
		res, p := tasks.Claim(t, tasks.ClaimRequest{
			Actor: tasks.Actor{Plate: ids.Plate(agent), Session: session, Assignee: true}, Consent: *t.Status.Consent,
			Assigned: t.Spec.Assignee != "",
		}, time.Now())
		if p != nil || !res.Write {
			return false, fmt.Errorf("the claim is refused: %w %s", p, res.Lost)
		}
		t.Status = res.Status
		return true, h.Env.Client.Status().Update(ctx, t)
	})
	return t
}

// Key of an object of the house.
func (h *House) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: h.Namespace, Name: name}
}
