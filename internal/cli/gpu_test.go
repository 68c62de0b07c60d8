package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// A driver with one GPU is played by a script, in the PATH of a cluster of the test's own.
func TestTwoJobsThatWantTheOnlyGPU(t *testing.T) {
	t.Parallel()
	bin, stage := t.TempDir(), stage(t.TempDir())
	if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte("#!/bin/sh\necho GPU-aaaa\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	up := local.StartUpIn(t, environment, t.TempDir()).Ready()
	run := func(name, script string, flags ...string) (said *transcript, ended func() int) {
		said = &transcript{}
		args := append([]string{trainyardName, "run", "--data-dir=" + up.DataDir, "--name=" + name}, flags...)
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: append(args, "--", "sh", "-c", script),
			Env: environment, Stdout: said, Stderr: said}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return said, func() int { _ = cmd.Wait(); return cmd.ProcessState.ExitCode() }
	}
	w := &local.World{TB: t}
	first, firstEnded := run("first", "echo on $CUDA_VISIBLE_DEVICES; "+stage.until("go"), "--gpus=1")
	w.Eventually("the first trains", func() error { return first.has(`(?m)^worker-0 \| on GPU-aaaa$`) })
	second, secondEnded := run("second", "echo on $CUDA_VISIBLE_DEVICES", "--gpus=1")
	w.Eventually("the second says what it waits for", func() error {
		return second.has(`(?m)^» second is starting: Worker 0 \(pod second-worker-0\) waits: it cannot be scheduled: 0/1 nodes are available: 1 Insufficient nvidia\.com/gpu\.$`)
	})
	stage.give(t, "go")
	if code := firstEnded(); code != 0 {
		t.Errorf("the first ends with code %d:\n%s", code, first)
	}
	if code := secondEnded(); code != 0 || second.has(`(?m)^worker-0 \| on GPU-aaaa$`, `(?m)^second succeeded after `) != nil {
		t.Errorf("the second ends with code %d:\n%s", code, second)
	}
	third, thirdEnded := run("third", "echo on the CPU")
	if code := thirdEnded(); code != 0 || third.has(`(?m)^Note: this machine has 1 GPU, and the job asks for none, so it trains on the CPU\. --gpus 1 gives each replica one\.$`) != nil {
		t.Errorf("one that asks for none ends with code %d:\n%s", code, third)
	}
}
