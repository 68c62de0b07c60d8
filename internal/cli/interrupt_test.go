package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// saves is a script that saves its work to a file when it gets SIGTERM, as a training does.
func saves(file string) string {
	return fmt.Sprintf("trap 'echo saved > %s; exit 0' TERM; while true; do echo step; sleep 0.1; done", file)
}

// The person closes the terminal, or SSH is lost. The training gets SIGTERM, and the job is not deleted.
func TestAClosedTerminalStopsTheTrainingInOrder(t *testing.T) {
	t.Parallel()
	d, dir, file := desk{&local.World{TB: t}}, t.TempDir(), filepath.Join(t.TempDir(), "saved")
	term := openTerminal(t, "run", "--data-dir="+dir, "--name=kept", "--retries=1", "--", "sh", "-c", saves(file))
	term.sees(`^worker-0 \| step$`)
	term.tmux("set-option", "-g", "exit-empty", "off")
	term.tmux("kill-session", "-t", "desk")
	d.Eventually("the training has saved its work", func() error { _, err := os.Stat(file); return err })
	d.Eventually("the run has ended", func() error {
		return found(finish(d, local.CLI("down", "--data-dir="+dir)).Stdout, "The local cluster is not running.")
	})
	up := local.StartUp(t, dir).Ready()
	d.expect(finish(d, local.CLI("get", "kept", "--data-dir="+up.DataDir)), 0, `^kept +PyTorchJob `)
}

// Without a terminal nobody sends SIGHUP, but the output is gone.
func TestALostPipeStopsTheTrainingInOrder(t *testing.T) {
	t.Parallel()
	d, file := desk{&local.World{TB: t}}, filepath.Join(t.TempDir(), "saved")
	cmd := local.CLI("run", "--data-dir="+t.TempDir(), "--", "sh", "-c", saves(file))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 129 {
		t.Errorf("it ends with code %d", code)
	}
	d.Eventually("the training has saved its work", func() error { _, err := os.Stat(file); return err })
}

// A shutdown, systemd and a batch system's time limit send SIGTERM. The training saves its work, and the job is kept for the next up.
func TestSIGTERMKeepsTheJob(t *testing.T) {
	t.Parallel()
	d, dir, file := desk{&local.World{TB: t}}, t.TempDir(), filepath.Join(t.TempDir(), "saved")
	said, cmd := d.begins("kept", dir, saves(file), "--retries=1")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	d.expect(local.Outcome{Stdout: said.String(), Code: cmd.ProcessState.ExitCode()}, 143,
		"^» kept is not deleted: the local cluster stops with this run, and `trainyard up --data-dir "+dir+"` continues the job\\.$")
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the work is lost: %v", err)
	}
	d.expect(finish(d, local.CLI("history", "--data-dir="+dir)), 0, `^kept +\w+ +PyTorchJob +Interrupted `)
}

// remote is the shared cluster by a kubeconfig that does not say that it is a local one.
func remote(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(local.Shared(t).Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Extensions = nil
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCtrlCOnARemoteClusterLeavesTheJobRunning(t *testing.T) {
	t.Parallel()
	d, stage, kubeconfig := newDesk(t), stage(t.TempDir()), remote(t)
	there := []string{"--namespace=" + d.Namespace, "--kubeconfig=" + kubeconfig}
	interrupted := func(name string, flags ...string) *transcript {
		t.Helper()
		said := &transcript{}
		cmd := local.CLI(append(append(append([]string{"run", "--image=none", "--name=" + name}, there...), flags...), "--", "sh", "-c", "echo hello; "+stage.until("end"))...)
		cmd.Stdout, cmd.Stderr = said, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		d.Eventually(name+" trains", func() error { return said.has(`(?m)^worker-0 \| hello$`) })
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		d.expect(local.Outcome{Stdout: said.String(), Code: cmd.ProcessState.ExitCode()}, 130)
		return said
	}
	hint := func(verb, name string) string {
		return "`trainyard " + verb + " " + name + " --kubeconfig " + kubeconfig + " -n " + d.Namespace + "`"
	}
	if err := found(interrupted("long").String(), "» long keeps running: "+hint("attach", "long")+" follows it again, "+hint("delete", "long")+" stops it.\n"); err != nil {
		t.Error(err)
	}
	interrupted("short", "--on-interrupt=delete")
	d.refuses(d.types("get", "short"), 1, "there is no such job as short")

	said, attached := &transcript{}, local.CLI(append([]string{"attach", "long"}, there...)...)
	attached.Stdout, attached.Stderr = said, said
	if err := attached.Start(); err != nil {
		t.Fatal(err)
	}
	d.Eventually("attach shows the job", func() error {
		return said.has(`(?m)^» PyTorchJob long is running\.$`, `(?m)^worker-0 \| hello$`)
	})
	stage.give(t, "end")
	_ = attached.Wait()
	d.expect(local.Outcome{Stdout: said.String(), Code: attached.ProcessState.ExitCode()}, 0, `^long succeeded after`)
}

// Ctrl-C on `up` does not end a run of another terminal.
func TestUpWaitsForRunsBeforeItStops(t *testing.T) {
	t.Parallel()
	d, stage := desk{&local.World{TB: t}}, stage(t.TempDir())
	up := local.StartUp(t, t.TempDir()).Ready()
	said, guest := d.begins("guest", up.DataDir, stage.until("end"))
	up.Signal(syscall.SIGINT)
	up.Says("A `trainyard run` still uses the local cluster, which stops when that ends. Ctrl-C again stops it now.\n")
	stage.give(t, "end")
	_ = guest.Wait()
	d.expect(local.Outcome{Stdout: said.String(), Code: guest.ProcessState.ExitCode()}, 0, `^guest succeeded`)
	if code := up.Wait(); code != 0 || !strings.HasSuffix(up.Output(), "Stopped.\n") {
		t.Errorf("up ends with code %d and says:\n%s", code, up.Output())
	}
}

// nohup says that the program outlives its terminal.
func TestSIGHUPStaysIgnored(t *testing.T) {
	t.Parallel()
	d, stage := desk{&local.World{TB: t}}, stage(t.TempDir())
	said := &transcript{}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(t.TempDir(), trainyardName)
	if err := os.Symlink(executable, named); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `trap '' HUP; exec "$@"`, "sh", named, "run", "--data-dir="+t.TempDir(), "--name=tough", "--", "sh", "-c", "echo hello; "+stage.until("end"))
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.Eventually("it trains", func() error { return said.has(`(?m)^worker-0 \| hello$`) })
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	stage.give(t, "end")
	_ = cmd.Wait()
	d.expect(local.Outcome{Stdout: said.String(), Code: cmd.ProcessState.ExitCode()}, 0, `^tough succeeded after`)
}
