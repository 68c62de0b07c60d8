package procrun

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// smallDisk mounts a file system in memory, of a size, in the world's directory.
func smallDisk(w *world, size string) string {
	w.Helper()
	dir := filepath.Join(w.dir, "disk-"+newID()[:6])
	w.must(os.Mkdir(dir, 0o755))
	w.must(unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size))
	w.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// Each row mounts two volumes, V (with a file f that holds "volume") and W, on a machine directory M that has a
// directory M/have with a file M/have/mine and a link M/link to it, and runs a script in which these letters are
// replaced by the paths.
func TestMounts(t *testing.T) {
	const nothing = ""
	for name, tt := range map[string]struct {
		at       string // where V is mounted
		also     string // where W is mounted
		file     bool   // V's file is mounted, not V
		readOnly bool
		script   string
		want     string
	}{
		"on a directory that exists":                     {at: "M/have", script: "cat M/have/f; ls M/have", want: "volume f"},
		"on a directory that is missing":                 {at: "M/new", script: "cat M/new/f; ls M", want: "volume have link new"},
		"deep below a missing directory":                 {at: "M/a/b/c", script: "cat M/a/b/c/f; ls M", want: "volume a have link"},
		"at the root":                                    {at: "/volume-of-test", script: "cat /volume-of-test/f; cat M/have/mine", want: "volume mine"},
		"deep below the root":                            {at: "/volume-of/test/x", script: "cat /volume-of/test/x/f", want: "volume"},
		"through a link":                                 {at: "M/link", script: "cat M/have/f M/link/f", want: "volume volume"},
		"below a link":                                   {at: "M/link/sub", script: "cat M/have/sub/f M/have/mine", want: "volume mine"},
		"through a link of the machine":                  {at: "/var/run/secrets/x", script: "cat /var/run/secrets/x/f /run/secrets/x/f", want: "volume volume"},
		"a file on a file":                               {at: "M/have/mine", file: true, script: "cat M/have/mine", want: "volume"},
		"a file where there is none":                     {at: "M/have/other", file: true, script: "cat M/have/other M/have/mine", want: "volume mine"},
		"a file in a missing directory":                  {at: "M/x/y", file: true, script: "cat M/x/y", want: "volume"},
		"a file at the root":                             {at: "/file-of-test", file: true, script: "cat /file-of-test", want: "volume"},
		"a device-like file in /dev":                     {at: "/dev/termination-log", file: true, script: "cat /dev/termination-log; echo x >/dev/null; head -c1 /dev/zero | wc -c", want: "volume 1"},
		"a volume is writable":                           {at: "M/new", script: "echo w > M/new/w; cat M/new/w", want: "w"},
		"a read-only volume is not":                      {at: "M/new", readOnly: true, script: "cat M/new/f; echo w 2>/dev/null > M/new/w || echo refused", want: "volume refused"},
		"a read-only file":                               {at: "M/have/mine", file: true, readOnly: true, script: "echo w 2>/dev/null > M/have/mine || echo refused", want: "refused"},
		"one volume in another":                          {at: "M/new", also: "M/new/in", script: "cat M/new/f; echo w > M/new/in/w; cat M/new/in/w; ls M/new", want: "volume w f in"},
		"one volume in another that is read-only":        {at: "M/new", readOnly: true, also: "M/new/in", script: "cat M/new/f; echo w > M/new/in/w; cat M/new/in/w", want: "volume w"},
		"two volumes in one missing directory":           {at: "M/new/a", also: "M/new/b", script: "cat M/new/a/f; ls M/new", want: "volume a b"},
		"the machine's files next to it are the real":    {at: "M/have/sub", script: "echo changed > M/have/mine", want: nothing},
		"a new file next to it is refused, not lost":     {at: "M/have/sub", script: "echo x 2>/dev/null > M/have/new || echo refused", want: "refused"},
		"a new file in the mirrored root is refused too": {at: "/volume-of-test", script: "echo x 2>/dev/null > /new-of-test || echo refused", want: "refused"},
		"a new file elsewhere is a real file":            {at: "M/new", script: "echo real > M/have/real", want: nothing},
		"covering the directory of the volumes":          {at: "D", also: "D/in", script: "cat D/f; echo w > D/in/w; cat D/in/w", want: "volume w"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			machine, volume, second := filepath.Join(w.dir, "machine"), filepath.Join(w.dir, "v"), filepath.Join(w.dir, "w")
			w.file("machine/have/mine", "mine\n")
			w.file("v/f", "volume\n")
			w.must(os.Mkdir(second, 0o755))
			w.must(os.Symlink("have", filepath.Join(machine, "link")))
			in := func(s string) string {
				return strings.NewReplacer("M/", machine+"/", "M;", machine+";", "D/", w.dir+"/").Replace(s + " ")
			}
			path := func(s string) string { return strings.TrimSuffix(strings.TrimSpace(in(s+"/")), "/") }
			script := strings.ReplaceAll(in(strings.ReplaceAll(tt.script+" ", "ls M ", "ls "+machine+" ")), "M ", machine+" ")
			got, code := w.run(w.pod("mounts"), script, func(c *v1.ContainerConfig) {
				source := volume
				if tt.file {
					source = filepath.Join(volume, "f")
				}
				c.Mounts = []*v1.Mount{{HostPath: source, ContainerPath: path(tt.at), Readonly: tt.readOnly}}
				if tt.also != "" {
					c.Mounts = append(c.Mounts, &v1.Mount{HostPath: second, ContainerPath: path(tt.also)})
				}
			})
			if words := strings.Join(strings.Fields(got), " "); code != 0 || words != tt.want {
				t.Errorf("exit code %d, output %q, want %q", code, words, tt.want)
			}
			checkMachine(t, w.dir, name)
		})
	}
}

// checkMachine looks for what a container must not have left on the machine, and for what it must have.
func checkMachine(t *testing.T, dir, name string) {
	t.Helper()
	mine, _ := os.ReadFile(filepath.Join(dir, "machine/have/mine"))
	if changed := name == "the machine's files next to it are the real"; (string(mine) == "changed\n") != changed {
		t.Errorf("the machine's file holds %q", mine)
	}
	_, err := os.Stat(filepath.Join(dir, "machine/have/real"))
	if written := name == "a new file elsewhere is a real file"; written != (err == nil) {
		t.Errorf("the new file: %v", err)
	}
	for _, path := range []string{"new", "a", "x", "have/sub", "have/other", "have/new"} {
		if _, err := os.Lstat(filepath.Join(dir, "machine", path)); err == nil {
			t.Errorf("%s was left on the machine", path)
		}
	}
	for _, path := range []string{"/volume-of-test", "/volume-of", "/file-of-test", "/new-of-test", "/dev/termination-log"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was left on the machine", path)
		}
	}
}

func TestReadOnlyRootFilesystem(t *testing.T) {
	w := newWorld(t)
	volume := t.TempDir()
	out, _ := w.run(w.pod("ro"), `
		echo x 2>/dev/null > `+w.dir+`/file || echo machine refused
		echo x 2>/dev/null > /run/file || echo run refused
		echo x > /volume/file && echo volume written
		echo x > /dev/null && echo device written
		echo x > /dev/shm/file && echo shared memory written
		echo 100 > /proc/self/oom_score_adj && echo proc written`,
		func(c *v1.ContainerConfig) {
			c.Linux = &v1.LinuxContainerConfig{SecurityContext: &v1.LinuxContainerSecurityContext{ReadonlyRootfs: true}}
			c.Mounts = []*v1.Mount{{HostPath: volume, ContainerPath: "/volume"}, {HostPath: volume, ContainerPath: "/var/run/secrets/x"}}
		})
	want := "machine refused\nrun refused\nvolume written\ndevice written\nshared memory written\nproc written\n"
	if out != want {
		t.Errorf("got:\n%s\nwant:\n%s", out, want)
	}
}

func TestSharedMemoryIsThePods(t *testing.T) {
	w := newWorld(t)
	one, two := w.pod("one"), w.pod("two")
	w.run(one, "echo hello > /dev/shm/greeting")
	if out, _ := w.run(one, "cat /dev/shm/greeting"); out != "hello\n" {
		t.Errorf("another container of the pod sees %q", out)
	}
	if out, _ := w.run(two, "ls /dev/shm"); out != "" {
		t.Errorf("another pod sees %q", out)
	}
}

func TestNamesOfAPod(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("trainer-0", func(c *v1.PodSandboxConfig) {
		c.DnsConfig = &v1.DNSConfig{Servers: []string{"10.96.0.10"}, Searches: []string{"a.b", "b"}, Options: []string{"ndots:5"}}
	})
	out, _ := w.run(pod, "hostname; echo $HOSTNAME; cat /etc/hostname /etc/resolv.conf")
	want := "trainer-0\ntrainer-0\ntrainer-0\nsearch a.b b\nnameserver 10.96.0.10\noptions ndots:5\n"
	if out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
