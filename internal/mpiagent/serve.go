package mpiagent

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/trainyard/internal/manifest/mpiplan"
)

// runServe is the process of a Worker: the server, and beside it the command of the pod's template if it has one. Then the container
// ends with the command.
func runServe(args []string) (int, error) {
	if os.Getpid() == 1 {
		return superviseServer(args)
	}
	server, err := newServer(keys(mpiplan.KeysDir))
	if err != nil {
		return failed, err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", mpiplan.Port))
	if err != nil {
		return failed, fmt.Errorf("listening for the launcher: %w", err)
	}
	return server.run(listener, args)
}

// run serves until the process gets a signal to stop or the command has ended.
func (s *server) run(listener net.Listener, args []string) (int, error) {
	terminate := func() { s.terminate(listener) }
	if len(args) > 0 {
		go func() { _ = s.serve(listener) }()
		code, err := runCommand(args, terminate)
		s.drain()
		return code, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		terminate()
	}()
	err := s.serve(listener)
	if s.drain() {
		return 128 + int(syscall.SIGTERM), nil
	}
	return failed, err
}

// superviseServer makes this process, the first of its container, the parent of orphans, which it reaps, and runs the server as
// another process. A program that reaps cannot wait for children of its own.
func superviseServer(args []string) (int, error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	program, err := os.Executable()
	if err != nil {
		return failed, fmt.Errorf("finding this program: %w", err)
	}
	child, err := os.StartProcess(program, append([]string{mpiplan.Name, "serve"}, args...), &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return failed, fmt.Errorf("starting the server: %w", err)
	}
	go func() {
		for s := range signals {
			_ = child.Signal(s)
		}
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return failed, fmt.Errorf("waiting for the server: %w", err)
		case pid == child.Pid:
			return codeOf(status), nil
		}
	}
}

// codeOf is the exit code for the end of a process, as a shell has it.
func codeOf(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// runCommand runs the command of the pod's template and passes signals on to it. A signal that ends the pod is for the processes of
// clients, too, and for them first: the container ends with the command.
func runCommand(args []string, terminate func()) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	if err := cmd.Start(); err != nil {
		return 127, err
	}
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				terminate()
			}
			_ = cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return failed, err
	}
	return codeOf(cmd.ProcessState.Sys().(syscall.WaitStatus)), nil
}

// server lets clients of its job run commands.
type server struct {
	config *ssh.ServerConfig
	// sessions are those whose command runs, by the process that leads them.
	sessions struct {
		sync.Mutex
		sync.WaitGroup
		leaders     map[int]bool
		terminating bool
	}
}

func newServer(from keys) (*server, error) {
	host, err := from.private(mpiplan.HostKey)
	if err != nil {
		return nil, err
	}
	client, err := from.public(mpiplan.PublicKey)
	if err != nil {
		return nil, err
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), client.Marshal()) {
			return nil, errForeign
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	s := &server{config: config}
	s.sessions.leaders = map[int]bool{}
	return s, nil
}

const (
	// handshakeTime is how long a client may take to prove that it belongs to the job.
	handshakeTime = 30 * time.Second
	// acceptAgain is how long after a failure the next connection is accepted.
	acceptAgain = 100 * time.Millisecond
)

func (s *server) serve(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("waiting for the launcher: %w", err)
		case err != nil: // too many open files, for example, which passes
			time.Sleep(acceptAgain)
		default:
			go s.handle(conn)
		}
	}
}

// handle serves one client until it is gone. All that it started and that still runs is then killed: on an abort mpirun kills its
// clients, and nobody else would end the processes here.
func (s *server) handle(tcp net.Conn) {
	defer func() { _ = tcp.Close() }()
	_ = tcp.SetDeadline(time.Now().Add(handshakeTime))
	conn, channels, requests, err := ssh.NewServerConn(tcp, s.config)
	if err != nil {
		return // a probe, or a client of another job
	}
	_ = tcp.SetDeadline(time.Time{})
	go ssh.DiscardRequests(requests)
	gone := make(chan struct{})
	go func() {
		_ = conn.Wait()
		close(gone)
	}()
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only sessions are served")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests, gone)
	}
}
