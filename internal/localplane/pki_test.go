package localplane

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/agentrooms/agentrooms/internal/datadir"
)

func openDir(t *testing.T) *datadir.Dir {
	t.Helper()
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatalf("opening a folder: %v", err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

func TestAnAuthorityIsKept(t *testing.T) {
	dir := openDir(t)
	first, err := loadAuthority(dir, clusterCA)
	if err != nil {
		t.Fatalf("making an authority: %v", err)
	}
	second, err := loadAuthority(dir, clusterCA)
	if err != nil {
		t.Fatalf("reading it again: %v", err)
	}
	if !bytes.Equal(first.pem, second.pem) {
		t.Errorf("the authority changed between two starts")
	}
	other, err := loadAuthority(dir, etcdCA)
	if err != nil {
		t.Fatalf("making another authority: %v", err)
	}
	if bytes.Equal(first.pem, other.pem) {
		t.Errorf("etcd trusts the cluster's own authority, so any client of the cluster could read etcd")
	}
}

func TestCertificatesSayWhoAndForWhat(t *testing.T) {
	authority, err := newAuthority("test")
	if err != nil {
		t.Fatalf("making an authority: %v", err)
	}
	user, groups := ServiceAccountUser("agentrooms-system", "agentrooms-manager")
	client, err := authority.client(user, groups...)
	if err != nil {
		t.Fatalf("issuing: %v", err)
	}
	parsed := verify(t, authority, client, x509.ExtKeyUsageClientAuth, "")
	if parsed.Subject.CommonName != "system:serviceaccount:agentrooms-system:agentrooms-manager" {
		t.Errorf("common name = %q", parsed.Subject.CommonName)
	}
	if got := parsed.Subject.Organization; len(got) != 2 {
		t.Errorf("organizations = %q, want %q", got, groups)
	}
	server, err := authority.server("apiserver")
	if err != nil {
		t.Fatalf("issuing: %v", err)
	}
	verify(t, authority, server, x509.ExtKeyUsageServerAuth, "127.0.0.1")
}

func verify(t *testing.T, a *authority, id identity, usage x509.ExtKeyUsage, host string) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair(id.cert, id.key); err != nil {
		t.Fatalf("certificate and key do not belong together: %v", err)
	}
	certs, err := cert.ParseCertsPEM(id.cert)
	if err != nil {
		t.Fatalf("parsing: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	_, err = certs[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}})
	if err != nil {
		t.Errorf("verifying: %v", err)
	}
	if left := time.Until(certs[0].NotAfter); left < certificateLife-time.Minute {
		t.Errorf("good for %s only", left)
	}
	return certs[0]
}
