package up

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/agentrooms/agentrooms/internal/install"
	"github.com/agentrooms/agentrooms/internal/localplane"
)

// minServer is the oldest Kubernetes that Agent Rooms runs on.
var minServer = version.MustParseGeneric("1.36.0")

// connect starts the control plane, or finds the cluster that was named.
func (s *system) connect(ctx context.Context) (err error) {
	if _, err := s.dir.MakeDir("logs"); err != nil {
		return err
	}
	if s.opts.Kubeconfig == "" {
		err = s.startPlane(ctx)
	} else {
		err = s.useCluster()
	}
	if err != nil {
		return err
	}
	if s.installer, err = install.New(s.cluster); err != nil {
		return err
	}
	s.tokens = newTokenKeeper(s.installer.Client(), s.dir, s.say)
	return nil
}

func (s *system) startPlane(ctx context.Context) (err error) {
	s.say("starting the control plane in %s", s.dir.Path())
	options := localplane.Options{Dir: s.dir, AuditLog: s.opts.AuditLog, Progress: s.opts.Progress}
	if !s.opts.NoDemo {
		// Whoever tries the demo is its person: what they make with kubectl is made by the owner of an agent.
		options.User = install.DemoUser
	}
	s.plane, err = localplane.Start(ctx, options)
	if err != nil {
		return err
	}
	s.cluster, s.kubeconfig = s.plane.AdminConfig(), s.plane.AdminKubeconfig()
	return nil
}

func (s *system) useCluster() (err error) {
	s.kubeconfig = s.opts.Kubeconfig
	if s.cluster, err = clientcmd.BuildConfigFromFlags("", s.kubeconfig); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	s.cluster.QPS = -1
	s.say("using the cluster at %s", s.cluster.Host)
	return checkVersion(s.cluster)
}

func checkVersion(cluster *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(cluster)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the cluster for its version: %w", err)
	}
	server, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return fmt.Errorf("reading the cluster's version: %w", err)
	}
	if server.LessThan(minServer) {
		return fmt.Errorf("the cluster is Kubernetes %s, and Agent Rooms needs %s or later", info.GitVersion, minServer)
	}
	return nil
}

// kubeconfigFor writes a kubeconfig with which a process is the service account of that name, and nothing more. Our own
// control plane issues a certificate; another cluster mints a token, which is renewed while we run.
func (s *system) kubeconfigFor(ctx context.Context, account string) (string, error) {
	if s.plane != nil {
		user, groups := localplane.ServiceAccountUser(install.Namespace, account)
		return s.plane.Kubeconfig(user, groups...)
	}
	token := &token{namespace: install.Namespace, account: account, file: "tokens/system/" + account + ".token"}
	if err := s.tokens.add(ctx, token); err != nil {
		return "", err
	}
	raw, err := clientcmd.LoadFromFile(s.kubeconfig)
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := clientcmdapi.MinifyConfig(raw); err != nil {
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := clientcmdapi.FlattenConfig(raw); err != nil {
		return "", fmt.Errorf("reading the files that the kubeconfig names: %w", err)
	}
	raw.AuthInfos = map[string]*clientcmdapi.AuthInfo{account: {TokenFile: s.dir.Path(token.file)}}
	raw.Contexts[raw.CurrentContext].AuthInfo = account
	content, err := clientcmd.Write(*raw)
	if err != nil {
		return "", fmt.Errorf("encoding the kubeconfig of %s: %w", account, err)
	}
	name := "kubeconfigs/" + account + ".kubeconfig"
	return s.dir.Path(name), s.dir.WriteFile(name, content, 0o600)
}
