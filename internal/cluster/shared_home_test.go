package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A shared file system cannot be had in a test.
func TestEachHostHasItsOwnDirectoryInASharedHome(t *testing.T) {
	const dir, lustre, ext4 = "/home/me/.local/share/trainyard", 0x0BD00BD0, 0xEF53
	for _, row := range []struct {
		name       string
		fileSystem uint32
		want       string
	}{
		{"NFS", unix.NFS_SUPER_MAGIC, dir + "/hosts/node7"},
		{"Lustre", lustre, dir + "/hosts/node7"},
		{"a local disk", ext4, dir},
	} {
		if got := dirOfHost(dir, "node7", row.fileSystem); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
	local := filepath.Join(t.TempDir(), "not", "there", "yet")
	if got := DirOfThisHost(local); got != local {
		t.Errorf("a directory of a local disk: %s", got)
	}
}

func TestHolders(t *testing.T) {
	for _, row := range []struct {
		name, content string
		want          Holder
		here          bool
	}{
		{"not written yet", "", Holder{}, true},
		{"by an older version", "123\n", Holder{PID: 123}, true},
		{"on another host", `{"pid":123,"host":"node7","bootID":"b"}`, Holder{123, "node7", "b"}, false},
		{"on a host that was renamed meanwhile", `{"pid":123,"host":"node7","bootID":"` + bootID() + `"}`, Holder{123, "node7", bootID()}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := readHolder(strings.NewReader(row.content)); got != row.want || got.Here() != row.here {
				t.Errorf("%+v, here: %t", got, got.Here())
			}
		})
	}
}

func TestOneHolderAtATime(t *testing.T) {
	dir := t.TempDir()
	if _, held := HolderOf(dir); held {
		t.Error("nobody holds it")
	}
	h, err := openHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, held := HolderOf(dir); !held || got != thisProcess() {
		t.Errorf("%+v %t", got, held)
	}
	theirs := strings.Replace(string(mustRead(t, filepath.Join(dir, "lock"))), bootID(), strings.Repeat("x", len(bootID())), 1)
	if _, err := h.lock.WriteAt([]byte(theirs), 0); err != nil {
		t.Fatal(err)
	}
	_, err = openHome(dir)
	host, _ := os.Hostname()
	if want := "the local cluster of " + dir + " runs on host " + host + ", as process "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a second one is told %v", err)
	}
	h.close()
	if _, held := HolderOf(dir); held {
		t.Error("nobody holds it any more")
	}
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// NFS refuses a lock that excludes others to a file that is open for reading only.
func TestTheLockOfGuestsIsOpenForWriting(t *testing.T) {
	dir := t.TempDir()
	for _, flag := range []int{os.O_CREATE, 0} {
		file, err := openGuests(dir, flag)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close() //nolint:errcheck // nothing was written
		if mode, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0); err != nil || mode&unix.O_ACCMODE != unix.O_RDWR {
			t.Errorf("its mode is %#o, %v", mode, err)
		}
	}
}
