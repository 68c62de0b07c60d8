// Package proc reads the processes that this one sees, and who descends from whom, from /proc.
package proc

import (
	"os"
	"strconv"
	"strings"
)

// Process is a process at one moment.
type Process struct {
	Pid, Parent int
	Name        string
	// Stat is the fields of /proc/PID/stat after the name, the state first.
	Stat []string
}

// Dead reports whether it has ended and only waits to be reaped.
func (p Process) Dead() bool { return p.Stat[0] == "Z" || p.Stat[0] == "X" }

// Start distinguishes it from a later process of the same number.
func (p Process) Start() string { return p.Stat[19] }

// Read reads one process.
func Read(pid int) (p Process, exists bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, false
	}
	// The name in parentheses may hold anything, parentheses too.
	opening, closing := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	fields := strings.Fields(string(text[closing+1:]))
	if len(fields) < 22 {
		return Process{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	return Process{Pid: pid, Parent: parent, Name: string(text[opening+1 : closing]), Stat: fields}, true
}

// Processes are all there are at one moment.
type Processes struct {
	ByPid    map[int]Process
	children map[int][]int
}

// ReadAll reads all processes.
func ReadAll() Processes {
	all := Processes{ByPid: map[int]Process{}, children: map[int][]int{}}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, exists := Read(pid); exists {
			all.ByPid[pid], all.children[p.Parent] = p, append(all.children[p.Parent], pid)
		}
	}
	return all
}

// Below lists those that descend from the roots, which are not among them, the nearest first.
func (all Processes) Below(roots ...int) []Process {
	var found []Process
	for ; len(roots) > 0; roots = roots[1:] {
		for _, pid := range all.children[roots[0]] {
			found = append(found, all.ByPid[pid])
			roots = append(roots[:len(roots):len(roots)], pid)
		}
	}
	return found
}
