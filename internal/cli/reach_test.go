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
	d.expect(types("submit", "-f", "job.yaml"), 0, "Follow it with `trainyard attach here -n "+d.Namespace+"`")
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

// The cluster of a verb is the local one while it runs, and is named where a person may expect another.
func TestTheClusterIsNamed(t *testing.T) {
	t.Parallel()
	d, home := desk{&local.World{TB: t}}, t.TempDir()
	dir := filepath.Join(home, "data")
	if err := os.Mkdir(filepath.Join(home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, ".kube", "config"), "apiVersion: v1\nkind: Config\ncurrent-context: prod\ncontexts: [{name: prod, context: {cluster: prod}}]\nclusters: [{name: prod, cluster: {server: \"http://127.0.0.1:1\"}}]\n")
	types := func(variable string, args ...string) local.Outcome {
		return finish(d, &exec.Cmd{Path: "/proc/self/exe", Dir: home, Args: append([]string{trainyardName}, args...),
			Env: []string{"HOME=" + home, "TRAINYARD_DATA_DIR=" + dir, "PATH=" + os.Getenv("PATH"), variable}})
	}
	write(t, filepath.Join(home, "job.yaml"), job("demo", 1, "while true; do sleep 0.1; done"))
	up := local.StartUp(t, dir).Ready()
	const here = `\AThe cluster is the local one, because it is running\. --context prod selects the one of ~/\.kube/config\.\n`
	d.expect(types("", "get"), 0, here+`There are no jobs in namespace default\.`)
	d.expect(types("", "kubectl", "get", "nodes"), 0, "^The cluster is the local one", "^trainyard +Ready")
	prod := "KUBECONFIG=" + filepath.Join(home, ".kube", "config")
	d.expect(types(prod, "submit", "-f", "job.yaml", "--data-dir", dir), 0, "Follow it with `trainyard attach demo --data-dir "+dir+"`")
	d.expect(types(prod, "run", "-f", "job.yaml"), 1, `^The job runs on the local cluster\. --context prod selects the cluster of KUBECONFIG\.$`,
		"follow it with `trainyard attach demo --data-dir "+dir+"`, or delete it with `trainyard delete demo --data-dir "+dir+"`")
	d.expect(types(prod, "get"), 1, `\AThe cluster is context prod of KUBECONFIG\. The local one is running, too: unset KUBECONFIG to use it\.\n`, "the cluster does not answer")
	up.Signal(syscall.SIGTERM)
	up.Wait()
	d.expect(types("", "get"), 1, `\AThe cluster is context prod of ~/\.kube/config\. The local one is not running; --data-dir `+dir+` selects it\.\n`, "the cluster does not answer")
	failed := types("", "run", "--name=fails", "--", "sh", "-c", "echo its log; exit 1")
	d.expect(failed, 1, `^» demo had not ended when the local cluster stopped: `)
	hints := regexp.MustCompile("`trainyard (why|logs) (fails[^`]*)` (says|shows)").FindAllStringSubmatch(failed.Stderr, -1)
	if len(hints) != 2 {
		t.Fatalf("it says %s", failed.Stderr)
	}
	for _, hint := range hints { // typed as printed
		d.expect(types("", append([]string{hint[1]}, strings.Fields(hint[2])...)...), 0, `its log$`)
	}
	d.refuses(types("", "suspend", "demo", "--data-dir", dir), 1, "the local cluster is not running: `trainyard up` starts it$")
	d.expect(types("", "get", "--data-dir", dir), 0, `^The local cluster is not running\. This is what was recorded\.$`, `^demo +PyTorchJob`)
}
