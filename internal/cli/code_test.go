package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// On a cluster that cannot read this machine's files, the code goes along. Each attempt gets the same code, also if the files have
// changed here. It is deleted with the job.
func TestRunBringsTheCode(t *testing.T) {
	t.Parallel()
	d, dir, kubeconfig := newDesk(t), t.TempDir(), remote(t)
	write(t, filepath.Join(dir, "train.py"), `import os, helper
helper.greet(os.getcwd(), os.path.exists("data.bin"))
open(`+fmt.Sprintf("%q", filepath.Join(dir, "helper.py"))+`, "w").write("raise SystemExit(9)")
raise SystemExit(0 if os.environ["TRAINYARD_ATTEMPT"] == "1" else 3)
`)
	write(t, filepath.Join(dir, "helper.py"), "def greet(*words): print('helper says', *words)\n")
	write(t, filepath.Join(dir, "data.bin"), strings.Repeat("x", 1000))
	write(t, filepath.Join(dir, ".trainyardignore"), "*.bin\n")
	cmd := d.command("run", "--kubeconfig="+kubeconfig, "--image=none", "--name=away", "--retries=1", "--", "/usr/bin/python3", "train.py")
	cmd.Dir = dir
	d.expect(finish(d, cmd), 0, `^The code goes along: 3 files of \., 1 KB packed\. \.trainyardignore names what stays here\.$`,
		`^worker-0 \| helper says /trainyard/code False$`, `^away succeeded after .*, with 2 attempts, 1 retry\.$`)
	if owner := d.Kubectl("get", "configmaps", "-o", `jsonpath={range .items[*]}{.metadata.ownerReferences[*].name} {end}`); !strings.Contains(owner, "away") {
		t.Errorf("the code belongs to %q", owner)
	}
	d.expect(d.types("delete", "away"), 0)
	d.Eventually("the code is deleted with the job", func() error {
		if left := d.Kubectl("get", "configmaps", "-o", "name"); strings.Contains(left, "away") {
			return fmt.Errorf("there is still %s", left)
		}
		return nil
	})
}

// A command that names nothing of this directory brings nothing, nor does one that is told so.
func TestRunLeavesOtherFilesHere(t *testing.T) {
	t.Parallel()
	d, dir, kubeconfig := newDesk(t), t.TempDir(), remote(t)
	write(t, filepath.Join(dir, "train.py"), "print('hello')\n")
	for name, args := range map[string][]string{"image": {"--", "sh", "-c", "pwd"}, "told": {"--code=none", "--", "sh", "-c", "test -e train.py && echo there; pwd", "train.py"}} {
		cmd := d.command(append([]string{"run", "--kubeconfig=" + kubeconfig, "--image=none", "--name=" + name}, args...)...)
		cmd.Dir = dir
		o := finish(d, cmd)
		d.expect(o, 0, `^`+name+` succeeded`)
		if strings.Contains(o.Stdout+o.Stderr, "goes along") || strings.Contains(o.Stdout, "| there") {
			t.Errorf("%s brings code:\n%s%s", name, o.Stderr, o.Stdout)
		}
	}
	large := filepath.Join(dir, "large")
	if err := os.Mkdir(large, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(large, "x"), "x")
	if err := os.Truncate(filepath.Join(large, "x"), 300<<20); err != nil {
		t.Fatal(err)
	}
	d.refuses(d.types("run", "--kubeconfig="+kubeconfig, "--image=none", "--code="+large, "--", "python3", "train.py"), 2, "the code in .*/large is more than 268 MB: name what stays in .trainyardignore")
}
