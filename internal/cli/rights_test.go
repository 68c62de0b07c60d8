package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// person is a user with a role in the desk's namespace. command is trainyard as this user.
func (d desk) person(t *testing.T, name, rules string) (command func(args ...string) *exec.Cmd) {
	t.Helper()
	d.Apply(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: ` + name + `}
rules:
` + rules + `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ` + name + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ` + name + `}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + name + `}]
`)
	config, err := clientcmd.LoadFromFile(local.Shared(t).Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = name
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) *exec.Cmd {
		return &exec.Cmd{Path: "/proc/self/exe", Env: os.Environ(),
			Args: append([]string{trainyardName, args[0], "--namespace=" + d.Namespace, "--kubeconfig=" + file}, args[1:]...)}
	}
}

func TestMissingRightsAreReported(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, job("demo", 1, "echo hello; exec sleep 600"))
	d.expect(d.types("submit", "-f", file), 0)
	d.expect(d.types("wait", "demo", "--for=running"), 0)

	reader := d.person(t, "reader", `- {apiGroups: [kubeflow.org], resources: [pytorchjobs], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [pods, events], verbs: [get, list, watch]}`)
	d.expect(finish(d, reader("get")), 0, `^demo +PyTorchJob +Running`)
	d.expect(finish(d, reader("why", "demo")), 0, "^demo has been running for")
	d.refuses(finish(d, reader("why", "tfjob/demo")), 1, ".*tfjobs.* is forbidden")
	d.refuses(finish(d, reader("delete", "demo")), 1, "deleting job demo: .*cannot delete")

	looker := d.person(t, "looker", `- {apiGroups: [kubeflow.org], resources: [pytorchjobs], verbs: [get]}`)
	d.refuses(finish(d, looker("wait", "demo")), 1, "following job demo: .*cannot list")

	said := &transcript{}
	following := reader("logs", "-f", "demo")
	following.Stdout, following.Stderr = said, said
	if err := following.Start(); err != nil {
		t.Fatal(err)
	}
	d.Eventually("it is said once that the log is not shown", func() error {
		return said.has(`(?m)^worker-0 \| \(this log is not shown to you: .*cannot get resource "pods/log"`)
	})
	d.expect(d.types("delete", "demo"), 0)
	_ = following.Wait()
	if n := strings.Count(said.String(), "not shown to you"); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, said)
	}
}

// If the user may not delete jobs, Ctrl-C stops nothing: the job is followed to its end, and the exit code is the job's.
func TestCtrlCWithoutTheRightToDelete(t *testing.T) {
	t.Parallel()
	d, stage := newDesk(t), stage(t.TempDir())
	author := d.person(t, "author", `- {apiGroups: [kubeflow.org], resources: [pytorchjobs], verbs: [get, list, watch, create]}
- {apiGroups: [""], resources: [pods, pods/log, events], verbs: [get, list, watch]}`)
	said := &transcript{}
	cmd := author("run", "--image=none", "--name=kept", "--", "sh", "-c", "echo hello; "+stage.until("end"))
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.Eventually("it trains", func() error { return said.has(`(?m)^worker-0 \| hello$`) })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	d.Eventually("it is said that the job goes on", func() error { return said.has(`(?m)^» kept keeps running: deleting job kept: .*cannot delete`) })
	stage.give(t, "end")
	_ = cmd.Wait()
	d.expect(local.Outcome{Stdout: said.String(), Code: cmd.ProcessState.ExitCode()}, 0, "^kept succeeded after")
}
