package board

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/test/harness"
)

// The admin of a plane without a demo, and a person who is no user of the cluster.
const (
	admin = "admin"
	other = "maya"
)

// How much the large room holds.
const (
	manyTasks    = 500
	manyMessages = 5000
)

// scene is what the tests find on the plane.
type scene struct {
	Namespace string            `json:"namespace"`
	Rooms     map[string]string `json:"rooms"`
	Tokens    map[string]string `json:"tokens"`
	Plates    map[string]string `json:"plates"`
	// People are tokens of the API server's own audience.
	People map[string]string `json:"people"`
}

// prepare fills the plane: a room to work in, one for hostile content, one that many watch, and a large one.
func prepare(t *testing.T, plane *harness.Plane) *scene {
	t.Helper()
	w := plane.World(t)
	w.Agent("asker", other)
	w.Agent("helper", admin)
	w.Agent("second", admin)
	members := []v1alpha1.RoomMember{
		harness.Admin("asker"), harness.Member("helper"), harness.Member("second"), harness.Person(admin, v1alpha1.RoleAdmin),
	}
	s := &scene{Namespace: w.Namespace, Rooms: map[string]string{}, Tokens: w.Tokens, Plates: w.Plates, People: map[string]string{}}
	for _, name := range []string{"work", "hostile", "watched", "large", "files", "attic"} {
		s.Rooms[name] = w.Room(name, func(spec *v1alpha1.RoomSpec) {
			spec.DisplayName = strings.ToUpper(name[:1]) + name[1:] + " room"
			spec.Description = "Where the launch is planned and done."
		}, members...)
	}
	s.People["reader"] = person(w, "reader", "view", "agentrooms-message-viewer", "agentrooms-file-reader")
	s.People["lister"] = person(w, "lister", "view")
	s.People["boss"] = person(w, "boss", "admin", "agentrooms-message-sender")
	s.People["stranger"] = person(w, "stranger")
	escapes := batchOf(roomNamed(t, w, "hostile"), 1, 1, 1, metav1.NewMicroTime(time.Now()))
	escapes.Spec.Messages[0].Body = "\x1b[31mred\x1b[0m \x07 <b>bold</b>"
	w.Create(escapes)
	fill(t, plane, roomNamed(t, w, "large"))
	return s
}

func roomNamed(t *testing.T, w *harness.World, name string) *v1alpha1.Room {
	t.Helper()
	room := &v1alpha1.Room{}
	if err := w.Plane.Client.Get(context.Background(), client.ObjectKey{Namespace: w.Namespace, Name: name}, room); err != nil {
		t.Fatal(err)
	}
	return room
}

// person makes somebody with a token of their own and cluster roles in the world's namespace.
func person(w *harness.World, name string, roles ...string) string {
	w.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}})
	for _, role := range roles {
		w.Create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: w.Namespace}},
		})
	}
	return w.PersonToken(name, time.Hour)
}

// fill puts many tasks and messages into a room.
func fill(t *testing.T, plane *harness.Plane, room *v1alpha1.Room) {
	t.Helper()
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(8)
	for i := range manyTasks {
		group.Go(func() error {
			return plane.Client.Create(ctx, &v1alpha1.Task{
				ObjectMeta: metav1.ObjectMeta{Namespace: room.Namespace, Name: fmt.Sprintf("many-%d", i)},
				Spec: v1alpha1.TaskSpec{
					RoomRef: v1alpha1.RoomReference{Name: room.Name}, Title: fmt.Sprintf("Task %d of many", i),
					DefinitionOfDone: "It is done", Order: int64(i), Priority: int32(i % 100),
				},
			})
		})
	}
	number, at := int64(0), metav1.NewMicroTime(time.Now())
	for seq := int64(1); seq <= manyMessages; seq += v1alpha1.MaxBatchMessages {
		number++
		batch := batchOf(room, number, seq, manyMessages, at)
		group.Go(func() error { return plane.Client.Create(ctx, batch) })
	}
	if err := group.Wait(); err != nil {
		t.Fatalf("filling the large room: %v", err)
	}
}

// batchOf makes a batch with messages from a seq on, as many as it holds and up to the last one.
func batchOf(room *v1alpha1.Room, number, seq, last int64, at metav1.MicroTime) *v1alpha1.MessageBatch {
	batch := &v1alpha1.MessageBatch{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: room.Namespace, Name: ids.BatchName(room.Name, room.UID, number),
			Labels: map[string]string{v1alpha1.RoomLabel: room.Name},
		},
		Spec: v1alpha1.MessageBatchSpec{
			RoomRef: v1alpha1.RoomReference{Name: room.Name}, Number: number, FirstSeq: seq, Writer: "the test",
		},
	}
	for n := seq; n < seq+v1alpha1.MaxBatchMessages && n <= last; n++ {
		batch.Spec.Messages = append(batch.Spec.Messages, v1alpha1.Message{
			Sender: v1alpha1.MessageSender{Type: v1alpha1.SenderHuman, ID: admin}, Body: fmt.Sprintf("Message %d of many", n), At: at,
		})
	}
	return batch
}
