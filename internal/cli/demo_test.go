package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// What `make demo` shows, in its order.
func TestTheDemo(t *testing.T) {
	t.Parallel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, temporary := t.TempDir(), t.TempDir()
	named := filepath.Join(bin, trainyardName)
	if err := os.Symlink(executable, named); err != nil {
		t.Fatal(err)
	}
	demo := exec.Command("../../hack/demo.sh")
	demo.Env = append(os.Environ(), "TRAINYARD="+named, "TMPDIR="+temporary)
	output, err := demo.CombinedOutput()
	if err != nil {
		t.Errorf("it ends with %v", err)
	}
	rest := output
	for _, line := range []string{
		`^The local cluster is ready`, `^» PyTorchJob (\S+) is submitted\.$`, `^» \S+ is running, 2/2 ready\.$`, `^worker-0 \| epoch 3: loss `,
		`^» \S+ is restarting: Worker 1 \(.*\) exited with code 137 \(SIGKILL\); retry 1 of 3\.$`, `^worker-[01] \| rank [01] of 2, attempt 1, from epoch 4, `,
		`^worker-0 \| epoch 7: loss `, `^\S+ succeeded after \w+, with 2 attempts, 1 retry\.$`, `Exit code 0: the job succeeded\.`,
	} {
		at := regexp.MustCompile(`(?m)` + line).FindIndex(rest)
		if at == nil {
			t.Errorf("no %q where it belongs in\n%s", line, output)
			break
		}
		rest = rest[at[1]:]
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}
