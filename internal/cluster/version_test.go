package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestADataDirectoryOfANewerVersionIsRefused(t *testing.T) {
	ours := stamp{1, "1.36"}
	for _, row := range []struct{ name, content, want string }{
		{"the same", `{"format":1,"kubernetes":"1.36"}`, ""},
		{"an older one", `{"format":0,"kubernetes":"1.9"}`, ""},
		{"a newer Kubernetes", `{"format":1,"kubernetes":"1.40"}`,
			"/data was used by a newer trainyard, with Kubernetes 1.40, and this one has Kubernetes 1.36: use the newer one, or name another directory with --data-dir"},
		{"newer files", `{"format":2,"kubernetes":"1.36"}`,
			"/data was used by a newer trainyard, with Kubernetes 1.36, and this one has Kubernetes 1.36: use the newer one, or name another directory with --data-dir"},
		{"a damaged file", `{`, `/data has a damaged file "version" (unexpected end of JSON input): remove the file if this trainyard is not older than the last one that used the directory`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := ""
			if err := ours.check([]byte(row.content), "/data"); err != nil {
				got = err.Error()
			}
			if got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

func TestADataDirectoryIsStamped(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		h, err := openHome(dir)
		if err != nil {
			t.Fatal(err)
		}
		h.close()
	}
	file := filepath.Join(dir, "version")
	if err := os.WriteFile(file, []byte(`{"format":1,"kubernetes":"99.0"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openHome(dir); err == nil || !strings.Contains(err.Error(), "used by a newer trainyard") {
		t.Errorf("a newer one's: %v", err)
	}
	if _, held := HolderOf(dir); held {
		t.Error("it is still held")
	}
}
