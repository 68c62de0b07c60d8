package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trainyard/trainyard/internal/kubeconfig"
)

func TestWhichClusterAVerbUses(t *testing.T) {
	const local, home, env = "https://127.0.0.1:1", "https://127.0.0.1:2", "https://127.0.0.1:3"
	for _, row := range []struct {
		sentence                     string
		env, running, stopped, home  bool
		want, notice, wantForInstall string
	}{
		{sentence: "nothing is configured"},
		{"only ~/.kube/config", false, false, false, true, home, "", home},
		{"a local cluster runs", false, true, false, false, local, "", ""},
		{"a local cluster runs, and there is ~/.kube/config", false, true, false, true, local, "The cluster is the local one, because it is running. --context x selects the one of ~/.kube/config.", home},
		{"a local cluster ran once, and there is ~/.kube/config", false, false, true, true, home, "The cluster is context x of ~/.kube/config. The local one is not running; --data-dir DIR selects it.", home},
		{"a local cluster ran once", false, false, true, false, local, "", ""},
		{"KUBECONFIG is set", true, false, true, true, env, "", env},
		{"KUBECONFIG is set, and a local cluster runs", true, true, false, true, env, "The cluster is context x of KUBECONFIG. The local one is running, too: unset KUBECONFIG to use it.", env},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			hideClusters(t)
			dir := os.Getenv("TRAINYARD_DATA_DIR")
			if row.running || row.stopped {
				writeKubeconfig(t, filepath.Join(dir, "kubeconfig"), local)
			}
			if row.running {
				holdLock(t, dir)
			}
			if row.home {
				writeKubeconfig(t, clientcmd.RecommendedHomeFile, home)
			}
			if row.env {
				file := filepath.Join(t.TempDir(), "kubeconfig")
				writeKubeconfig(t, file, env)
				t.Setenv("KUBECONFIG", file)
			}
			notice := ""
			if got := host(target{notice: func(line string) { notice = strings.ReplaceAll(line, dir, "DIR") }}); got != row.want || notice != row.notice {
				t.Errorf("it uses %q and says %q, want %q and %q", got, notice, row.want, row.notice)
			}
			if got := host(target{remote: true}); got != row.wantForInstall {
				t.Errorf("install uses %q, want %q", got, row.wantForInstall)
			}
		})
	}
}

// `up --kubeconfig ~/.kube/config` adds the local cluster to the file. Whether it runs or not, a verb without flags then uses it.
func TestTheLocalClusterOfTheHomeFile(t *testing.T) {
	const ours, theirs = "https://127.0.0.1:1", "https://127.0.0.1:2"
	for _, row := range []struct {
		sentence, server string
		running          bool
		want, notice     string
	}{
		{"it is this one, which runs", ours, true, ours, ""},
		{"it is this one, which is stopped", ours, false, ours, ""},
		{"it is another one, and this one runs", theirs, true, ours, "The cluster is the local one, because it is running. --context x selects the one of ~/.kube/config."},
		{"it is another one, and this one is stopped", theirs, false, theirs, "The cluster is context x of ~/.kube/config. The local one is not running; --data-dir DIR selects it."},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			hideClusters(t)
			dir := os.Getenv("TRAINYARD_DATA_DIR")
			writeLocalKubeconfig(t, filepath.Join(dir, "kubeconfig"), ours)
			writeLocalKubeconfig(t, clientcmd.RecommendedHomeFile, row.server)
			if row.running {
				holdLock(t, dir)
			}
			notice := ""
			if got := host(target{notice: func(line string) { notice = strings.ReplaceAll(line, dir, "DIR") }}); got != row.want || notice != row.notice {
				t.Errorf("it uses %q and says %q, want %q and %q", got, notice, row.want, row.notice)
			}
		})
	}
}

// When a run has ended, so has its cluster. What its hints name must be its data directory, not the cluster of a kubeconfig.
func TestTheHintsOfARunNameItsCluster(t *testing.T) {
	const ours, theirs = "https://127.0.0.1:1", "https://127.0.0.1:2"
	for _, row := range []struct {
		sentence string
		happens  func(t *testing.T, dir string)
		named    bool
	}{
		{"no other cluster is configured", func(*testing.T, string) {}, false},
		{"~/.kube/config has the local one", func(t *testing.T, _ string) { writeLocalKubeconfig(t, clientcmd.RecommendedHomeFile, ours) }, false},
		{"~/.kube/config has another", func(t *testing.T, _ string) { writeKubeconfig(t, clientcmd.RecommendedHomeFile, theirs) }, true},
		{"~/.kube/config has another local one", func(t *testing.T, _ string) { writeLocalKubeconfig(t, clientcmd.RecommendedHomeFile, theirs) }, true},
		{"KUBECONFIG is the local one's", func(t *testing.T, dir string) { t.Setenv("KUBECONFIG", filepath.Join(dir, "kubeconfig")) }, false},
		{"KUBECONFIG is not there yet", func(t *testing.T, dir string) { t.Setenv("KUBECONFIG", filepath.Join(dir, "none")) }, true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			hideClusters(t)
			dir := os.Getenv("TRAINYARD_DATA_DIR")
			writeLocalKubeconfig(t, filepath.Join(dir, "kubeconfig"), ours)
			row.happens(t, dir)
			r := running{screen: newScreen(io.Discard, io.Discard)}
			if err := r.chooseDir(); err != nil || r.dir != dir || (r.dataDir == dir) != row.named {
				t.Errorf("the directory is %q, and hints name %q (%v)", r.dir, r.dataDir, err)
			}
		})
	}
}

// holdLock makes a data directory look like that of a running cluster.
func holdLock(t *testing.T, dir string) {
	t.Helper()
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

func TestTheClusterOfADataDirectory(t *testing.T) {
	hideClusters(t)
	t.Setenv("KUBECONFIG", "/elsewhere")
	dir := t.TempDir()
	if _, err := (&target{dataDir: dir}).config(); err == nil || !strings.Contains(err.Error(), "there is no local cluster in "+dir) {
		t.Errorf("of an empty directory: %v", err)
	}
	writeKubeconfig(t, filepath.Join(dir, "kubeconfig"), "https://127.0.0.1:4")
	if got := host(target{dataDir: dir}); got != "https://127.0.0.1:4" {
		t.Errorf("it uses %q", got)
	}
	if _, err := (&target{dataDir: dir, context: "x"}).config(); err == nil {
		t.Error("two clusters are named, and that is not refused")
	}
}

// host is the cluster of a target, empty if there is none.
func host(t target) string {
	config, err := t.config()
	if err != nil {
		return ""
	}
	return config.Host
}

// writeLocalKubeconfig writes the kubeconfig of a local cluster.
func writeLocalKubeconfig(t *testing.T, file, server string) {
	t.Helper()
	writeKubeconfig(t, file, server)
	edit(t, file, func(config *clientcmdapi.Config) { config.Clusters["c"].Extensions = kubeconfig.LocalMark() })
}

func writeKubeconfig(t *testing.T, file, server string) {
	t.Helper()
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c"}},
		CurrentContext: "x",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
}
