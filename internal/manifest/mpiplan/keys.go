package mpiplan

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// The entries of the Secret. The first two are those of mpi-operator.
const (
	// PrivateKey proves that a client belongs to the job, PublicKey is what a server compares it with.
	PrivateKey = "ssh-privatekey"
	PublicKey  = "ssh-publickey"
	// HostKey proves that a server belongs to the job, KnownHost is what a client compares it with.
	HostKey   = "ssh-hostkey"
	KnownHost = "ssh-knownhost"
)

// NewKeys are the keys of a new job. They are of a kind that every OpenSSH accepts, also in FIPS mode.
func NewKeys() (map[string][]byte, error) {
	keys := map[string][]byte{}
	for _, names := range [][2]string{{PrivateKey, PublicKey}, {HostKey, KnownHost}} {
		private, public, err := newKey()
		if err != nil {
			return nil, fmt.Errorf("generating a key: %w", err)
		}
		keys[names[0]], keys[names[1]] = private, public
	}
	return keys, nil
}

func newKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	line, err := ssh.NewPublicKey(&key.PublicKey)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), ssh.MarshalAuthorizedKey(line), nil
}
