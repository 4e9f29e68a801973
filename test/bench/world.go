package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
)

const (
	namespace = "bench"
	// worker is the agent that does everything, in many sessions.
	worker = "worker"
	// spread is over how many rooms messages are spread.
	spread = 32
	// maxSessions is how many sessions ever call at once.
	maxSessions = 64
	// leaseSeconds is long enough for no lease to run out while the benchmark runs.
	leaseSeconds = 86400
	// boardTasks stand on the board that is read.
	boardTasks = 50
)

// world is what the operations work on.
type world struct {
	plane *plane
	// admin for what is prepared.
	admin client.Client
	// rooms speaks to our kinds as a generated client does, leases to Leases in protobuf.
	rooms  *rest.RESTClient
	leases kubernetes.Interface
	// bridge speaks to Leases as the bridge does, which alone may write those of tasks.
	bridge kubernetes.Interface
	// replicas of the bridge, with the worker's token.
	replicas []*mcp
	// lobby is where tasks are claimed and messages sent, board the room with few tasks, spread the rooms for spreading.
	lobby, board string
	spread       []string
	held         []string
}

func newWorld(ctx context.Context, p *plane) (*world, error) {
	w := &world{plane: p}
	scheme := apiruntime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("making the scheme: %w", err)
	}
	var err error
	if w.admin, err = client.New(p.config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	if w.rooms, err = roomsClient(p.config, scheme); err != nil {
		return nil, err
	}
	if w.leases, err = leasesClient(p.config); err != nil {
		return nil, err
	}
	bridge, err := p.bridgeConfig()
	if err != nil {
		return nil, err
	}
	if w.bridge, err = leasesClient(bridge); err != nil {
		return nil, err
	}
	if err := w.populate(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// populate makes the namespace, the agent, its token and the rooms.
func (w *world) populate(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: worker}}
	agent := &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: worker},
		Spec: v1alpha1.AgentSpec{
			DisplayName: worker, Owner: "ann",
			Scopes:   []v1alpha1.Scope{v1alpha1.ScopeRead, v1alpha1.ScopeWrite, v1alpha1.ScopeUpload, v1alpha1.ScopeDownload},
			Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectServiceAccount, Name: worker, Namespace: namespace}},
		},
	}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, account, agent} {
		if err := w.admin.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %s: %w", o.GetName(), err)
		}
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{"agentrooms"}, ExpirationSeconds: new(int64(24 * time.Hour / time.Second)),
	}}
	if err := w.admin.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("minting a token: %w", err)
	}
	for _, url := range w.plane.Replicas {
		w.replicas = append(w.replicas, newMCP(url, token.Status.Token))
	}
	if err := w.populateRooms(ctx); err != nil {
		return err
	}
	if err := w.warm(ctx); err != nil {
		return err
	}
	return w.populateTasks(ctx)
}

func (w *world) populateRooms(ctx context.Context) (err error) {
	if w.lobby, err = w.room(ctx, "lobby"); err != nil {
		return err
	}
	if w.board, err = w.room(ctx, "board"); err != nil {
		return err
	}
	if _, err = w.room(ctx, "bare"); err != nil {
		return err
	}
	for i := range spread {
		id, err := w.room(ctx, fmt.Sprintf("spread-%d", i))
		if err != nil {
			return err
		}
		w.spread = append(w.spread, id)
	}
	last := w.spread[spread-1]
	for _, m := range w.replicas {
		if err := await(ctx, "the rooms", func() bool {
			return m.must(ctx, toolCall("list_rooms", nil), last) == nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// room makes a room and gives its id.
func (w *world) room(ctx context.Context, name string) (string, error) {
	room := &v1alpha1.Room{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.RoomSpec{
			DisplayName: name, LeasePolicy: &v1alpha1.LeasePolicy{DurationSeconds: leaseSeconds},
			Members: []v1alpha1.RoomMember{{Agent: &v1alpha1.AgentReference{Name: worker}, Role: v1alpha1.RoleMember}},
		},
	}
	if err := w.admin.Create(ctx, room); err != nil {
		return "", fmt.Errorf("creating the room %s: %w", name, err)
	}
	return ids.ID(room), nil
}

// warm has every session call once at every replica, so that none is new when the clock runs.
func (w *world) warm(ctx context.Context) error {
	for i := range maxSessions {
		for _, m := range w.replicas {
			if err := m.must(ctx, toolCall("whoami", map[string]any{"session_id": session(i)}), worker); err != nil {
				return err
			}
		}
	}
	return nil
}

// populateTasks puts tasks on the board, and gives each session one to hold.
func (w *world) populateTasks(ctx context.Context) error {
	if _, err := w.freshTasks(ctx, "board", w.board, boardTasks); err != nil {
		return err
	}
	held, err := w.freshTasks(ctx, "lobby", w.lobby, maxSessions/2)
	if err != nil {
		return err
	}
	w.held = held
	for i, id := range held {
		body := toolCall("claim_task", map[string]any{"task_id": id, "session_id": session(i)})
		if err := w.replicas[0].must(ctx, body, `"ok":true`); err != nil {
			return err
		}
	}
	return w.settled(ctx, "lobby")
}

func session(i int) string { return fmt.Sprintf("session-%d", i) }

// freshTasks makes tasks through MCP, and waits until the controllers have nothing more to say about them.
func (w *world) freshTasks(ctx context.Context, room, roomID string, count int) ([]string, error) {
	made := make([]string, count)
	_, _, err := loop(ctx, 16, func(i, n int) error {
		var task struct {
			TaskID string `json:"task_id"`
		}
		err := w.replicas[0].get(ctx, "create_task", map[string]any{
			"room": roomID, "title": fmt.Sprintf("Task %d", n), "definition_of_done": "file:result.md exists and is reviewed",
			"assignee": "@" + worker, "session_id": session(i),
		}, &task)
		made[n] = task.TaskID
		return err
	}, count, 0)
	if err != nil {
		return nil, err
	}
	return made, w.settled(ctx, room)
}

// settled waits until the controllers have looked at every task of a room.
func (w *world) settled(ctx context.Context, room string) error {
	return await(ctx, "the controllers", func() bool {
		var list v1alpha1.TaskList
		if err := w.admin.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"spec.roomRef.name": room}); err != nil {
			return false
		}
		for i := range list.Items {
			if s := &list.Items[i].Status; s.Consent == nil || s.ObservedGeneration == 0 {
				return false
			}
		}
		return true
	})
}

func await(ctx context.Context, what string, condition func() bool) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
