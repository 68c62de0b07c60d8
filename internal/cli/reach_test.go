package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// If KUBECONFIG names the local cluster, as `up` recommends, a job runs in the directory where it was submitted.
func TestSubmitRunsAJobHere(t *testing.T) {
	t.Parallel()
	d, dir := newDesk(t), t.TempDir()
	write(t, filepath.Join(dir, "data.txt"), "found\n")
	write(t, filepath.Join(dir, "job.yaml"), job("here", 1, "cat data.txt"))
	types := func(args ...string) local.Outcome {
		return finish(d, &exec.Cmd{Path: "/proc/self/exe", Dir: dir, Env: append(os.Environ(), "KUBECONFIG="+local.Shared(t).Kubeconfig()),
			Args: append([]string{trainyardName, args[0], "--namespace=" + d.Namespace}, args[1:]...)})
	}
	d.expect(types("submit", "-f", "job.yaml"), 0, "Follow it with `trainyard logs here -f -n "+d.Namespace+"`")
	d.expect(types("wait", "here"), 0)
	d.expect(types("logs", "here"), 0, `^worker-0 \| found$`)
}

// --context names a context of ~/.kube/config, even if a local cluster was started before.
func TestKubectlOnANamedContext(t *testing.T) {
	t.Parallel()
	d, home := newDesk(t), t.TempDir()
	config, err := clientcmd.LoadFromFile(local.Shared(t).Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts["prod"] = config.Contexts[config.CurrentContext]
	config.CurrentContext = ""
	if err := clientcmd.WriteToFile(*config, filepath.Join(home, ".kube", "config")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, "kubeconfig"), "kind: Config\n")
	kubectl := local.CLI("kubectl", "--context=prod", "get", "namespace", d.Namespace)
	kubectl.Env = append(os.Environ(), "HOME="+home, "TRAINYARD_DATA_DIR="+home)
	d.expect(finish(d, kubectl), 0, "^"+d.Namespace+" +Active")
}

// It is a usage error if the API server refuses any object of a file.
func TestARefusedCompanion(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n---\n"+job("demo", 1, "true"))
	d.refuses(d.types("submit", "-f", file), 2, `.*ConfigMap Not_A_Name: .*a lowercase RFC 1123 subdomain`)
}
