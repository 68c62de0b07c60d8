package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// nodeDesk is where a person types `trainyard node …` about a cluster of their own.
func nodeDesk(t *testing.T, kubeconfig string) (w *local.World, types func(args ...string) local.Outcome) {
	w = local.At(t, kubeconfig)
	return w, func(args ...string) local.Outcome {
		t.Helper()
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: append([]string{trainyardName, "node"}, args...), Env: append(os.Environ(), "KUBECONFIG="+kubeconfig)}
		return finish(desk{w}, cmd)
	}
}

func TestNodesAreListedAndFail(t *testing.T) {
	t.Parallel()
	up := local.StartUp(t, t.TempDir(), "--nodes", "2", "--node-labels", "rack=r1,r2").Ready()
	w, types := nodeDesk(t, up.Kubeconfig())
	pod := local.Pod("stays", "exec sleep 600")
	pod.Spec.NodeSelector = map[string]string{"rack": "r2"}
	w.Create(pod)
	w.UntilPhase("stays", corev1.PodRunning)

	for _, c := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"list", []string{"list"}, 0, []string{`^trainyard +Ready +- +0 +rack=r1$`, `^trainyard-2 +Ready +- +1 +rack=r2$`}},
		{"a node that is not there", []string{"kill", "trainyard-9"}, 1, []string{"there is no node trainyard-9: `trainyard node list` lists them"}},
		{"the first node", []string{"kill", "trainyard"}, 1, []string{"node trainyard: it holds the control plane: only break, restore and drain are possible"}},
		{"no name", []string{"kill"}, 2, []string{"node"}},
		{"drain", []string{"drain", "trainyard-2"}, 0, []string{"^trainyard-2 is drained: its pods are evicted, and no new ones come. `trainyard node restore trainyard-2` undoes it.$"}},
		{"list after the drain", []string{"list"}, 0, []string{`^trainyard-2 +Ready +drained +0 +rack=r2$`}},
		{"restore after the drain", []string{"restore", "trainyard-2"}, 0, []string{"^trainyard-2 is restored.$"}},
		{"freeze", []string{"freeze", "trainyard-2"}, 0, []string{"^trainyard-2 is frozen: its kubelet is silent"}},
		{"break what is frozen", []string{"break", "trainyard-2"}, 1, []string{"node trainyard-2: it is frozen: restore it first"}},
		{"list what is frozen", []string{"list"}, 0, []string{`^trainyard-2 +(Ready|Unknown) +frozen +0 +rack=r2$`}},
		{"kill", []string{"kill", "trainyard-2"}, 0, []string{"^trainyard-2 is killed"}},
		{"reboot what is killed", []string{"reboot", "trainyard-2"}, 0, []string{"^trainyard-2 has rebooted"}},
		{"remove", []string{"remove", "trainyard-2"}, 0, []string{"^trainyard-2 is removed.$"}},
		{"what is left is one node", []string{"break", "trainyard"}, 1, []string{"the local cluster has one node"}},
	} {
		w.Run(t, c.name, func(t *testing.T, w *local.World) { desk{w}.expect(types(c.args...), c.code, c.want...) })
	}
}

func TestNodesOfOtherClustersAreLeftAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	config := `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}]}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := local.CLI("node", "drain", "--kubeconfig", file, "trainyard-2")
	output, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(output), "https://127.0.0.1:1 is not a local cluster") {
		t.Errorf("exit code %d: %s", code, output)
	}
}

func TestNodeFlagsAreChecked(t *testing.T) {
	for args, want := range map[string]string{
		"--nodes 0":                "--nodes 0: use a number from 1 to 30",
		"--nodes 31":               "--nodes 31: use a number from 1 to 30",
		"--node-labels rack":       `node labels "rack": write KEY=VALUE, or KEY=VALUE,VALUE,… for one value per node`,
		"--node-labels rack=!wide": "node label rack=!wide: ",
	} {
		t.Run(args, func(t *testing.T) {
			cmd := local.CLI(append([]string{"up", "--data-dir", t.TempDir()}, strings.Fields(args)...)...)
			output, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(output), want) {
				t.Errorf("exit code %d: %s", code, output)
			}
		})
	}
}
