// Package tlstest makes certificates for servers of tests.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Certificates are PEM files in a directory of the test.
type Certificates struct {
	CA, Server, Key string // paths
}

// New makes a CA and a certificate that it signed for a server of some host names.
func New(t testing.TB, hosts ...string) Certificates {
	t.Helper()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	now := time.Now()
	template := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), BasicConstraintsValid: true,
		}
	}
	authority, server := template(1, "CA of "+t.Name()), template(2, "server")
	authority.IsCA, authority.KeyUsage = true, x509.KeyUsageCertSign
	server.DNSNames, server.ExtKeyUsage = hosts, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

	authorityKey, serverKey := newKey(t), newKey(t)
	writePEM(t, path("ca.pem"), "CERTIFICATE", sign(t, authority, authority, authorityKey, authorityKey))
	writePEM(t, path("server.pem"), "CERTIFICATE", sign(t, server, authority, serverKey, authorityKey))
	key, err := x509.MarshalPKCS8PrivateKey(serverKey)
	require.NoError(t, err)
	writePEM(t, path("server.key"), "PRIVATE KEY", key)
	return Certificates{CA: path("ca.pem"), Server: path("server.pem"), Key: path("server.key")}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func sign(t testing.TB, certificate, parent *x509.Certificate, of, by *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, certificate, parent, of.Public(), by)
	require.NoError(t, err)
	return der
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
