package mpiagent

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// workerKeys is the variable by which this program is the server of a Worker. Its value is the folder with the keys.
const workerKeys = "TRAINYARD_TEST_WORKER"

func TestMain(m *testing.M) {
	var (
		code int
		err  error
	)
	switch address, folder := os.Getenv(remoteShell), os.Getenv(workerKeys); {
	case address != "":
		code, err = asRemoteShell(address)
	case folder != "":
		code, err = asWorker(keys(folder))
	default:
		code = m.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// asWorker serves at an address that it prints.
func asWorker(job keys) (int, error) {
	server, err := newServer(job)
	if err != nil {
		return failed, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return failed, err
	}
	fmt.Println(listener.Addr())
	return server.run(listener, os.Args[1:])
}

// SIGTERM stops a Worker, with and without a command of its own, when the processes of clients have ended.
func TestAWorkerEndsWhenItsRanksHaveEnded(t *testing.T) {
	t.Parallel()
	for sentence, row := range map[string]struct {
		command []string
		code    int
	}{
		"the server alone":    {nil, 128 + int(syscall.SIGTERM)},
		"a command beside it": {[]string{"sh", "-c", `trap "exit 7" TERM; while :; do sleep 0.05; done`}, 7},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			job := newJob(t)
			worker := exec.CommandContext(t.Context(), "/proc/self/exe", row.command...)
			worker.Env, worker.Stderr = append(os.Environ(), workerKeys+"="+string(job)), os.Stderr
			out, err := worker.StdoutPipe()
			if err == nil {
				err = worker.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			address, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			conn, err := dial(t.Context(), strings.TrimSpace(address), job)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			client, err := conn.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			ranks, err := client.StdoutPipe()
			if err == nil {
				err = client.Start(`trap "sleep 0.5; echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done`)
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(ranks)
			if first, err := lines.ReadString('\n'); err != nil || first != "ready\n" {
				t.Fatalf("the rank says %q (%v)", first, err)
			}
			if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(lines); err != nil || string(rest) != "saved\n" {
				t.Errorf("then the rank says %q (%v)", rest, err)
			}
			_ = worker.Wait()
			if code := worker.ProcessState.ExitCode(); code != row.code {
				t.Errorf("the Worker ends with %s, want exit code %d", worker.ProcessState, row.code)
			}
		})
	}
}
