package local

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Process is a process of this machine. Its start tells it from a later one of the same number.
type Process struct {
	Pid   int
	Start string
	Name  string
}

// Below lists the processes that descend from one, which is not among them.
func Below(root int) []Process {
	children := map[int][]Process{}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if p, parent, alive := look(pid); alive {
				children[parent] = append(children[parent], p)
			}
		}
	}
	var found []Process
	for next := children[root]; len(next) > 0; next = next[1:] {
		found = append(found, next[0])
		next = append(next, children[next[0].Pid]...)
	}
	return found
}

// ProcessAt is the process that has a number now.
func ProcessAt(pid int) Process {
	p, _, _ := look(pid)
	return p
}

// Alive tells whether a process still runs.
func (p Process) Alive() bool {
	now, _, alive := look(p.Pid)
	return alive && now.Start == p.Start
}

// String names it.
func (p Process) String() string { return fmt.Sprintf("%s (%d)", p.Name, p.Pid) }

// look reads /proc/PID/stat: number, name in parentheses, state, parent, and the start as the 22nd field.
func look(pid int) (p Process, parent int, alive bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, 0, false
	}
	opening, closing := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	fields := strings.Fields(string(text[closing+1:]))
	parent, _ = strconv.Atoi(fields[1])
	return Process{Pid: pid, Start: fields[19], Name: string(text[opening+1 : closing])}, parent, fields[0] != "Z" && fields[0] != "X"
}
