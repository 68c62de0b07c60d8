package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// desktop is a person's kubeconfig with the current context prod, behind a link and with an unusual mode, and the kubeconfig of a
// local cluster.
func desktop(t *testing.T) (shared sharedKubeconfig, source, real string) {
	t.Helper()
	dir := t.TempDir()
	real, source = filepath.Join(dir, "dotfiles"), filepath.Join(dir, "source")
	writeKubeconfig(t, real, "https://prod")
	edit(t, real, func(config *clientcmdapi.Config) {
		config.Contexts["prod"], config.Contexts["test"], config.CurrentContext = config.Contexts["x"], config.Contexts["x"], "prod"
		config.Clusters["c"].CertificateAuthority = "ca.crt" // relative to the file
	})
	if err := os.Chmod(real, 0o640); err != nil {
		t.Fatal(err)
	}
	writeLocalKubeconfig(t, source, "https://127.0.0.1:1")
	edit(t, source, func(config *clientcmdapi.Config) {
		config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "secret"}
		config.Contexts["x"].AuthInfo = "u"
	})
	link := filepath.Join(dir, "config")
	if err := os.Symlink("dotfiles", link); err != nil {
		t.Fatal(err)
	}
	return sharedKubeconfig{link, "trainyard", dir}, source, real
}

func edit(t *testing.T, file string, change func(*clientcmdapi.Config)) {
	t.Helper()
	config := load(t, file)
	change(config)
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, file string) *clientcmdapi.Config {
	t.Helper()
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMergingKeepsWhatAPersonHas(t *testing.T) {
	shared, source, real := desktop(t)
	inode := func() uint64 {
		info, err := os.Stat(real)
		must(t, err)
		if info.Mode().Perm() != 0o640 {
			t.Errorf("its mode is %v", info.Mode())
		}
		return info.Sys().(*syscall.Stat_t).Ino
	}
	before := inode()
	must(t, shared.check())
	must(t, shared.merge(source))
	merged := load(t, real)
	if got := merged.CurrentContext; got != "trainyard" {
		t.Errorf("the current context is %q", got)
	}
	if ours := merged.Contexts["trainyard"]; merged.Clusters[ours.Cluster].Server != "https://127.0.0.1:1" || merged.AuthInfos[ours.AuthInfo].Token != "secret" {
		t.Errorf("our context is %v", ours)
	}
	if prod := merged.Clusters[merged.Contexts["prod"].Cluster]; prod.Server != "https://prod" || prod.CertificateAuthority != "ca.crt" || merged.Contexts["test"] == nil {
		t.Errorf("the contexts of before are %v, with cluster %v", merged.Contexts, prod)
	}
	if info, err := os.Lstat(shared.file); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	must(t, shared.leave())
	if left := load(t, real); left.CurrentContext != "prod" || left.Contexts["trainyard"] == nil {
		t.Errorf("after the stop the current context is %q of %v", left.CurrentContext, left.Contexts)
	}
	if inode() != before {
		t.Error("the file was replaced")
	}
	if locks, err := filepath.Glob(filepath.Join(filepath.Dir(real), "*.lock")); err != nil || len(locks) > 0 {
		t.Errorf("left: %v, %v", locks, err)
	}
}

func TestTheCurrentContextAfterAStop(t *testing.T) {
	for _, row := range []struct {
		sentence string
		happens  func(t *testing.T, shared sharedKubeconfig, source string)
		want     string
	}{
		{"the person has chosen another meanwhile: it stays", func(t *testing.T, s sharedKubeconfig, _ string) {
			edit(t, s.file, func(config *clientcmdapi.Config) { config.CurrentContext = "test" })
		}, "test"},
		{"an up was killed: the next one still puts the first context back", func(t *testing.T, s sharedKubeconfig, source string) {
			must(t, s.merge(source))
		}, "prod"},
		{"another local cluster started later and stopped first", func(t *testing.T, s sharedKubeconfig, source string) {
			s.name = "trainyard-b"
			must(t, s.merge(source))
			must(t, s.leave())
			if got := load(t, s.file).CurrentContext; got != "trainyard" {
				t.Errorf("between the two stops it is %q", got)
			}
		}, "prod"},
		{"another local cluster started earlier and stopped first", func(t *testing.T, s sharedKubeconfig, source string) {
			later := sharedKubeconfig{s.file, "trainyard-b", s.dataDir}
			must(t, later.merge(source))
			must(t, s.leave())
			must(t, later.leave())
		}, "prod"},
		{"an up was killed, and starts again after another local cluster", func(t *testing.T, s sharedKubeconfig, source string) {
			later := sharedKubeconfig{s.file, "trainyard-b", s.dataDir}
			must(t, later.merge(source))
			must(t, s.merge(source))
			must(t, later.leave())
		}, "prod"},
		{"the previous context was deleted: ours stays", func(t *testing.T, s sharedKubeconfig, _ string) {
			edit(t, s.file, func(config *clientcmdapi.Config) { delete(config.Contexts, "prod") })
		}, "trainyard"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			shared, source, real := desktop(t)
			must(t, shared.merge(source))
			row.happens(t, shared, source)
			must(t, shared.leave())
			if got := load(t, real).CurrentContext; got != row.want {
				t.Errorf("it is %q, want %q", got, row.want)
			}
		})
	}
}

func TestAKubeconfigThatCannotBeMerged(t *testing.T) {
	shared, _, real := desktop(t)
	shared.name = "prod"
	if err := shared.check(); err == nil || !strings.Contains(err.Error(), "has a context prod of another cluster") {
		t.Errorf("a foreign context of our name: %v", err)
	}
	must(t, os.WriteFile(real, []byte("- not a kubeconfig\n"), 0o600))
	if err := shared.check(); err == nil {
		t.Error("a file that is not a kubeconfig is accepted")
	}
}

// Two data directories may have the same name, and so the same context.
func TestTheContextOfARunningClusterIsNotReplaced(t *testing.T) {
	first, source, real := desktop(t)
	first.dataDir = t.TempDir()
	must(t, first.merge(source))
	second := sharedKubeconfig{first.file, first.name, t.TempDir()}
	must(t, second.check()) // the first does not run
	holdLock(t, first.dataDir)
	must(t, first.check())
	want := "has a context trainyard of the local cluster of " + first.dataDir + ", which is running: "
	for what, err := range map[string]error{"before the start": second.check(), "when the first was faster": second.merge(source)} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := extensionOf(load(t, real), first.name, dataDirOfContext); got != first.dataDir {
		t.Errorf("the context is of %s", got)
	}
}

func TestAMissingKubeconfigIsCreated(t *testing.T) {
	_, source, _ := desktop(t)
	shared := sharedKubeconfig{filepath.Join(t.TempDir(), "new", "config"), "trainyard", t.TempDir()}
	must(t, shared.check())
	must(t, shared.merge(source))
	must(t, shared.leave())
	info, err := os.Stat(shared.file)
	if err != nil || info.Mode().Perm() != 0o600 || load(t, shared.file).CurrentContext != "trainyard" {
		t.Errorf("it is %v, %v", info, err)
	}
}

// kubectl holds the same lock while it edits the file.
func TestMergingWaitsForOthers(t *testing.T) {
	shared, source, real := desktop(t)
	unlock, err := lockKubeconfig(real)
	must(t, err)
	merged := make(chan error, 1)
	go func() { merged <- shared.merge(source) }()
	select {
	case err := <-merged:
		t.Errorf("it does not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	unlock()
	must(t, <-merged)
}
