package mpiagent

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/trainyard/internal/manifest/mpiplan"
)

// session runs the one command of a client's session. Variables that the client sends are set, as sshd does where its configuration
// allows it.
func (s *server) session(channel ssh.Channel, requests <-chan *ssh.Request, gone <-chan struct{}) {
	defer func() { _ = channel.Close() }()
	env := os.Environ()
	for request := range requests {
		switch request.Type {
		case "env":
			var variable struct{ Name, Value string }
			if ssh.Unmarshal(request.Payload, &variable) == nil {
				env = append(env, variable.Name+"="+variable.Value)
			}
			reply(request, true)
		case "exec":
			var command struct{ Line string }
			if err := ssh.Unmarshal(request.Payload, &command); err != nil {
				reply(request, false)
				return
			}
			reply(request, true)
			go ssh.DiscardRequests(requests)
			if !s.begin() {
				return
			}
			code := s.execute(command.Line, env, channel, gone)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)}))
			s.sessions.Done()
			return
		default:
			reply(request, false)
		}
	}
}

func reply(request *ssh.Request, ok bool) {
	if request.WantReply {
		_ = request.Reply(ok, nil)
	}
}

// execute runs a command line in a session of its own (setsid), by which all that it starts is found.
func (s *server) execute(line string, env []string, channel ssh.Channel, gone <-chan struct{}) int {
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second // a daemon that it leaves behind may keep the output open
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_, _ = fmt.Fprintf(channel.Stderr(), "%s: %v\n", mpiplan.Name, err)
		return 127
	}
	s.lead(cmd.Process.Pid)
	go func() {
		_, _ = io.Copy(stdin, channel)
		_ = stdin.Close()
	}()
	ended := make(chan struct{})
	go func() {
		select {
		case <-gone:
			if !s.isTerminating() { // then its processes have all of the pod's grace period
				endSession(cmd.Process.Pid, ended)
			}
		case <-ended:
		}
	}()
	_ = cmd.Wait()
	close(ended)
	s.leave(cmd.Process.Pid)
	return codeOf(cmd.ProcessState.Sys().(syscall.WaitStatus))
}

// termWait is how long the processes of a lost client have to end by themselves. Open MPI's daemon kills its processes on SIGTERM.
const termWait = 2 * time.Second

func endSession(leader int, ended <-chan struct{}) {
	_ = syscall.Kill(leader, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(termWait):
	}
	for pid := range sessionOf(leader) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// sessionOf are the processes of a session, each with its process group. Processes of mpirun are in groups of their own, but in its
// session.
func sessionOf(leader int) map[int]int {
	entries, _ := os.ReadDir("/proc")
	all := map[int]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + entry.Name() + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ") // the name before may have spaces
		fields := strings.Fields(rest)                // state, parent, process group, session
		if len(fields) > 3 && fields[3] == strconv.Itoa(leader) {
			all[pid], _ = strconv.Atoi(fields[2])
		}
	}
	return all
}
