package mpiagent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/trainyard/trainyard/internal/manifest/mpiplan"
)

// newJob is a folder with the keys of a job.
func newJob(t *testing.T) keys {
	t.Helper()
	all, err := mpiplan.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return keys(dir)
}

// serving is the address of a server of the job.
func serving(t *testing.T, job keys) string {
	t.Helper()
	_, listener := listening(t, job)
	return listener.Addr().String()
}

// listening is a server of the job that serves.
func listening(t *testing.T, job keys) (*server, net.Listener) {
	t.Helper()
	s, err := newServer(job)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() { _ = s.serve(listener) }()
	return s, listener
}

func connect(t *testing.T, job keys) *ssh.Client {
	t.Helper()
	conn, err := dial(t.Context(), serving(t, job), job)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestACommandRunsWithTheEnvironmentOfTheServer(t *testing.T) {
	t.Setenv("FROM_THE_CONTAINER", "yes")
	conn := connect(t, newJob(t))
	s, err := conn.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader("input"), &out, &errOut
	err = s.Run(`( test ! -r ./.profile || . ./.profile; echo "$FROM_THE_CONTAINER $(cat)"; echo wrong >&2; exit 7 )`)
	var exit *ssh.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 7 {
		t.Errorf("the command ended with %v, want exit code 7", err)
	}
	if out.String() != "yes input\n" || errOut.String() != "wrong\n" {
		t.Errorf("it printed %q and %q", out.String(), errOut.String())
	}
}

func TestOtherJobsAreRefused(t *testing.T) {
	job, other := newJob(t), newJob(t)
	if _, err := dial(t.Context(), serving(t, job), other); err == nil {
		t.Error("a server of another job is accepted")
	}
	// A client that accepts any server is refused by this one.
	text, err := os.ReadFile(filepath.Join(string(job), mpiplan.KnownHost))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(string(other), mpiplan.KnownHost), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t.Context(), serving(t, job), other); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("a client of another job gets %v", err)
	}
}

// A stopped process, or a proxy without a backend, accepts connections and says nothing.
func TestASilentHostIsNotWaitedForForever(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	_, err = tryOnce(t.Context(), silent.Addr().String(), &ssh.ClientConfig{HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	if err == nil || !isNetwork(err) {
		t.Errorf("it ends with %v, want an error after which it is tried again", err)
	}
}

// When mpirun aborts it kills its clients. Processes in groups of their own must end then, too.
func TestALostClientTakesItsProcessesWithIt(t *testing.T) {
	conn := connect(t, newJob(t))
	s, err := conn.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(`trap "" TERM; set -m; sleep 1000 & echo $!; wait`); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	for deadline := time.Now().Add(time.Minute); !isDead(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}

// When the pod is stopped, each rank gets SIGTERM and has the time that it needs. The daemon that started it gets none: it would kill the
// rank. A program that a client runs without a daemon gets it, too.
func TestRanksAreToldThatThePodIsStopped(t *testing.T) {
	t.Parallel()
	const rank = `trap "sleep 0.2; echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done`
	for sentence, line := range map[string]string{
		"a rank of a daemon": `export RANK='` + rank + `'; exec bash -c 'trap "echo the daemon was signalled" TERM; set -m; sh -c "$RANK" & wait $!; echo ended'`,
		"a program alone":    `trap : TERM; (` + rank + `) & wait $!; wait; echo ended`,
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			job := newJob(t)
			server, listener := listening(t, job)
			conn, err := dial(t.Context(), listener.Addr().String(), job)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			client, err := conn.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			out, err := client.StdoutPipe()
			if err == nil {
				err = client.Start(line)
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			if first, err := lines.ReadString('\n'); err != nil || first != "ready\n" {
				t.Fatalf("it says %q (%v)", first, err)
			}
			if server.drain() {
				t.Error("the end of the sessions is awaited though nobody stops the pod")
			}
			server.terminate(listener)
			if rest, err := io.ReadAll(lines); err != nil || string(rest) != "saved\nended\n" {
				t.Errorf("then it says %q (%v)", rest, err)
			}
			if err := client.Wait(); err != nil {
				t.Errorf("it ends with %v", err)
			}
			if !server.drain() {
				t.Error("the server does not know that the pod is stopped")
			}
			if late, err := conn.NewSession(); err == nil && late.Run("true") == nil {
				t.Error("a process is started in a pod that is stopped")
			}
		})
	}
}

// isDead reports whether a process is gone, or only waits to be reaped.
func isDead(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(stat), ") Z ")
}

func TestTheClientReadsArgumentsAsOpenSSH(t *testing.T) {
	for _, row := range []struct {
		args string
		want call
	}{
		{"demo-worker-0 orted -mca a b", call{"demo-worker-0", "orted -mca a b", 2222}},
		{"-x -o ConnectionAttempts=10 host true", call{"host", "true", 2222}},
		{"-oStrictHostKeyChecking=no -p 22 -l me host true", call{"host", "true", 22}},
		{"-qn -p22 me@host -- true", call{"host", "true", 22}},
		{"-i /key -F /config -T host sh -c x", call{"host", "sh -c x", 2222}},
	} {
		got, err := parseCall(strings.Fields(row.args))
		if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(call{})); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", row.args, err, diff)
		}
	}
	for args, want := range map[string]string{"": "the host is missing", "host": "the command is missing", "-p x host true": "use the number of a port"} {
		if _, err := parseCall(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

func TestTheInitContainerWritesTheFiles(t *testing.T) {
	dir := t.TempDir()
	plan := mpiplan.Plan{Workers: 2, Slots: 3, Host: "demo-worker-%d", Launcher: "demo-launcher", Service: "demo.team.svc"}
	for range 2 { // the kubelet may run it again
		if err := write(plan, dir); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{
		"hostfile":          "demo-launcher slots=3\ndemo-worker-0 slots=3\ndemo-worker-1 slots=3\n",
		"kubexec.sh":        "#!/bin/sh\nexec /etc/mpi/trainyard-agent ssh \"$@\"\n",
		"discover_hosts.sh": "#!/bin/sh\nexec /etc/mpi/trainyard-agent hosts\n",
		"service":           "demo.team.svc",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
			t.Errorf("%s is %q (%v), want %q", file, got, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ssh")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "kubexec.sh")); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("kubexec.sh has the mode %v (%v)", info.Mode(), err)
	}
}

func TestTheProgramIsCopied(t *testing.T) {
	dir := t.TempDir()
	if err := write(mpiplan.Plan{}, dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(filepath.Join(dir, mpiplan.Name))
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o755 || info.Size() < 1e6 {
		t.Errorf("the copy is %v (%v)", info, err)
	}
}

// A connection alone is no answer: a proxy accepts it before the server runs.
func TestTheLauncherWaitsForAnSSHServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	go func() {
		for conn, err := silent.Accept(); err == nil; conn, err = silent.Accept() {
			_, _ = io.WriteString(conn, "HTTP/1.1 503 later\r\n")
			_ = conn.Close()
		}
	}()
	if err := greets(context.Background(), silent.Addr().String()); err == nil || !strings.Contains(err.Error(), "is no SSH server yet") {
		t.Errorf("a proxy: %v", err)
	}
	if err := greets(context.Background(), serving(t, newJob(t))); err != nil {
		t.Errorf("our server: %v", err)
	}
}

func TestNamesWithoutDotsAreThoseOfTheJobsPods(t *testing.T) {
	for host, want := range map[string]string{
		"demo-worker-0": "demo-worker-0.demo.team.svc", "demo-worker-0.demo.team.svc": "demo-worker-0.demo.team.svc", "localhost": "localhost", "10.0.0.1": "10.0.0.1",
	} {
		if got := inService(host, "demo.team.svc"); got != want {
			t.Errorf("%s is found as %s, want %s", host, got, want)
		}
	}
}

func TestHostFilesOfBothFormatsAreRead(t *testing.T) {
	for _, plan := range []mpiplan.Plan{{Workers: 11, Slots: 2, Host: "w-%d"}, {Workers: 11, Slots: 2, Host: "w-%d", Colon: true}} {
		hosts := readHosts(plan.HostFile())
		if len(hosts) != 11 || hosts[2] != (host{"w-2", "2"}) || hosts[10] != (host{"w-10", "2"}) {
			t.Errorf("%q is read as %v", plan.HostFile(), hosts)
		}
	}
}
