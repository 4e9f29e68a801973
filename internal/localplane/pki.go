package localplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/agentrooms/agentrooms/internal/datadir"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// authorityMargin is how long an authority must still be good for, else it is made anew.
	authorityMargin = certificateLife
	// backdate allows for a clock that was set back a little.
	backdate = time.Hour
)

// identity is a certificate and its key, in PEM.
type identity struct {
	cert, key []byte
}

// authority signs certificates. It is kept in the data folder, so that what it signed stays good over restarts.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// loadAuthority reads the authority of that name from the folder, or makes it.
func loadAuthority(dir *datadir.Dir, name string) (*authority, error) {
	a, err := readAuthority(dir, name)
	if err == nil && time.Until(a.cert.NotAfter) > authorityMargin {
		return a, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the certificate authority %s: %w", name, err)
	}
	if a, err = newAuthority(name); err != nil {
		return nil, fmt.Errorf("making the certificate authority %s: %w", name, err)
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(a.key)
	if err != nil {
		return nil, fmt.Errorf("encoding the key of the certificate authority %s: %w", name, err)
	}
	return a, writeIdentity(dir, name, identity{cert: a.pem, key: key})
}

func readAuthority(dir *datadir.Dir, name string) (*authority, error) {
	certs, err := cert.CertsFromFile(certPath(dir, name))
	if err != nil {
		return nil, err
	}
	parsed, err := keyutil.PrivateKeyFromFile(keyPath(dir, name))
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot sign", parsed)
	}
	return &authority{cert: certs[0], key: key, pem: encodeCert(certs[0].Raw)}, nil
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: "agentrooms-" + name}, authorityLife)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, err
	}
	return &authority{cert: parsed, key: key, pem: encodeCert(raw)}, nil
}

// client issues a certificate that Kubernetes reads as this user in these groups.
func (a *authority) client(user string, groups ...string) (identity, error) {
	return a.issue(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth)
}

// server issues a certificate for a server on this machine. It can be a client's too, as etcd asks of its own.
func (a *authority) server(name string) (identity, error) {
	return a.issue(pkix.Name{CommonName: name}, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

func (a *authority) issue(subject pkix.Name, usages ...x509.ExtKeyUsage) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("making a key: %w", err)
	}
	template, err := newTemplate(subject, certificateLife)
	if err != nil {
		return identity{}, err
	}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, usages
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return identity{}, fmt.Errorf("issuing a certificate for %s: %w", subject.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return identity{}, fmt.Errorf("encoding a key: %w", err)
	}
	return identity{cert: encodeCert(raw), key: keyPEM}, nil
}

func newTemplate(subject pkix.Name, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: now.Add(-backdate), NotAfter: now.Add(life)}, nil
}

// ensureSigningKey makes the key that signs service account tokens, unless the folder has it.
func ensureSigningKey(dir *datadir.Dir) error {
	if _, err := os.Stat(keyPath(dir, serviceAccounts)); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the service account key: %w", err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("encoding the service account key: %w", err)
	}
	return dir.WriteFile("pki/"+serviceAccounts+".key", encoded, 0o600)
}

func writeIdentity(dir *datadir.Dir, name string, id identity) error {
	// The key first: an authority counts as made when its certificate is there.
	if err := dir.WriteFile("pki/"+name+".key", id.key, 0o600); err != nil {
		return err
	}
	return dir.WriteFile("pki/"+name+".crt", id.cert, 0o644)
}

func certPath(dir *datadir.Dir, name string) string { return dir.Path("pki", name+".crt") }

func keyPath(dir *datadir.Dir, name string) string { return dir.Path("pki", name+".key") }
