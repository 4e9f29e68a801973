package localplane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/agentrooms/agentrooms/internal/controlplane"
	"github.com/agentrooms/agentrooms/internal/localplane"
)

const patience = 30 * time.Second

// start starts a plane on a folder, which may have been used before.
func start(t *testing.T, opts localplane.Options) *localplane.Plane {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	opts.Progress = os.Stderr
	began := time.Now()
	plane, err := localplane.Start(t.Context(), opts)
	if err != nil {
		t.Fatalf("starting: %v", err)
	}
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(plane.Stop)
	return plane
}

func clientFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return client
}

func TestATokenForAgentRoomsOpensAgentRoomsOnly(t *testing.T) {
	g := gomega.NewWithT(t)
	plane := start(t, localplane.Options{DataDir: t.TempDir()})
	admin := clientFor(t, plane.AdminConfig())
	// The controller manager makes the default service account, so its being there says that the controllers run.
	g.Eventually(func() error {
		_, err := admin.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err
	}, patience).Should(gomega.Succeed())
	minted, err := admin.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"agentrooms"}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())

	review := func(audience string) authenticationv1.TokenReviewStatus {
		result, err := admin.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: minted.Status.Token, Audiences: []string{audience}},
		}, metav1.CreateOptions{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		return result.Status
	}
	accepted := review("agentrooms")
	g.Expect(accepted.Authenticated).To(gomega.BeTrue(), accepted.Error)
	g.Expect(accepted.User.Username).To(gomega.Equal("system:serviceaccount:default:default"))
	g.Expect(accepted.Audiences).To(gomega.ConsistOf("agentrooms"))
	g.Expect(review("somebody-else").Authenticated).To(gomega.BeFalse())

	direct := plane.AdminConfig()
	direct.CertData, direct.KeyData, direct.BearerToken = nil, nil, minted.Status.Token
	_, err = clientFor(t, direct).Discovery().ServerVersion()
	g.Expect(apierrors.IsUnauthorized(err)).To(gomega.BeTrue(), "the API itself answers %v", err)
}

func TestAKilledProgramComesBackWithEverythingAcknowledged(t *testing.T) {
	for _, component := range controlplane.Names {
		t.Run(component, func(t *testing.T) {
			g := gomega.NewWithT(t)
			plane := start(t, localplane.Options{DataDir: t.TempDir()})
			client := clientFor(t, plane.AdminConfig())
			write(t, client, "before")
			first := plane.PID(component)
			g.Expect(plane.Kill(component)).To(gomega.Succeed())
			g.Eventually(func() int { return plane.PID(component) }, patience, 10*time.Millisecond).ShouldNot(gomega.Equal(first))
			g.Eventually(func() error { return plane.Ready(t.Context()) }, patience, 50*time.Millisecond).Should(gomega.Succeed())
			_, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "before", metav1.GetOptions{})
			g.Expect(err).NotTo(gomega.HaveOccurred())
			write(t, client, "after")
		})
	}
}

func TestStopLeavesNothingAndStartFindsEverything(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	plane := start(t, localplane.Options{DataDir: dir})
	admin := clientFor(t, plane.AdminConfig())
	write(t, admin, "kept")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "lasting"}}
	_, err := admin.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	token, err := admin.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), account.Name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	kubeconfig := plane.AdminKubeconfig()
	var pids []int
	for _, name := range controlplane.Names {
		pids = append(pids, plane.PID(name))
	}
	plane.Stop()
	for _, pid := range pids {
		g.Expect(syscall.Kill(pid, 0)).To(gomega.MatchError(syscall.ESRCH))
	}

	again := start(t, localplane.Options{DataDir: dir})
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = clientFor(t, config).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(again.URL()).To(gomega.Equal(plane.URL()))
	bearer := again.AdminConfig()
	bearer.CertData, bearer.KeyData, bearer.BearerToken = nil, nil, token.Status.Token
	_, err = clientFor(t, bearer).Discovery().ServerVersion()
	g.Expect(err).NotTo(gomega.HaveOccurred(), "a token from before the restart")
}

func TestASecondPlaneOnTheSameFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	start(t, localplane.Options{DataDir: dir})
	_, err := localplane.Start(t.Context(), localplane.Options{DataDir: dir})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Errorf("second start = %v, want an error that names process %d", err, os.Getpid())
	}
}

func TestIdentitiesAreHeldToRBACAndSeenInTheAuditLog(t *testing.T) {
	g := gomega.NewWithT(t)
	log := t.TempDir() + "/audit.log"
	plane := start(t, localplane.Options{DataDir: t.TempDir(), AuditLog: log})
	user, groups := localplane.ServiceAccountUser("agentrooms-system", "agentrooms-bridge")
	path, err := plane.Kubeconfig(user, groups...)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	config, err := clientcmd.BuildConfigFromFlags("", path)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	client := clientFor(t, config)

	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(self.Status.UserInfo.Username).To(gomega.Equal(user))
	g.Expect(self.Status.UserInfo.Groups).To(gomega.ContainElements(groups))
	_, err = client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsForbidden(err)).To(gomega.BeTrue(), "listing secrets without a role: %v", err)
	g.Eventually(func() []string { return audited(t, log, user) }, patience).Should(
		gomega.ContainElements("create selfsubjectreviews 201", "list secrets 403"))
}

// audited lists what a user did, as the audit log has it.
func audited(t *testing.T, log, user string) []string {
	t.Helper()
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatalf("reading the audit log: %v", err)
	}
	var did []string
	for line := range strings.Lines(string(content)) {
		var event struct {
			Verb           string
			User           struct{ Username string }
			ObjectRef      struct{ Resource string }
			ResponseStatus struct{ Code int }
		}
		// The last line may still be being written.
		if json.Unmarshal([]byte(line), &event) == nil && event.User.Username == user {
			did = append(did, fmt.Sprintf("%s %s %d", event.Verb, event.ObjectRef.Resource, event.ResponseStatus.Code))
		}
	}
	return did
}

func write(t *testing.T, client *kubernetes.Clientset, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{}); err != nil {
		t.Fatalf("writing %s: %v", name, err)
	}
}
