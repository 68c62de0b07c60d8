package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// A script writes $$$$ where the shell is to see $$: Kubernetes expands $(NAME) in commands and takes $$ for a plain $.
func TestExitCodesAndSignals(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	cases := []struct {
		what, script string
		code         int32
		reason       string
	}{
		{"success", `true`, 0, "Completed"},
		{"failure", `exit 1`, 1, "Error"},
		{"an exit code of its own", `exit 42`, 42, "Error"},
		{"the highest exit code", `exit 255`, 255, "Error"},
		{"the shell's command not found", `no-such-command`, 127, "Error"},
		{"an exit code that looks like a signal", `exit 137`, 137, "Error"},
		{"SIGINT", `kill -INT $$$$; sleep 10`, 130, "Error"},
		{"SIGABRT", `kill -ABRT $$$$; sleep 10`, 134, "Error"},
		{"SIGKILL", `kill -KILL $$$$; sleep 10`, 137, "Error"},
		{"SIGUSR1", `kill -USR1 $$$$; sleep 10`, 138, "Error"},
		{"SIGSEGV", `kill -SEGV $$$$; sleep 10`, 139, "Error"},
		{"SIGPIPE", `kill -PIPE $$$$; sleep 10`, 141, "Error"},
		{"SIGTERM", `kill -TERM $$$$; sleep 10`, 143, "Error"},
		{"a real-time signal", `kill -40 $$$$; sleep 10`, 168, "Error"},
		{"SIGTERM to a grandchild that is then reported by its parent", `sh -c 'kill -TERM $$$$; sleep 10'; exit $?`, 143, "Error"},
	}
	for i, c := range cases {
		w.Create(local.Pod(fmt.Sprintf("ends-%d", i), c.script))
	}
	for i, c := range cases {
		w.Run(t, c.what, func(t *testing.T, w *local.World) {
			pod := w.Until(fmt.Sprintf("ends-%d", i), "ended", func(p *corev1.Pod) bool {
				return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
			})
			end := local.Container(pod, "main").State.Terminated
			if end == nil || end.ExitCode != c.code || end.Reason != c.reason {
				t.Errorf("ended as %+v, want exit code %d and reason %s", end, c.code, c.reason)
			}
			if want := map[bool]corev1.PodPhase{true: corev1.PodSucceeded, false: corev1.PodFailed}[c.code == 0]; pod.Status.Phase != want {
				t.Errorf("the pod is %s, want %s", pod.Status.Phase, want)
			}
		})
	}
}

func TestTerminationMessage(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	cases := []struct {
		what, script string
		path         string
		policy       corev1.TerminationMessagePolicy
		want         string
	}{
		{"is what the container wrote to its file", `echo found the answer > /dev/termination-log; exit 1`, "", "", "found the answer\n"},
		{"is there after success too", `echo 42 > /dev/termination-log`, "", "", "42\n"},
		{"has a path of the pod's choice", `echo here > /tmp/no/such/folder/message; exit 1`, "/tmp/no/such/folder/message", "", "here\n"},
		{"is empty where nothing was written", `echo in the log; exit 1`, "", "", ""},
		{"is the end of the log after a failure, if asked for", `echo first; echo last words; exit 1`, "", corev1.TerminationMessageFallbackToLogsOnError, "first\nlast words\n"},
		{"is not the log after success", `echo fine`, "", corev1.TerminationMessageFallbackToLogsOnError, ""},
		{"is the file rather than the log", `echo log; echo file > /dev/termination-log; exit 1`, "", corev1.TerminationMessageFallbackToLogsOnError, "file\n"},
		{"is cut to 4096 bytes", `head -c 10000 /dev/zero | tr '\0' x > /dev/termination-log`, "", "", strings.Repeat("x", 4096)},
	}
	for i, c := range cases {
		pod := local.Pod(fmt.Sprintf("says-%d", i), c.script)
		pod.Spec.Containers[0].TerminationMessagePath, pod.Spec.Containers[0].TerminationMessagePolicy = c.path, c.policy
		w.Create(pod)
	}
	for i, c := range cases {
		w.Run(t, c.what, func(t *testing.T, w *local.World) {
			pod := w.Until(fmt.Sprintf("says-%d", i), "ended", func(p *corev1.Pod) bool {
				return local.Container(p, "main").State.Terminated != nil
			})
			if got := local.Container(pod, "main").State.Terminated.Message; got != c.want {
				t.Errorf("the message is %q, want %q", got, c.want)
			}
		})
	}
}

func TestContainersThatCannotStart(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	file := t.TempDir() + "/not-executable"
	write(t, file, "#!/bin/sh\n")
	cases := []struct {
		what     string
		change   func(*corev1.Container)
		status   string // as kubectl get prints it
		sentence string
	}{
		{"no command: images are ignored, which is said",
			func(c *corev1.Container) { c.Command = nil },
			"CreateContainerError", "the local cluster ignores images, so the container needs a `command`"},
		{"arguments alone are no command",
			func(c *corev1.Container) { c.Command, c.Args = nil, []string{"train.py"} },
			"CreateContainerError", "the local cluster ignores images, so the container needs a `command`"},
		{"a command that is not in PATH",
			func(c *corev1.Container) { c.Command = []string{"no-such-command"} },
			"StartError", `exec: "no-such-command": not found in PATH`},
		{"a command whose path does not exist",
			func(c *corev1.Container) { c.Command = []string{"/no/such/command"} },
			"StartError", `exec: "/no/such/command": no such file or directory`},
		{"a command that is not executable",
			func(c *corev1.Container) { c.Command = []string{file} },
			"StartError", "permission denied"},
		{"a working directory that does not exist",
			func(c *corev1.Container) { c.WorkingDir = "/no/such/folder" },
			"StartError", `working directory "/no/such/folder" does not exist`},
	}
	for i, c := range cases {
		pod := local.Pod(fmt.Sprintf("stuck-%d", i), `true`)
		c.change(&pod.Spec.Containers[0])
		w.Create(pod)
	}
	for i, c := range cases {
		w.Run(t, c.what, func(t *testing.T, w *local.World) {
			name := fmt.Sprintf("stuck-%d", i)
			w.Await(c.status, "get", "pod", name)
			text := w.Await(c.sentence, "describe", "pod", name)
			if strings.Contains(text, " 1970 ") {
				t.Errorf("there is a time that never was in\n%s", text)
			}
		})
	}
}
