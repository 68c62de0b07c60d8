package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	info "github.com/google/cadvisor/lib/model"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
)

// machine describes the machine to kubelet, in place of cAdvisor, which would watch every cgroup of it.
type machine struct {
	root   string // a folder on the file system that pods use
	id     string
	bootID string
}

// newMachine is the machine as it is.
func newMachine(root string) machine {
	return machine{root: root, id: firstLine("/etc/machine-id"), bootID: firstLine("/proc/sys/kernel/random/boot_id")}
}

// newVirtualMachine is the machine under another identity, for a further node, whose process is started when it boots.
func newVirtualMachine(root, name string) machine {
	id := sha256.Sum256([]byte(firstLine("/etc/machine-id") + name))
	return machine{root: root, id: hex.EncodeToString(id[:16]), bootID: string(uuid.NewUUID())}
}

func (m machine) Start() error { return nil }

// MachineInfo is what the node offers.
func (m machine) MachineInfo(klog.Logger) (*info.MachineInfo, error) {
	memory, _ := meminfo()
	return &info.MachineInfo{
		NumCores:       runtime.NumCPU(),
		MemoryCapacity: memory,
		MachineID:      m.id,
		SystemUUID:     m.id,
		BootID:         m.bootID,
	}, nil
}

// VersionInfo names the kernel.
func (m machine) VersionInfo() (*info.VersionInfo, error) {
	return &info.VersionInfo{KernelVersion: firstLine("/proc/sys/kernel/osrelease"), ContainerOsVersion: osName()}, nil
}

// wholeMachine is the name of the control group that all processes are in.
const wholeMachine = "/"

// ContainerInfoV2 has what the whole machine uses, without which kubelet evicts nothing. Containers are measured by the runtime.
func (m machine) ContainerInfoV2(name string, _ info.RequestOptions) (map[string]info.ContainerInfo, error) {
	if name != wholeMachine {
		return map[string]info.ContainerInfo{}, nil
	}
	cpu, used := machineUse()
	memory, _ := meminfo()
	return map[string]info.ContainerInfo{wholeMachine: {
		ContainerReference: info.ContainerReference{Name: wholeMachine},
		Spec:               info.ContainerSpec{HasCpu: true, HasMemory: true, Memory: info.MemorySpec{Limit: memory}},
		Stats: []*info.ContainerStats{{
			Timestamp: time.Now(), Cpu: &info.CpuStats{Usage: info.CpuUsage{Total: cpu}}, Memory: &info.MemoryStats{Usage: used, WorkingSet: used},
		}},
	}}, nil
}

// GetRequestedContainersInfo has nothing: containers are measured by the runtime.
func (m machine) GetRequestedContainersInfo(string, info.RequestOptions) (map[string]*info.ContainerInfo, error) {
	return map[string]*info.ContainerInfo{}, nil
}

// ImagesFsInfo is the file system that pods use: there are no images.
func (m machine) ImagesFsInfo(context.Context) (info.FsInfo, error) { return m.GetDirFsInfo(m.root) }

// ContainerFsInfo is the file system that pods use.
func (m machine) ContainerFsInfo(context.Context) (info.FsInfo, error) {
	return m.GetDirFsInfo(m.root)
}

// RootFsInfo is the file system that pods use.
func (m machine) RootFsInfo() (info.FsInfo, error) { return m.GetDirFsInfo(m.root) }

// GetDirFsInfo reports how full a file system is.
func (m machine) GetDirFsInfo(path string) (info.FsInfo, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return info.FsInfo{}, fmt.Errorf("looking at the file system of %s: %w", path, err)
	}
	size := uint64(s.Bsize)
	return info.FsInfo{
		Device: path, Mountpoint: path,
		Capacity: s.Blocks * size, Available: s.Bavail * size, Usage: (s.Blocks - s.Bfree) * size,
		Inodes: &s.Files, InodesFree: &s.Ffree,
	}, nil
}

// meminfo reads the machine's memory, in all and available, in bytes.
func meminfo() (total, available uint64) {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	for line := range bytes.Lines(content) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 {
			continue
		}
		kib, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "MemTotal:":
			total = kib << 10
		case "MemAvailable:":
			available = kib << 10
		}
	}
	return total, available
}

// machineUse reads what the whole machine has used of its CPUs since it started, and uses of its memory now.
func machineUse() (cpuNanos, memory uint64) {
	total, available := meminfo()
	fields := strings.Fields(firstLine("/proc/stat")) // cpu user nice system idle iowait irq softirq steal …, in 1/100 s
	for i, field := range fields {
		ticks, err := strconv.ParseUint(field, 10, 64)
		if idle := i == 4 || i == 5; err == nil && !idle && i < 9 {
			cpuNanos += ticks * 10_000_000
		}
	}
	return cpuNanos, total - available
}

func firstLine(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return line
}

func osName() string {
	content, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); found {
			return strings.Trim(name, `"`)
		}
	}
	return ""
}
