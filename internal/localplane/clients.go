package localplane

import (
	"encoding/pem"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

const (
	// DefaultUser is whom the admin's kubeconfig speaks as when nobody is named.
	DefaultUser = "admin"
	// adminGroup may do everything.
	adminGroup = "system:masters"

	adminKubeconfig = "kubeconfig"
)

// ServiceAccountUser returns the user name and the groups that a service account's token would have.
func ServiceAccountUser(namespace, name string) (string, []string) {
	return "system:serviceaccount:" + namespace + ":" + name,
		[]string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
}

// AdminConfig is a client configuration that may do everything. The caller owns the copy.
func (p *Plane) AdminConfig() *rest.Config { return rest.CopyConfig(p.admin) }

// AdminKubeconfig is the path of a kubeconfig that may do everything.
func (p *Plane) AdminKubeconfig() string { return p.dir.Path(adminKubeconfig) }

// Config is a client configuration for a user in groups. It has no client-side rate limit: the server has its own.
func (p *Plane) Config(user string, groups ...string) (*rest.Config, error) {
	id, err := p.authority.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return p.config(id), nil
}

func (p *Plane) config(id identity) *rest.Config {
	return &rest.Config{
		Host:            p.url,
		QPS:             -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.authority.pem, CertData: id.cert, KeyData: id.key},
	}
}

// Kubeconfig writes a kubeconfig for a user in groups into the data folder and returns its path.
func (p *Plane) Kubeconfig(user string, groups ...string) (string, error) {
	// A colon would part the paths in a KUBECONFIG variable.
	name := "kubeconfigs/" + strings.NewReplacer(":", ".", "/", ".").Replace(user) + ".kubeconfig"
	return p.dir.Path(name), p.writeKubeconfig(name, user, groups...)
}

func (p *Plane) writeKubeconfig(name, user string, groups ...string) error {
	id, err := p.authority.client(user, groups...)
	if err != nil {
		return err
	}
	const cluster = "agentrooms"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: p.url, CertificateAuthorityData: p.authority.pem}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: id.cert, ClientKeyData: id.key}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig of %s: %w", user, err)
	}
	return p.dir.WriteFile(name, content, 0o600)
}

func encodeCert(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw})
}
