package cluster_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestOutputIsKeptExactly(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	dir := t.TempDir()
	w.Create(
		withFolder(local.Pod("binary", `head -c 3000000 /dev/urandom | tee /scratch/sent`), dir),
		local.Pod("long", `head -c 100000 /dev/zero | tr '\0' x; echo; printf 'no newline at the end'`),
		local.Pod("many", `seq 100000`),
	)
	w.Run(t, "binary output comes back byte for byte", func(t *testing.T, w *local.World) {
		w.UntilPhase("binary", corev1.PodSucceeded)
		got, sent := w.Logs("binary"), read(t, dir+"/sent")
		if sha256.Sum256([]byte(got)) != sha256.Sum256([]byte(sent)) {
			t.Errorf("%d bytes were sent and %d came, not the same", len(sent), len(got))
		}
	})
	w.Run(t, "long lines are not broken", func(t *testing.T, w *local.World) {
		w.UntilPhase("long", corev1.PodSucceeded)
		if got, want := w.Logs("long"), strings.Repeat("x", 100000)+"\nno newline at the end"; got != want {
			t.Errorf("got %d bytes, want %d", len(got), len(want))
		}
	})
	w.Run(t, "many lines come complete and in order", func(t *testing.T, w *local.World) {
		w.UntilPhase("many", corev1.PodSucceeded)
		lines := strings.Fields(w.Logs("many"))
		for i, line := range lines {
			if line != strconv.Itoa(i+1) {
				t.Fatalf("line %d is %q", i+1, line)
			}
		}
		if len(lines) != 100000 {
			t.Errorf("%d lines came", len(lines))
		}
	})
}

// A container that writes as fast as it can, for ever.
func TestFloodOfOutput(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Create(local.Pod("flood", `yes this is a line of ordinary length in a log that never ends`))
	folders := filepath.Join(local.DataDir(t), "kubelet", "logs", w.Namespace+"_flood_*")
	largest := int64(0)
	w.Eventually("the log has been rotated three times", func() error {
		size, files := occupied(folders)
		largest = max(largest, size)
		if files < 4 {
			return fmt.Errorf("there are %d files", files)
		}
		return nil
	})
	// A log grows to 100 MiB at most, and there are the current one, the one before and one that is being compressed.
	if largest > 330<<20 {
		t.Errorf("its logs grew to %d bytes", largest)
	}
	if got := w.Logs("flood", "--tail=2"); strings.Count(got, "\n") != 2 || !strings.HasSuffix(got, "never ends\n") {
		t.Errorf("the end of its log is %q", got)
	}
	w.Kubectl("delete", "pod", "flood", "--grace-period=1")
	w.Eventually("its logs are gone", func() error {
		if size, files := occupied(folders); files > 0 {
			return fmt.Errorf("there are %d files of %d bytes", files, size)
		}
		return nil
	})
}

// occupied is what the files in the folders that match a pattern take.
func occupied(pattern string) (size int64, files int) {
	folders, _ := filepath.Glob(pattern)
	for _, folder := range folders {
		_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return nil // files come and go
			}
			if info, err := entry.Info(); err == nil {
				size, files = size+info.Size(), files+1
			}
			return nil
		})
	}
	return size, files
}
