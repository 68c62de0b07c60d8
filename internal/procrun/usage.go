package procrun

import (
	"os"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"

	"github.com/trainyard/trainyard/internal/procrun/proc"
)

// usage is what a container uses.
type usage struct {
	cpu                     uint64 // nanoseconds since the start
	memory, workingSet, rss uint64 // bytes
	faults, majorFaults     uint64
	processes               uint64
}

// groupUsage reads a container's usage from its control group.
func groupUsage(group cgroups.Manager) (usage, error) {
	stats, err := group.GetStats()
	if err != nil {
		return usage{}, err
	}
	memory := stats.MemoryStats
	u := usage{
		cpu: stats.CpuStats.CpuUsage.TotalUsage, memory: memory.Usage.Usage, processes: stats.PidsStats.Current,
		rss: first(memory.Stats, "total_rss", "anon"), workingSet: memory.Usage.Usage,
		faults: first(memory.Stats, "total_pgfault", "pgfault"), majorFaults: first(memory.Stats, "total_pgmajfault", "pgmajfault"),
	}
	// What the kernel can drop at any time is not part of the working set.
	u.workingSet -= min(u.workingSet, first(memory.Stats, "total_inactive_file", "inactive_file"))
	return u, nil
}

// first returns the first of the values that is there: version 1 and 2 call them differently.
func first(values map[string]uint64, names ...string) uint64 {
	for _, name := range names {
		if value, ok := values[name]; ok {
			return value
		}
	}
	return 0
}

// Fields of /proc/PID/stat after the name, and the unit of its times, which is the same on all Linux machines.
const (
	statMinorFaults = 7
	statMajorFaults = 9
	statUserTime    = 11 // then system time, and both of the children waited for
	tick            = 10_000_000
)

// atAndBelow returns the processes at and below the roots.
func atAndBelow(all proc.Processes, roots []int) []proc.Process {
	var found []proc.Process
	for _, root := range roots {
		if p, exists := all.ByPid[root]; exists {
			found = append(found, p)
		}
	}
	return append(found, all.Below(roots...)...)
}

// usageOf adds up the processes at and below the roots. The memory that processes share is counted once, as much as
// the one that shares most has of it. Pages of files are the machine's, which can drop them at any time; most of the
// supervisor's are of this very program.
func usageOf(all proc.Processes, roots []int) usage {
	var u usage
	var shared uint64
	for _, p := range atAndBelow(all, roots) {
		fields := p.Stat
		for i := range 4 {
			u.cpu += number(fields[statUserTime+i]) * tick
		}
		u.faults += number(fields[statMinorFaults])
		u.majorFaults += number(fields[statMajorFaults])
		u.processes++
		own, common := memoryOf(p.Pid)
		u.rss += own
		shared = max(shared, common)
	}
	u.memory = u.rss + shared
	u.workingSet = u.memory
	return u
}

// memoryOf returns the resident memory that a process has for itself, and that which it may share with others.
func memoryOf(pid int) (own, shared uint64) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kib := number(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "RssAnon":
			own = kib << 10
		case "RssShmem":
			shared = kib << 10
		}
	}
	return own, shared
}

func number(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64)
	return n
}
