package mpiagent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// remoteShell is the variable by which this program is the remote shell of mpirun. Its value is the address of the server.
const remoteShell = "TRAINYARD_TEST_REMOTE_SHELL"

// asRemoteShell runs a command on the server.
func asRemoteShell(address string) (int, error) {
	c, err := parseCall(os.Args[1:])
	if err != nil {
		return 2, err
	}
	conn, err := dial(context.Background(), address, keys(os.Getenv(remoteShell+"_KEYS")))
	if err != nil {
		return 1, err
	}
	return c.run(conn)
}

// The ranks of a real mpirun get SIGTERM and may take longer to save than Open MPI's daemon, which kills them two seconds after it was
// signalled itself. Then the daemon ends, and with it the session.
func TestRanksOfOpenMPIHaveTimeToSave(t *testing.T) {
	t.Parallel()
	job, folder := newJob(t), t.TempDir()
	server, listener := listening(t, job)
	script := `trap "sleep 3; echo saved > $1/saved-$OMPI_COMM_WORLD_RANK; exit 0" TERM; touch $1/ready-$OMPI_COMM_WORLD_RANK; while :; do sleep 0.1; done`
	// No host has that name, so mpirun does not take it for this one.
	cmd := exec.CommandContext(t.Context(), "mpirun", "--host", "worker-0.invalid:2", "-np", "2", "sh", "-c", script, "rank", folder)
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_hwloc_base_binding_policy=none",
		"OMPI_MCA_plm_rsh_agent=/proc/"+fmt.Sprint(os.Getpid())+"/exe", remoteShell+"="+listener.Addr().String(), remoteShell+"_KEYS="+string(job))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting mpirun (make setup installs it): %v", err)
	}
	for _, file := range []string{"ready-0", "ready-1"} {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(folder, file)); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("there is no %s; mpirun says:\n%s", file, said.String())
			}
		}
	}
	server.terminate(listener)
	server.drain()
	if err := cmd.Wait(); err != nil {
		t.Errorf("mpirun ends with %v:\n%s", err, said.String())
	}
	for _, file := range []string{"saved-0", "saved-1"} {
		if text, err := os.ReadFile(filepath.Join(folder, file)); err != nil || string(text) != "saved\n" {
			t.Errorf("%s is %q (%v); mpirun says:\n%s", file, text, err, said.String())
		}
	}
}
