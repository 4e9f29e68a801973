// Package backup_test takes rooms from one running plane to another by archive, and holds what comes out to what went in.
package backup_test

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// from is where rooms are exported, to is where they are imported.
var from, to *harness.Plane

func TestBackup(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	from, to = harness.Up(t, harness.Options{NoDemo: true}), harness.Up(t, harness.Options{NoDemo: true})
	t.Run("ARoomComesBackAsItWas", testARoomComesBackAsItWas)
	t.Run("ARoomThatIsAllInTheBlobStoreGoesOn", testARoomThatIsAllInTheBlobStoreGoesOn)
	t.Run("AnInterruptedImportGoesOn", testAnInterruptedImportGoesOn)
	t.Run("OnlyARestorerImports", testOnlyARestorerImports)
	t.Run("MemoryDoesNotGrowWithTheRoom", testMemoryDoesNotGrowWithTheRoom)
}

func blobURL(p *harness.Plane) string {
	return (&url.URL{Scheme: "file", Path: filepath.Join(p.DataDir, "blobs")}).String()
}

// command prepares `rooms export` or `rooms import` on a plane, as its admin.
func command(t *testing.T, p *harness.Plane, args ...string) *exec.Cmd {
	t.Helper()
	args = append(args, "--kubeconfig="+p.Kubeconfig, "--blob-url="+blobURL(p))
	return exec.CommandContext(t.Context(), harness.Binary(t), args...)
}

func export(t *testing.T, w *harness.World, room string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), room+".tar.gz")
	if out, err := command(t, w.Plane, "export", room, "-n", w.Namespace, "-o", file).CombinedOutput(); err != nil {
		t.Fatalf("exporting: %v\n%s", err, out)
	}
	return file
}

func restore(t *testing.T, w *harness.World, file string) {
	t.Helper()
	if out, err := command(t, w.Plane, "import", file, "-n", w.Namespace).CombinedOutput(); err != nil {
		t.Fatalf("importing: %v\n%s", err, out)
	}
}

func refused(t *testing.T, w *harness.World, file, want string) {
	t.Helper()
	out, err := command(t, w.Plane, "import", file, "-n", w.Namespace).CombinedOutput()
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("importing gives %v, %s, want an error with %q", err, out, want)
	}
}

// accounts makes what an archive does not hold: the ServiceAccounts of the agents.
func accounts(t *testing.T, p *harness.Plane, names ...string) *harness.World {
	t.Helper()
	w := p.World(t)
	for _, name := range names {
		w.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}})
		w.Tokens[name] = w.Token(name, time.Hour)
	}
	return w
}

// lab makes a room of said's cc and maya's dd and decider, with messages, of which 1,000 move to the blob store.
func lab(t *testing.T, messages int64) (*harness.World, string) {
	t.Helper()
	return room(t, messages, 100)
}

// room makes a room of which the cluster is to keep a number of messages.
func room(t *testing.T, messages int64, keep int32) (*harness.World, string) {
	t.Helper()
	w := from.World(t)
	w.Agent("cc", "said")
	w.Agent("dd", "maya")
	w.Agent("decider", "maya", func(s *v1alpha1.AgentSpec) { s.Delegations = []v1alpha1.Delegation{v1alpha1.DelegationConsent} })
	id := w.Room("lab", func(s *v1alpha1.RoomSpec) {
		s.LeasePolicy = &v1alpha1.LeasePolicy{DurationSeconds: 86400}
		s.Retention = &v1alpha1.RoomRetention{Messages: &v1alpha1.MessageRetention{MaxCount: keep}, FileVersions: 3}
	}, harness.Member("cc"), harness.Member("dd"), harness.Admin("decider"), harness.Person("said", v1alpha1.RoleAdmin))
	talk(t, w, messages)
	if messages > 1000 {
		harness.AwaitFor(t, 3*time.Minute, "old messages to move", func() bool {
			a := theRoom(t, w).Status.Archive
			return a != nil && messages-a.ThroughSeq < max(1000, int64(keep)+1)
		})
	}
	return w, id
}

func theRoom(t *testing.T, w *harness.World) *v1alpha1.Room {
	t.Helper()
	room := &v1alpha1.Room{}
	if err := w.Plane.Client.Get(context.Background(), client.ObjectKey{Namespace: w.Namespace, Name: "lab"}, room); err != nil {
		t.Fatal(err)
	}
	return room
}

// talk writes messages of dd. Some mention cc: on either side of where the log is cut.
func talk(t *testing.T, w *harness.World, count int64) {
	t.Helper()
	room := theRoom(t, w)
	for seq, number := int64(1), int64(1); seq <= count; number++ {
		b := &v1alpha1.MessageBatch{
			ObjectMeta: metav1.ObjectMeta{
				Name: ids.BatchName("lab", room.UID, number), Labels: map[string]string{v1alpha1.RoomLabel: "lab"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Room", Name: "lab", UID: room.UID}},
			},
			Spec: v1alpha1.MessageBatchSpec{RoomRef: v1alpha1.RoomReference{Name: "lab"}, Number: number, FirstSeq: seq, Writer: "test"},
		}
		for ; seq <= count && len(b.Spec.Messages) < v1alpha1.MaxBatchMessages; seq++ {
			m := v1alpha1.Message{
				Sender: v1alpha1.MessageSender{Type: v1alpha1.SenderAgent, ID: w.Plates["dd"], Name: "dd"},
				Body:   fmt.Sprintf("<%d> & %s", seq, strings.Repeat("ö", int(seq%50))), At: metav1.NowMicro(),
			}
			if seq%450 == 0 {
				m.Mentions = []v1alpha1.Mention{{Plate: w.Plates["cc"]}}
			}
			b.Spec.Messages = append(b.Spec.Messages, m)
		}
		w.Create(b)
	}
	harness.Await(t, "the messages to be seen", func() bool {
		page := harness.Get[rooms.Page](t, w.As("cc", "c"), "read_room", harness.Args{"room": ids.ID(room), "limit": 1})
		return len(page.Messages) == 1 && page.Messages[0].Seq == count
	})
}
