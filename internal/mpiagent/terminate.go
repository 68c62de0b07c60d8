package mpiagent

import (
	"net"
	"syscall"
)

// begin counts a session. When the pod is being stopped, it is too late for another.
func (s *server) begin() bool {
	s.sessions.Lock()
	defer s.sessions.Unlock()
	if !s.sessions.terminating {
		s.sessions.Add(1)
	}
	return !s.sessions.terminating
}

// lead notes the process that leads a session.
func (s *server) lead(pid int) {
	s.sessions.Lock()
	defer s.sessions.Unlock()
	if s.sessions.leaders[pid] = true; s.sessions.terminating {
		terminateSession(pid)
	}
}

// leave forgets it when it has ended.
func (s *server) leave(pid int) {
	s.sessions.Lock()
	defer s.sessions.Unlock()
	delete(s.sessions.leaders, pid)
}

func (s *server) isTerminating() bool {
	s.sessions.Lock()
	defer s.sessions.Unlock()
	return s.sessions.terminating
}

// terminate accepts no more clients and tells the processes of all sessions that the pod is being stopped.
func (s *server) terminate(listener net.Listener) {
	s.sessions.Lock()
	defer s.sessions.Unlock()
	if s.sessions.terminating {
		return
	}
	s.sessions.terminating = true
	_ = listener.Close()
	for leader := range s.sessions.leaders {
		terminateSession(leader)
	}
}

// drain waits for the end of all sessions if the pod is being stopped, and reports whether it is. The kubelet's SIGKILL limits the wait.
func (s *server) drain() bool {
	if !s.isTerminating() {
		return false
	}
	s.sessions.Wait()
	return true
}

// terminateSession sends SIGTERM to process groups, as mpirun does. A daemon of MPI leads its session and starts each rank in another
// group. It is left alone: on SIGTERM it would kill the ranks after a second, and when they have ended, it ends. A session without such
// groups has no daemon.
func terminateSession(leader int) {
	groups := map[int]bool{}
	for _, group := range sessionOf(leader) {
		groups[group] = true
	}
	if len(groups) > 1 {
		delete(groups, leader)
	}
	for group := range groups {
		_ = syscall.Kill(-group, syscall.SIGTERM)
	}
}
