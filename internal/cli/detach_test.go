package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// `run -d` brings a cluster in the background, which outlives the command, and `down` stops it.
func TestLettingGoAndComingBack(t *testing.T) {
	t.Parallel()
	d, stage, home := desk{&local.World{TB: t}}, stage(t.TempDir()), t.TempDir()
	dir := filepath.Join(home, "data")
	types := func(args ...string) local.Outcome {
		return finish(d, &exec.Cmd{Path: "/proc/self/exe", Dir: home, Args: append([]string{trainyardName}, args...),
			Env: []string{"HOME=" + home, "TRAINYARD_DATA_DIR=" + dir, "PATH=" + os.Getenv("PATH")}})
	}
	t.Cleanup(func() { types("down", "--force") })
	d.expect(types("status"), 1, `\AThe local cluster is not running: .trainyard up. starts it\.\n\z`)
	d.expect(types("down"), 0, `\AThe local cluster is not running\.\n\z`)

	first := types("run", "-d", "--name=first", "--", "sh", "-c", "echo hello; "+stage.until("first"))
	d.expect(first, 0,
		`^The local cluster runs in the background: .trainyard down. stops it\.$`, "^PyTorchJob first is submitted\\. Follow it with `trainyard attach first`\\.$")
	d.expect(types("submit", "--name=second", "--", "sh", "-c", stage.until("second")), 0, "^PyTorchJob second is submitted")
	d.expect(types("wait", "first", "--for=running"), 0)
	d.expect(types("wait", "second", "--for=running"), 0)
	running := types("status")
	d.expect(running, 0, `\AThe local cluster has been running for [\dms]+\.\n  process +\d+\n  data +`+regexp.QuoteMeta(dir)+`, \d+ MiB \(store \d+ MiB, logs \d+ KiB, records \d+ KiB\)\n  kubeconfig +`+
		regexp.QuoteMeta(filepath.Join(dir, "kubeconfig"))+`\n  jobs +2 running\n\z`)
	stage.give(t, "first")
	d.expect(types("attach", "first"), 0, `^worker-0 \| hello$`, `^first succeeded after`)
	d.expect(types("get", "first", "-o", "yaml"), 0, `^ +ttlSecondsAfterFinished: 604800$`)
	d.expect(types("prune"), 0, `\A0 finished jobs deleted\.\n\z`)
	d.expect(types("history"), 0, `^first +\w+ +PyTorchJob +Succeeded `, `^second `)
	d.expect(types("prune", "--older-than=0s"), 0, `\Adefault/first is deleted\.\n1 finished job deleted\.\n1 record deleted \(\d+ KiB\)\.\n\z`)
	d.refuses(types("logs", "first"), 1, "there is no such job as first in namespace default: `trainyard history` lists the jobs, also deleted ones")
	d.expect(types("history"), 0, `\ANAME .*\nsecond .*\n\z`)
	d.refuses(types("prune", "--all"), 1, "the local cluster is running: `trainyard down` stops it")
	d.refuses(types("up", "-d"), 1, "a local cluster is already running")
	log, err := os.ReadFile(filepath.Join(dir, "up.log"))
	d.expect(local.Outcome{Stdout: string(log)}, 0, `^The local cluster is ready`)
	if err != nil {
		t.Error(err)
	}
	for _, note := range regexp.MustCompile(`(?m)^Note: .*$`).FindAllString(string(log), -1) {
		d.expect(first, 0, "^"+regexp.QuoteMeta(note)+"$")
	}

	d.expect(types("down"), 0, `^Stopped\.$`)
	d.expect(types("status"), 1, `^The local cluster is not running`, `^  data +`+regexp.QuoteMeta(dir))
	d.expect(types("up", "--detach"), 0, "\\A(Note: .*\n)*The local cluster is ready, as process \\d+\\. `trainyard status` shows it, `trainyard down` stops it\\.\n\\z")
	d.expect(types("get", "second"), 0, `^second +PyTorchJob `)

	d.expect(types("down"), 0, `^Stopped\.$`)
	d.refuses(types("prune"), 1, "the local cluster is not running: `trainyard up -d` starts it, to delete finished jobs; --all deletes everything")
	write(t, filepath.Join(dir, "mine"), "")
	d.expect(types("prune", "--all"), 0, `\A\d+ MiB deleted\.\n\z`)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "mine" {
		t.Errorf("prune leaves %v (%v)", left, err)
	}
	d.refuses(types("prune", "--all"), 1, "there is no local cluster in ")
}

// `down` does not end a run of another terminal, except by force; and then its job stays.
func TestDownLeavesRunsAlone(t *testing.T) {
	t.Parallel()
	d, dir := desk{&local.World{TB: t}}, t.TempDir()
	_, cmd := d.begins("kept", dir, "exec sleep 600")
	d.refuses(finish(d, local.CLI("down", "--data-dir="+dir)), 1, "a `trainyard run` uses the local cluster: wait for it, or stop it with `trainyard down --force`$")
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Fatal(err)
	}
	d.expect(finish(d, local.CLI("down", "--data-dir="+dir, "--force")), 0, `^Stopped\.$`)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 129 {
		t.Errorf("the run ends with code %d", code)
	}
	local.StartUp(t, dir).Ready()
	d.expect(finish(d, local.CLI("get", "kept", "--data-dir="+dir)), 0, `^kept +PyTorchJob `)
}
