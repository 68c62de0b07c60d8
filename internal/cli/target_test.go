package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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
		{"a local cluster ran once, and there is ~/.kube/config", false, false, true, true, home, "The cluster is context x of ~/.kube/config. The local one is not running.", home},
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
			if got := host(target{notice: func(line string) { notice = line }}); got != row.want || notice != row.notice {
				t.Errorf("it uses %q and says %q, want %q and %q", got, notice, row.want, row.notice)
			}
			if got := host(target{remote: true}); got != row.wantForInstall {
				t.Errorf("install uses %q, want %q", got, row.wantForInstall)
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
