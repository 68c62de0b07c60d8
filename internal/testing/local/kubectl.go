package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Outcome is how a command ended.
type Outcome struct {
	Stdout, Stderr string
	Code           int
}

// Command is kubectl with these arguments in the test's namespace, ready to start.
func (w *World) Command(args ...string) *exec.Cmd {
	cmd := CLI(append([]string{"kubectl", "--namespace=" + w.Namespace}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig)
	return cmd
}

// CLI is trainyard's command line with these arguments, ready to start.
func CLI(args ...string) *exec.Cmd {
	return &exec.Cmd{Path: "/proc/self/exe", Args: append([]string{cliName}, args...)}
}

// Try runs kubectl and returns how it ended.
func (w *World) Try(stdin string, args ...string) Outcome {
	w.Helper()
	cmd := w.Command(args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
	return Outcome{Stdout: out.String(), Stderr: errOut.String(), Code: cmd.ProcessState.ExitCode()}
}

// Kubectl runs kubectl, which must succeed, and returns what it prints.
func (w *World) Kubectl(args ...string) string {
	w.Helper()
	o := w.Try("", args...)
	if o.Code != 0 {
		w.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), o.Code, o.Stdout, o.Stderr)
	}
	return o.Stdout
}

// Apply applies a manifest, which must be accepted.
func (w *World) Apply(manifest string) {
	w.Helper()
	if o := w.Try(manifest, "apply", "-f", "-"); o.Code != 0 {
		w.Fatalf("kubectl apply: %s", o.Stderr)
	}
}

// Await waits until kubectl with these arguments succeeds and prints something that contains want.
func (w *World) Await(want string, args ...string) string {
	w.Helper()
	var out string
	w.Eventually(fmt.Sprintf("kubectl %s prints %q", strings.Join(args, " "), want), func() error {
		o := w.Try("", args...)
		if out = o.Stdout; o.Code == 0 && strings.Contains(out, want) {
			return nil
		}
		return fmt.Errorf("exit code %d, printed:\n%s%s", o.Code, o.Stdout, o.Stderr)
	})
	return out
}

// describe is what a person would look at when a test has failed.
func (w *World) describe() string {
	return w.Try("", "get", "pods,events", "-o", "wide").Stdout
}
