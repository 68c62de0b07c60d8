package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// pki is the cluster's own certificate authority, kept in a folder so that tokens and kubeconfigs outlive a restart.
// Certificates are issued again at every start.
type pki struct {
	dir    string
	ca     *x509.Certificate
	caKey  crypto.Signer
	caPEM  []byte
	expiry time.Time
}

// keyPair is a certificate and its key, in PEM and as files.
type keyPair struct {
	certPEM, keyPEM   []byte
	certFile, keyFile string
}

const (
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
)

// openPKI reads the authority in dir, or makes one, and makes sure the key that signs service account tokens is there.
func openPKI(dir string, now time.Time) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the certificate folder: %w", err)
	}
	p := &pki{dir: dir, expiry: now.Add(leafLife)}
	if _, err := p.signer("service-accounts.key"); err != nil {
		return nil, err
	}
	var err error
	if p.caKey, err = p.signer("ca.key"); err != nil {
		return nil, err
	}
	if p.caPEM, err = os.ReadFile(p.path("ca.crt")); errors.Is(err, fs.ErrNotExist) {
		p.caPEM, err = p.sign(&x509.Certificate{
			Subject:               pkix.Name{CommonName: "trainyard local cluster"},
			NotAfter:              now.Add(caLife),
			KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
			BasicConstraintsValid: true,
			IsCA:                  true,
		}, nil, p.caKey.Public())
		if err == nil {
			err = os.WriteFile(p.path("ca.crt"), p.caPEM, 0o600)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the cluster's certificate authority: %w", err)
	}
	block, _ := pem.Decode(p.caPEM)
	if block == nil {
		return nil, fmt.Errorf("%s holds no certificate: remove %s and start again", p.path("ca.crt"), dir)
	}
	p.ca, err = x509.ParseCertificate(block.Bytes)
	return p, err
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// signer reads the private key of that name, or makes it.
func (p *pki) signer(name string) (crypto.Signer, error) {
	data, _, err := keyutil.LoadOrGenerateKeyFile(p.path(name))
	if err != nil {
		return nil, fmt.Errorf("opening key %s: %w", name, err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, fmt.Errorf("reading key %s: %w", name, err)
	}
	return key.(crypto.Signer), nil
}

// server issues a serving certificate for these names and addresses.
func (p *pki) server(name string, names []string, ips []net.IP) (keyPair, error) {
	return p.issue(name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    names,
		IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// client issues a certificate by which a user of these groups is known to the API server.
func (p *pki) client(file, user string, groups ...string) (keyPair, error) {
	return p.issue(file, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (p *pki) issue(name string, template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	template.NotAfter = p.expiry
	template.KeyUsage = x509.KeyUsageDigitalSignature
	pair := keyPair{certFile: p.path(name + ".crt"), keyFile: p.path(name + ".key")}
	if pair.certPEM, err = p.sign(template, p.ca, key.Public()); err != nil {
		return keyPair{}, fmt.Errorf("issuing certificate %s: %w", name, err)
	}
	if pair.keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return keyPair{}, err
	}
	return pair, errors.Join(
		os.WriteFile(pair.certFile, pair.certPEM, 0o600),
		os.WriteFile(pair.keyFile, pair.keyPEM, 0o600))
}

// sign makes a certificate; without a parent it signs itself.
func (p *pki) sign(template, parent *x509.Certificate, public crypto.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, p.caKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
