package local

import (
	"fmt"

	"github.com/trainyard/trainyard/internal/procrun/proc"
)

// Process is a process of this machine. Its start distinguishes it from a later one of the same number.
type Process struct {
	Pid   int
	Start string
	Name  string
}

// Below lists the processes that descend from one, which is not among them.
func Below(root int) []Process {
	var found []Process
	for _, p := range proc.ReadAll().Below(root) {
		if !p.Dead() {
			found = append(found, process(p))
		}
	}
	return found
}

// ProcessAt is the process that has a number now.
func ProcessAt(pid int) Process {
	p, exists := proc.Read(pid)
	if !exists {
		return Process{}
	}
	return process(p)
}

func process(p proc.Process) Process { return Process{Pid: p.Pid, Start: p.Start(), Name: p.Name} }

// Alive reports whether a process still runs.
func (p Process) Alive() bool {
	now, exists := proc.Read(p.Pid)
	return exists && !now.Dead() && now.Start() == p.Start
}

// String names it.
func (p Process) String() string { return fmt.Sprintf("%s (%d)", p.Name, p.Pid) }
