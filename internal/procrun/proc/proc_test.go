package proc_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/internal/procrun/proc"
)

// A shell and the sleep that it waits for are below this process, in that order; the shell alone is not below itself.
func TestBelow(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 600 & echo $!; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // sleep is there
		t.Fatal(err)
	}
	all := proc.ReadAll()
	below := func(root int) (names []string) {
		for _, p := range all.Below(root) {
			names = append(names, p.Name)
		}
		return names
	}
	shell := cmd.Process.Pid
	if names := below(shell); len(names) != 1 {
		t.Errorf("below the shell: %q", names)
	}
	if p := all.ByPid[shell]; p.Parent != os.Getpid() || p.Name != "sh" || p.Dead() {
		t.Errorf("the shell is %+v", p)
	}
	ours := all.Below(os.Getpid())
	if !slices.ContainsFunc(ours, func(p proc.Process) bool { return p.Parent == shell }) {
		t.Errorf("below this process: %+v", ours)
	}
	for _, p := range append(all.Below(shell), all.ByPid[shell]) {
		process, _ := os.FindProcess(p.Pid)
		_ = process.Kill()
	}
	_ = cmd.Wait()
	if again, exists := proc.Read(shell); exists && again.Start() == all.ByPid[shell].Start() {
		t.Errorf("the shell is still there: %+v", again)
	}
}
