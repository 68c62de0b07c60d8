package mpiagent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
)

// keys are read from the folder in which the Secret is mounted.
type keys string

func (k keys) private(name string) (ssh.Signer, error) {
	text, err := os.ReadFile(filepath.Join(string(k), name))
	if err != nil {
		return nil, fmt.Errorf("reading the job's keys: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("reading the job's key %s: %w", name, err)
	}
	return signer, nil
}

func (k keys) public(name string) (ssh.PublicKey, error) {
	text, err := os.ReadFile(filepath.Join(string(k), name))
	if err != nil {
		return nil, fmt.Errorf("reading the job's keys: %w", err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return nil, fmt.Errorf("reading the job's key %s: %w", name, err)
	}
	return key, nil
}

var errForeign = errors.New("the key is not one of this job")
