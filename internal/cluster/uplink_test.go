package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// A kernel with ipv6.disable=1 cannot be had in a test.
func TestIPv6IsDisabledWhereThereIsAny(t *testing.T) {
	dir := t.TempDir()
	if err := disableIPv6(dir, "uplink-out"); err != nil {
		t.Errorf("without IPv6: %v", err)
	}
	file := filepath.Join(dir, "uplink-out", "disable_ipv6")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := disableIPv6(dir, "uplink-out"); err != nil {
		t.Error(err)
	}
	if content, _ := os.ReadFile(file); string(content) != "1" {
		t.Errorf("it is %q", content)
	}
}
