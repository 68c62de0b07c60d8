//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
)

// The name of a data directory is no pattern: prune deletes what is in it, and nothing elsewhere.
func TestPruneDeletesFromItsDirectoryOnly(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"exp[1]", "exp1"} {
		for _, name := range []string{"etcd", "pki"} {
			if err := os.MkdirAll(filepath.Join(root, dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(root, dir, "lock"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&pruning{all: true}).removeAll(&cobra.Command{}, filepath.Join(root, "exp[1]")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "exp[1]")); !os.IsNotExist(err) {
		t.Errorf("the directory stays: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(root, "exp1")); err != nil || len(left) != 3 {
		t.Errorf("another directory has %v: %v", left, err)
	}
}
