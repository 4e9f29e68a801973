package localplane

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentrooms/agentrooms/internal/controlplane"
	"github.com/agentrooms/agentrooms/internal/datadir"
	"github.com/agentrooms/agentrooms/internal/supervise"
)

// The names of the identities in the folder pki.
const (
	clusterCA       = "ca"
	etcdCA          = "etcd-ca"
	etcdServer      = "etcd"
	etcdClient      = "etcd-client"
	apiServer       = "apiserver"
	serviceAccounts = "service-accounts"
)

const (
	// issuer is in every service account token. A token is good for the API itself only if it was minted for this
	// audience: one minted for Agent Rooms passes a TokenReview for Agent Rooms and opens nothing else.
	issuer = "https://kubernetes.default.svc"
	// apiServerGrace is how long the API server may take to end. It waits for open watches; killing it loses nothing.
	apiServerGrace = 6 * time.Second
)

// controllers are the ones that make sense without nodes and pods.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"garbage-collector-controller",
	"namespace-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
}

// etcdSpec has its own certificate authority: whoever speaks to etcd stands above all rules of the API, so a client
// certificate of the cluster must not open it.
func (p *Plane) etcdSpec() supervise.Spec {
	client, peer := "https://"+datadir.Loopback(p.etcdPort), "https://"+datadir.Loopback(p.etcdPeerPort)
	return p.spec(controlplane.Etcd, p.assets.Etcd, 0,
		"--name=rooms",
		"--data-dir="+p.dir.Path("etcd"),
		"--listen-client-urls="+client,
		"--advertise-client-urls="+client,
		"--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer,
		"--initial-cluster=rooms="+peer,
		"--client-cert-auth",
		"--trusted-ca-file="+certPath(p.dir, etcdCA),
		"--cert-file="+certPath(p.dir, etcdServer),
		"--key-file="+keyPath(p.dir, etcdServer),
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file="+certPath(p.dir, etcdCA),
		"--peer-cert-file="+certPath(p.dir, etcdServer),
		"--peer-key-file="+keyPath(p.dir, etcdServer),
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=5m",
		"--log-level=warn",
	)
}

func (p *Plane) apiServerSpec() supervise.Spec {
	args := []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.port),
		"--endpoint-reconciler-type=none", // a loopback address is no valid endpoint of the kubernetes service
		"--tls-cert-file=" + certPath(p.dir, apiServer),
		"--tls-private-key-file=" + keyPath(p.dir, apiServer),
		"--client-ca-file=" + certPath(p.dir, clusterCA),
		"--etcd-servers=https://" + datadir.Loopback(p.etcdPort),
		"--etcd-cafile=" + certPath(p.dir, etcdCA),
		"--etcd-certfile=" + certPath(p.dir, etcdClient),
		"--etcd-keyfile=" + keyPath(p.dir, etcdClient),
		"--token-auth-file=" + p.dir.Path(tokenFile),
		"--authorization-mode=RBAC",
		"--anonymous-auth=false",
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + keyPath(p.dir, serviceAccounts),
		"--service-account-signing-key-file=" + keyPath(p.dir, serviceAccounts),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--profiling=false",
	}
	if p.opts.AuditLog != "" {
		args = append(args, auditFlags(p.dir.Path(auditPolicyFile), p.opts.AuditLog)...)
	}
	return p.spec(controlplane.APIServer, p.assets.APIServer, apiServerGrace, args...)
}

func (p *Plane) controllerManagerSpec(kubeconfig string) supervise.Spec {
	return p.spec(controlplane.ControllerManager, p.assets.ControllerManager, 0,
		"--kubeconfig="+kubeconfig,
		"--controllers="+strings.Join(controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--use-service-account-credentials",
		"--root-ca-file="+certPath(p.dir, clusterCA),
		"--service-account-private-key-file="+keyPath(p.dir, serviceAccounts),
		"--profiling=false",
	)
}

func (p *Plane) spec(name, path string, grace time.Duration, args ...string) supervise.Spec {
	return supervise.Spec{Name: name, Path: path, Args: args, Grace: grace, Log: p.dir.Path("logs", name+".log")}
}
