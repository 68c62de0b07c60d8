package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestUp(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		t.Run("says that it is ready, and stops on "+name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			kubeconfig := filepath.Join(dir, "config")
			write(t, kubeconfig, "apiVersion: v1\nkind: Config\ncurrent-context: prod\ncontexts: [{name: prod, context: {cluster: prod}}]\nclusters: [{name: prod, cluster: {server: \"https://prod\"}}]\n")
			up := local.StartUp(t, filepath.Join(dir, "data"), "--kubeconfig", kubeconfig, "--without-operator").Ready()
			want := regexp.MustCompile(`(?s)^(Starting the local cluster: [^\n]+ …\n){3}` +
				`The local cluster is ready \(\d+\.\d s\)\.\n\n(Note: [^\n]+\n)*` +
				`Use it from another terminal:\n    export KUBECONFIG=` + regexp.QuoteMeta(kubeconfig) +
				`\n    trainyard kubectl get pods --all-namespaces\n\nCtrl-C stops it; the next "trainyard up" continues where it stopped\.\n$`)
			if !want.MatchString(up.Output()) {
				t.Errorf("it says:\n%s", up.Output())
			}
			if info, err := os.Stat(up.Kubeconfig()); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the kubeconfig: %v, %v", info, err)
			}
			if got := currentContext(t, kubeconfig); got != "trainyard-data" {
				t.Errorf("the current context is %s", got)
			}
			if output, code := outcome(local.CLI("run", "--data-dir="+up.DataDir, "--", "true")); code != 1 ||
				output != "trainyard: the local cluster runs without the operator: stop it, and `trainyard up` starts it with one\n" {
				t.Errorf("a run ends with code %d and says %s", code, output)
			}
			w := local.At(t, kubeconfig)
			w.Create(local.Pod("runs", "exec sleep 600"))
			w.Await("Running", "get", "pod", "runs")
			all := local.Below(up.Pid())
			up.Signal(signal)
			if code := up.Wait(); code != 0 {
				t.Errorf("it ends with code %d", code)
			}
			if !regexp.MustCompile(`\nStopping the local cluster …\n(Waiting for [^\n]+\n)?Stopped\.\n$`).MatchString(up.Output()) {
				t.Errorf("at the end it says:\n%s", up.Output())
			}
			if got := currentContext(t, kubeconfig); got != "prod" {
				t.Errorf("after the stop the current context is %s", got)
			}
			for _, p := range all {
				if p.Alive() {
					t.Errorf("process %s is left", p)
				}
			}
		})
	}
}

func currentContext(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config.CurrentContext
}

// A run joins a cluster by its data directory, wherever else its kubeconfig is.
func TestRunJoinsAClusterWithAnotherKubeconfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	up := local.StartUp(t, filepath.Join(dir, "data"), "--kubeconfig", filepath.Join(dir, "elsewhere", "config")).Ready()
	output, code := outcome(local.CLI("run", "--data-dir="+up.DataDir, "--name=guest", "--", "echo", "hello"))
	if code != 0 || !strings.Contains(output, "worker-0 | hello\n") {
		t.Errorf("it ends with code %d and says:\n%s", code, output)
	}
	if output, code := outcome(local.CLI("get", "guest", "--kubeconfig", filepath.Join(dir, "elsewhere", "config"))); code != 0 {
		t.Errorf("get ends with code %d and says:\n%s", code, output)
	}
}

func TestUpRefusesAForeignContextOfItsName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	write(t, file, "apiVersion: v1\nkind: Config\ncontexts: [{name: trainyard-data, context: {cluster: prod}}]\n")
	output, code := outcome(local.CLI("up", "--data-dir="+filepath.Join(dir, "data"), "--kubeconfig="+file))
	if code != 2 || !strings.HasPrefix(output, "trainyard: "+file+" has a context trainyard-data of another cluster: ") {
		t.Errorf("it ends with code %d and says %s", code, output)
	}
}

func TestUpStopsWhileItStarts(t *testing.T) {
	t.Parallel()
	up := local.StartUp(t, t.TempDir()).Says("API server")
	up.Signal(syscall.SIGINT)
	if code := up.Wait(); code != 1 || !strings.HasSuffix(up.Output(), "trainyard: stopped before the local cluster was ready\n") {
		t.Errorf("it ends with code %d and says:\n%s", code, up.Output())
	}
}

func TestUpSaysWhenTheClusterIsLost(t *testing.T) {
	t.Parallel()
	up := local.StartUp(t, t.TempDir()).Ready()
	if err := syscall.Kill(local.Below(up.Pid())[0].Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := up.Wait(); code != 1 || !strings.HasSuffix(up.Output(), "trainyard: the local cluster ended by itself; cluster.log in the data directory says why\n") {
		t.Errorf("it ends with code %d and says:\n%s", code, up.Output())
	}
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"an unknown flag", "trainyard: unknown flag: --fast; `trainyard up --help` lists the flags\n", []string{"up", "--fast"}},
		{"a flag without its value", "trainyard: flag needs an argument: --data-dir; `trainyard up --help` lists the flags\n", []string{"up", "--data-dir"}},
		{"an argument too many", "trainyard: \"trainyard up\" takes no arguments, but got \"now\"\n", []string{"up", "now"}},
		{"an unknown verb", "trainyard: there is no command \"upp\": did you mean up?\n", []string{"upp"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := local.CLI(c.args...)
			cmd.Env = []string{"TRAINYARD_DATA_DIR=" + filepath.Join(dir, "data")}
			output, code := outcome(cmd)
			if code != 2 || output != c.want {
				t.Errorf("it ends with code %d and says %q", code, output)
			}
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("something was started: %v %v", left, err)
	}
}

// Without a kubeconfig, kubectl uses the local cluster in its default directory.
func TestKubectlFindsTheLocalCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kubectl := func(args ...string) (string, int) {
		cmd := local.CLI(append([]string{"kubectl"}, args...)...)
		cmd.Env = []string{"HOME=" + dir, "TRAINYARD_DATA_DIR=" + filepath.Join(dir, "data")}
		return outcome(cmd)
	}
	up := local.StartUp(t, filepath.Join(dir, "data")).Ready()
	if output, code := kubectl("get", "nodes", "--no-headers"); code != 0 || !strings.HasPrefix(output, "trainyard   Ready") {
		t.Errorf("it ends with code %d and says %s", code, output)
	}
	if output, code := kubectl("get", "pod", "nobody"); code != 1 || output != "Error from server (NotFound): pods \"nobody\" not found\n" {
		t.Errorf("it ends with code %d and says %s", code, output)
	}
	up.Signal(syscall.SIGTERM)
	up.Wait()
	if output, code := kubectl("get", "nodes"); code != 1 || output != "trainyard: the local cluster is not running: `trainyard up` starts it\n" {
		t.Errorf("it ends with code %d and says %s", code, output)
	}
}

// If no cluster is configured, kubectl says so once, and commands that need none still work.
func TestKubectlWithoutACluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"get", "nodes"}, 2, "^trainyard: no cluster is configured: `trainyard up` starts one on this machine, --kubeconfig and --context name another\n$"},
		{[]string{"apply", "-k", "../../config/runtimes"}, 2, "^trainyard: no cluster is configured: .*\n$"},
		{[]string{"version", "--client"}, 0, "^Client Version"},
		{[]string{"create", "namespace", "here", "--dry-run=client", "-o", "name"}, 0, "^namespace/here\n$"},
	} {
		cmd := local.CLI(append([]string{"kubectl"}, c.args...)...)
		cmd.Env = []string{"HOME=" + dir}
		if output, code := outcome(cmd); code != c.code || !regexp.MustCompile(c.says).MatchString(output) {
			t.Errorf("%v ends with code %d and says %s", c.args, code, output)
		}
	}
}

func TestVersion(t *testing.T) {
	output, code := outcome(local.CLI("version"))
	// A test binary does not have the versions of its modules.
	if code != 0 || !regexp.MustCompile(`^trainyard \S+ \(Kubernetes (v1\.\d+\.\d+|unknown), go\S+, linux/\w+\)\n$`).MatchString(output) {
		t.Errorf("it ends with code %d and says %q", code, output)
	}
}

// outcome runs a command and returns its output and exit code.
func outcome(cmd *exec.Cmd) (string, int) {
	output, _ := cmd.CombinedOutput()
	return string(output), cmd.ProcessState.ExitCode()
}
