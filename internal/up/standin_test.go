package up

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/install"
)

// This test binary stands in for the rooms binary, with a manager and a bridge that do only what `rooms up` looks at. So
// these tests hold what up does, and the tests of the whole system hold the rest.
const (
	// adminEnv names a kubeconfig with which the stand-in manager may write plates.
	adminEnv = "UP_TEST_ADMIN_KUBECONFIG"
	// dirEnv makes the binary run Run on that folder, until it is killed.
	dirEnv = "UP_TEST_DATA_DIR"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "manager":
		err = standInManager(os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == "bridge":
		err = standInBridge(os.Args[2:])
	case os.Getenv(dirEnv) != "":
		err = Run(context.Background(), Options{DataDir: os.Getenv(dirEnv), Bridges: 1, Executable: os.Args[0],
			Progress: os.Stderr, Ready: func(r Report) error { return r.WriteJSON(os.Stdout) }})
	default:
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

func standInManager(args []string) error {
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "")
	metrics := flags.String("metrics-bind-address", "", "")
	health := flags.String("health-probe-bind-address", "", "")
	flags.Bool("leader-elect", false, "")
	flags.String("leader-election-namespace", "", "")
	flags.String("blob-url", "", "")
	flags.Duration("blob-grace", 0, "")
	flags.Duration("file-grace", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := checkIdentity(*kubeconfig, managerAccount); err != nil {
		return err
	}
	go func() { _ = http.ListenAndServe(*metrics, http.NotFoundHandler()) }()
	go func() { _ = http.ListenAndServe(*health, ready()) }()
	return givePlates()
}

// givePlates is all that the stand-in manager does. It holds no role of its own, so it works as the admin.
func givePlates() error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(adminEnv))
	if err != nil {
		return err
	}
	installer, err := install.New(config)
	if err != nil {
		return err
	}
	c := installer.Client()
	for range time.Tick(100 * time.Millisecond) {
		var agents v1alpha1.AgentList
		if err := c.List(context.Background(), &agents); err != nil {
			continue
		}
		for i := range agents.Items {
			agent := &agents.Items[i]
			if agent.Status.Plate == "" {
				agent.Status.Plate = ids.Plate(agent)
				_ = c.Status().Update(context.Background(), agent, client.FieldOwner("stand-in"))
			}
		}
	}
	return nil
}

func standInBridge(args []string) error {
	flags := flag.NewFlagSet("bridge", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "")
	listen := flags.String("listen", "", "")
	flags.String("metrics-bind-address", "", "")
	flags.String("rate-limits", "", "")
	flags.String("board-key-file", "", "")
	flags.String("board-codes-dir", "", "")
	flags.String("blob-url", "", "")
	flags.String("blob-public-url", "", "")
	flags.Duration("blob-grace", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := checkIdentity(*kubeconfig, bridgeAccount); err != nil {
		return err
	}
	return http.ListenAndServe(*listen, ready())
}

func ready() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	return mux
}

// checkIdentity fails unless the cluster knows the holder of the kubeconfig as that service account.
func checkIdentity(kubeconfig, account string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading %s: %w", filepath.Base(kubeconfig), err)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	self, err := c.AuthenticationV1().SelfSubjectReviews().Create(context.Background(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if got, want := self.Status.UserInfo.Username, "system:serviceaccount:agentrooms-system:"+account; got != want {
		return fmt.Errorf("runs as %s, want %s", got, want)
	}
	return nil
}
