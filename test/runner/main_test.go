// Package runner holds that `rooms listen` and `rooms work` lose no wake, do no task twice and keep no lease for the dead, when
// they, their commands and the bridge are killed or hang: with the real binary on a real plane.
package runner

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/test/harness"
)

// plane is shared by the tests. Replica 0 is the one that gets killed and stopped, replica 1 serves whoever is not about that.
var plane *harness.Plane

const (
	shaky  = 0
	steady = 1
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(commandDir); dir != "" {
		os.Exit(playCommand(dir))
	}
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	flag.Parse()
	// They mostly wait.
	_ = flag.Set("test.parallel", "16")
	if testing.Short() { // all of them need a control plane
		os.Exit(0)
	}
	harness.Main(m, &plane, harness.Options{Bridges: 2, NoDemo: true})
}

// scene is a world with one owner's agents: boss gives work and talks, hand is what the commands run for.
type scene struct {
	*harness.World

	t    *testing.T
	room string
	boss *harness.Session
	// hand looks at things as the agent whose commands run, under a session of its own.
	hand *harness.Session
	// folder of the commands' journal.
	dir string
}

// leaseSeconds of every room: the least that is allowed.
const leaseSeconds = 10

func newScene(t *testing.T) *scene {
	t.Helper()
	w := plane.World(t)
	w.Agent("boss", "olga")
	w.Agent("hand", "olga")
	s := &scene{World: w, t: t, dir: t.TempDir()}
	s.boss, s.hand = w.At(steady, "boss", "desk"), w.At(steady, "hand", "eye")
	s.room = s.addRoom("den")
	return s
}

// addRoom makes a room and gives its id, as soon as the steady replica shows it to both.
func (s *scene) addRoom(name string) string {
	s.t.Helper()
	room := &v1alpha1.Room{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RoomSpec{
		DisplayName: strings.ToUpper(name), LeasePolicy: &v1alpha1.LeasePolicy{DurationSeconds: leaseSeconds},
		Members: []v1alpha1.RoomMember{harness.Admin("boss"), harness.Member("hand")},
	}}
	s.Create(room)
	for _, agent := range []*harness.Session{s.boss, s.hand} {
		harness.Await(s.t, "the room "+name+" to appear", func() bool {
			r := agent.Call(s.t, "list_rooms", nil)
			return r.Err == nil && strings.Contains(string(r.Raw), ids.ID(room))
		})
	}
	return ids.ID(room)
}
