package harness

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// Main runs a package's tests on one plane, which they share.
func Main(m *testing.M, shared **Plane, o Options) {
	host := &mainTB{}
	code := func() int {
		defer host.cleanUp()
		*shared = Up(host, o)
		return m.Run()
	}()
	os.Exit(code)
}

// mainTB stands in for a test where there is none.
type mainTB struct {
	testing.TB
	cleanups []func()
	failed   bool
}

func (h *mainTB) Helper()          {}
func (h *mainTB) Failed() bool     { return h.failed }
func (h *mainTB) Cleanup(f func()) { h.cleanups = append(h.cleanups, f) }
func (h *mainTB) Errorf(format string, args ...any) {
	h.failed = true
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (h *mainTB) Fatalf(format string, args ...any) {
	h.Errorf(format, args...)
	h.cleanUp()
	os.Exit(1)
}
func (h *mainTB) Fatal(args ...any) { h.Fatalf("%s", fmt.Sprintln(args...)) }

func (h *mainTB) TempDir() string {
	dir, err := os.MkdirTemp("", "rooms-test-")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (h *mainTB) cleanUp() {
	for _, f := range slices.Backward(h.cleanups) {
		f()
	}
	h.cleanups = nil
}

// World is a namespace of its own with agents and rooms for one test.
type World struct {
	// Namespace of everything in it.
	Namespace string
	// Plane it is on.
	Plane *Plane
	// Tokens of the agents by name.
	Tokens map[string]string
	// Plates of the agents by name.
	Plates map[string]string
	tb     testing.TB
}

var worlds atomic.Int64

// World makes a namespace for a test.
func (p *Plane) World(tb testing.TB) *World {
	tb.Helper()
	name := fmt.Sprintf("w%d-%d", os.Getpid(), worlds.Add(1))
	w := &World{Namespace: name, Plane: p, Tokens: map[string]string{}, Plates: map[string]string{}, tb: tb}
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return w
}

// Create makes an object, in the world's namespace unless it has another.
func (w *World) Create(obj client.Object) {
	w.tb.Helper()
	if _, cluster := obj.(*corev1.Namespace); !cluster && obj.GetNamespace() == "" {
		obj.SetNamespace(w.Namespace)
	}
	if err := w.Plane.Client.Create(context.Background(), obj); err != nil {
		w.tb.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
}

// AllScopes that an agent can have.
var AllScopes = []v1alpha1.Scope{
	v1alpha1.ScopeRead, v1alpha1.ScopeWrite, v1alpha1.ScopeUpload, v1alpha1.ScopeDownload, v1alpha1.ScopeInvoke,
}

// Agent makes an agent with all scopes, its service account and a token. Edits change it before it is made.
func (w *World) Agent(name, owner string, edits ...func(*v1alpha1.AgentSpec)) {
	w.tb.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.Create(account)
	agent := &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.AgentSpec{
			DisplayName: name, Owner: owner, Scopes: AllScopes,
			Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectServiceAccount, Name: name, Namespace: w.Namespace}},
		},
	}
	for _, edit := range edits {
		edit(&agent.Spec)
	}
	w.Create(agent)
	w.Plates[name] = ids.Plate(agent)
	w.Tokens[name] = w.Token(name, 24*time.Hour)
}

// Token mints a token of a service account that is good for the bridge.
func (w *World) Token(account string, life time.Duration) string {
	w.tb.Helper()
	return w.mint(account, life, "agentrooms")
}

// PersonToken mints a token of a service account that is good for the API server, as people have them.
func (w *World) PersonToken(account string, life time.Duration) string {
	w.tb.Helper()
	return w.mint(account, life)
}

func (w *World) mint(account string, life time.Duration, audiences ...string) string {
	w.tb.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: audiences, ExpirationSeconds: new(int64(life / time.Second)),
	}}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: w.Namespace}}
	if err := w.Plane.Client.SubResource("token").Create(context.Background(), owner, request); err != nil {
		w.tb.Fatalf("minting a token for %s: %v", account, err)
	}
	return request.Status.Token
}

// Member makes an agent of the world a member.
func Member(name string) v1alpha1.RoomMember {
	return v1alpha1.RoomMember{Agent: &v1alpha1.AgentReference{Name: name}, Role: v1alpha1.RoleMember}
}

// Admin makes an agent of the world an admin of the room.
func Admin(name string) v1alpha1.RoomMember {
	return v1alpha1.RoomMember{Agent: &v1alpha1.AgentReference{Name: name}, Role: v1alpha1.RoleAdmin}
}

// Person makes a user a member.
func Person(user string, role v1alpha1.RoomRole) v1alpha1.RoomMember {
	return v1alpha1.RoomMember{User: user, Role: role}
}

// Room makes a room and gives its id, as soon as every replica shows it to its first agent.
func (w *World) Room(name string, edit func(*v1alpha1.RoomSpec), members ...v1alpha1.RoomMember) string {
	w.tb.Helper()
	room := &v1alpha1.Room{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.RoomSpec{DisplayName: strings.ToUpper(name), Members: members},
	}
	if edit != nil {
		edit(&room.Spec)
	}
	w.Create(room)
	id := ids.ID(room)
	for _, m := range members {
		if m.Agent != nil {
			w.awaitRoom(m.Agent.Name, id)
			break
		}
	}
	return id
}

func (w *World) awaitRoom(agent, id string) {
	w.tb.Helper()
	for i := range w.Plane.Replicas {
		s := w.At(i, agent, "")
		Await(w.tb, "the room "+id+" to appear", func() bool {
			r := s.Call(w.tb, "list_rooms", nil)
			return r.Err == nil && strings.Contains(string(r.Raw), id)
		})
	}
}

// As connects to the first replica as an agent of the world.
func (w *World) As(agent, session string) *Session {
	w.tb.Helper()
	return w.At(0, agent, session)
}

// At connects to a replica as an agent of the world.
func (w *World) At(replica int, agent, session string) *Session {
	w.tb.Helper()
	return Connect(w.tb, w.Plane.Replicas[replica], w.Tokens[agent], session)
}

// Alias of an agent of the world.
func (w *World) Alias(agent, owner string) string { return "@" + agent + "(" + owner + ")" }

// Await waits up to a minute for a condition.
func Await(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	AwaitFor(tb, time.Minute, what, condition)
}

// AwaitFor waits for a condition, looking at it twenty times a second.
func AwaitFor(tb testing.TB, limit time.Duration, what string, condition func() bool) {
	tb.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, limit, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		tb.Fatalf("waited %s in vain for %s", limit, what)
	}
}
