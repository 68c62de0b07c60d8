package cli

import "testing"

// Where there is no mpirun, no cluster is started for it.
func TestRunSaysThatThereIsNoMPIRun(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	out, stderr, code := typed("", "run", "--mpi", "--nodes=2", "--data-dir", t.TempDir(), "--", "./ring")
	if want := "trainyard: there is no mpirun on this machine: install an MPI, as in `apt-get install openmpi-bin`\n"; out != "" || stderr != want || code != 2 {
		t.Errorf("exit code %d, printed %q and %q, want %q", code, out, stderr, want)
	}
}
