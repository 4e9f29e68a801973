package backup_test

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/test/harness"
)

// there says whether a namespace has an object of a kind.
func there(t *testing.T, w *harness.World, l client.ObjectList) bool {
	t.Helper()
	if err := list(t, w, l); err != nil {
		t.Fatal(err)
	}
	return meta.LenList(l) > 0
}

// testAnInterruptedImportGoesOn kills the import as soon as it has written something of a kind, for one kind after the other, and
// makes it again: in the order in which an archive is restored.
func testAnInterruptedImportGoesOn(t *testing.T) {
	w, id := lab(t, 1100)
	whole := export(t, w, "lab")
	fill(t, w, id)
	settled(t, w)
	file := export(t, w, "lab")
	v := accounts(t, to, "cc", "dd", "decider")
	killed := 0
	for _, kind := range []client.ObjectList{
		&v1alpha1.RoomList{}, &v1alpha1.InboxList{}, &v1alpha1.TaskList{}, &v1alpha1.AgentList{}, &v1alpha1.FileList{}, &v1alpha1.MessageBatchList{},
	} {
		cmd := command(t, to, "import", file, "-n", v.Namespace)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		harness.Await(t, "the import to begin", func() bool { return there(t, v, kind) })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			killed++
			hidden(t, v, id, whole)
		}
	}
	if killed < 3 {
		t.Errorf("only %d imports were killed before they ended", killed)
	}
	if room := theRoom(t, v); room.Annotations[v1alpha1.RestoringAnnotation] != "" {
		restore(t, v, file)
	}
	settled(t, v)
	if again := export(t, v, "lab"); !bytes.Equal(content(t, file), content(t, again)) {
		t.Errorf("the archive of the room after all that is another one:\n%s", differ(t, file, again))
	}
}

// hidden looks at a room that is half there.
func hidden(t *testing.T, w *harness.World, id, other string) {
	t.Helper()
	room := theRoom(t, w)
	if len(room.Spec.Members) > 0 || room.Spec.State == v1alpha1.RoomActive {
		t.Errorf("a room that is being restored is open: %+v", room.Spec)
	}
	if r := w.As("cc", "c").Call(t, "list_rooms", nil); strings.Contains(string(r.Raw), id) {
		t.Errorf("an agent sees a room that is being restored: %s", r.Raw)
	}
	if r := w.As("cc", "c").Call(t, "read_room", harness.Args{"room": id}); r.Err == nil {
		t.Errorf("an agent reads a room that is being restored: %s", r.Raw)
	}
	refused(t, w, other, "an import of another archive into room lab")
	out, err := command(t, w.Plane, "export", "lab", "-n", w.Namespace, "-o", "-").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "room lab is being restored") {
		t.Errorf("exporting a room that is being restored gives %v, %s", err, out)
	}
}

// testOnlyARestorerImports runs both commands with nothing but their roles, and the import with those of a namespace's admin.
func testOnlyARestorerImports(t *testing.T) {
	w, id := lab(t, 950)
	fill(t, w, id)
	settled(t, w)
	v := accounts(t, to, "cc", "dd", "decider")
	file := filepath.Join(t.TempDir(), "lab.tar.gz")
	if out, err := as(t, w, "agentrooms-exporter", "export", "lab", "-o", file).CombinedOutput(); err != nil {
		t.Fatalf("exporting as one who may: %v\n%s", err, out)
	}
	writer := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "writes-everything-" + v.Namespace}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"*"},
		Verbs: []string{"get", "list", "create", "update", "patch", "delete", "assignowner"},
	}}}
	v.Create(writer)
	out, err := as(t, v, writer.Name, "import", file).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "with the verb restore") {
		t.Errorf("importing without the verb restore gives %v, %s", err, out)
	}
	room := &v1alpha1.Room{}
	err = to.Client.Get(context.Background(), client.ObjectKey{Namespace: v.Namespace, Name: "lab"}, room)
	if !apierrors.IsNotFound(err) || there(t, v, &v1alpha1.TaskList{}) {
		t.Errorf("the refused import has left something: %v", err)
	}
	if out, err := as(t, v, "agentrooms-restorer", "import", file).CombinedOutput(); err != nil {
		t.Fatalf("importing as one who may: %v\n%s", err, out)
	}
	settled(t, v)
	if again := export(t, v, "lab"); !bytes.Equal(content(t, file), content(t, again)) {
		t.Errorf("the archive of the restored room is another one:\n%s", differ(t, file, again))
	}
}

// as prepares a command of one who has one role and no other.
func as(t *testing.T, w *harness.World, role string, args ...string) *exec.Cmd {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: role}}
	w.Create(account)
	w.Create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role + "-" + w.Namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: role, Namespace: w.Namespace}},
	})
	t.Cleanup(func() {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role + "-" + w.Namespace}}
		_ = w.Plane.Client.Delete(context.Background(), binding)
	})
	awaitRole(t, w, role)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: w.Plane.Config.Host, CertificateAuthorityData: ca(t, w)}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: w.PersonToken(role, time.Hour)}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: w.Namespace}
	config.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), harness.Binary(t), append(args, "--kubeconfig="+path, "--blob-url="+blobURL(w.Plane))...)
}

func ca(t *testing.T, w *harness.World) []byte {
	t.Helper()
	if data := w.Plane.Config.CAData; len(data) > 0 {
		return data
	}
	return content(t, w.Plane.Config.CAFile)
}

// awaitRole waits until the API server has heard of a binding.
func awaitRole(t *testing.T, w *harness.World, account string) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + w.Namespace + ":" + account,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: v1alpha1.GroupVersion.Group, Resource: "rooms", Verb: "list"},
	}}
	harness.Await(t, "the role to be in force", func() bool {
		r := review.DeepCopy()
		return w.Plane.Client.Create(context.Background(), r) == nil && r.Status.Allowed
	})
}
