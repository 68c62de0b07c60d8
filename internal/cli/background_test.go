package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestNotesOfUp(t *testing.T) {
	file, err := openUpLog(t.TempDir())
	must(t, err)
	const before, now = "Note: of an earlier up\n", "Starting the local cluster: etcd …\nThe local cluster is ready (4.0 s).\n\nNote: no limits\nNote: no GPUs\nUse it\n"
	_, err = file.WriteString(before + now)
	must(t, err)
	if got, want := notesOf(linesOf(file, int64(len(before)))), []string{"Note: no limits", "Note: no GPUs"}; !reflect.DeepEqual(got, want) {
		t.Errorf("they are %q", got)
	}
}

// A second `up -d` fails, and the log of the running cluster stays.
func TestTheLogOfARunningClusterStays(t *testing.T) {
	dir := t.TempDir()
	content := func() string {
		file, err := openUpLog(dir)
		must(t, err)
		must(t, file.Close())
		written, err := os.ReadFile(filepath.Join(dir, upLog))
		must(t, err)
		return string(written)
	}
	must(t, os.WriteFile(filepath.Join(dir, upLog), []byte("of an earlier cluster"), 0o600))
	if got := content(); got != "" {
		t.Errorf("without a cluster it is %q", got)
	}
	holdLock(t, dir)
	must(t, os.WriteFile(filepath.Join(dir, upLog), []byte("of the running cluster"), 0o600))
	if got := content(); got != "of the running cluster" {
		t.Errorf("of a running cluster it is %q", got)
	}
}
