package procrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fs"
	"github.com/opencontainers/cgroups/fs2"
	"golang.org/x/sys/unix"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trainyard/trainyard/internal/procrun/proc"
)

// limits creates the control groups that enforce containers' limits, one group per container under one parent.
// Where the machine does not allow that, there are none, and why gives the reason.
type limits struct {
	parents map[string]string // controller to directory; "" stands for all controllers of version 2
	why     string
}

// controllers are those of version 1 that are used.
var controllers = []string{"cpu", "cpuacct", "memory", "pids"}

func newLimits(name string) *limits {
	if name == "" {
		return &limits{why: "memory and CPU limits are not enforced: the local cluster was started without them"}
	}
	l := &limits{parents: map[string]string{}}
	err := l.find(name)
	if err == nil {
		l.sweep()
		err = l.probe()
	}
	if err != nil {
		return &limits{why: fmt.Sprintf("memory and CPU limits are not enforced: control groups are not writable here (%v)", err)}
	}
	return l
}

// find decides where the parent is. For version 2 that is at the top, or below the highest group that this user has, because a group
// with processes cannot have children. For version 1 it is below the group this process is in.
func (l *limits) find(name string) error {
	if cgroups.IsCgroup2UnifiedMode() {
		own, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
		if err != nil {
			return err
		}
		group, err := delegated(own[""], func(group string) bool { return mayFill(filepath.Join(fs2.UnifiedMountpoint, group)) })
		if err != nil {
			return err
		}
		l.parents[""] = filepath.Join(fs2.UnifiedMountpoint, group, name)
		return nil
	}
	for _, controller := range controllers {
		own, err := cgroups.GetOwnCgroupPath(controller)
		if err != nil {
			return err
		}
		l.parents[controller] = filepath.Join(own, name)
	}
	return nil
}

// delegated is the highest group above a process's own that it may fill with groups, "/" for root. systemd gives each user one, and
// what the user starts by it is below that.
func delegated(own string, mayFill func(group string) bool) (string, error) {
	for i := range own {
		if group := own[:i]; own[i] == '/' && mayFill(group+"/") {
			return group + "/", nil
		}
	}
	return "", fmt.Errorf("no group above %s is yours; systemd gives you one by `systemd-run --user --scope trainyard …`", own)
}

// mayFill reports whether this process may create groups in a group and move processes of its own into them.
func mayFill(dir string) bool {
	for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if unix.Access(filepath.Join(dir, file), unix.W_OK) != nil {
			return false
		}
	}
	return true
}

// probe creates and removes a group as a container with limits has one. The parent goes with it: the first container that has limits
// makes it again, and a cluster that is killed without one leaves nothing.
func (l *limits) probe() error {
	defer l.close()
	group, err := l.create("probe", &v1.LinuxContainerResources{MemoryLimitInBytes: 64 << 20, CpuQuota: 10000, CpuPeriod: 100000})
	if err != nil {
		return err
	}
	return group.Destroy()
}

// sweep removes the groups that a process which was killed left behind.
func (l *limits) sweep() {
	for _, parent := range l.parents {
		entries, _ := os.ReadDir(parent)
		for _, entry := range entries {
			if entry.IsDir() {
				_ = cgroups.RemovePath(filepath.Join(parent, entry.Name()))
			}
		}
	}
}

// Sweep removes the control groups that a runtime with this name for them left behind when it was killed.
func Sweep(cgroup string) {
	l := &limits{parents: map[string]string{}}
	if l.find(cgroup) == nil {
		l.close()
	}
}

// close removes the parent; the containers' groups are gone by then.
func (l *limits) close() {
	l.sweep()
	for _, parent := range l.parents {
		_ = os.Remove(parent)
	}
}

// group creates a container's control group. It returns nil where there is nothing to limit or no way to do so.
func (l *limits) group(id string, wanted *v1.LinuxContainerResources) (cgroups.Manager, error) {
	if l.parents == nil || !limiting(wanted) {
		return nil, nil
	}
	group, err := l.create(id, wanted)
	if err != nil {
		return nil, fmt.Errorf("setting limits: %w", err)
	}
	return group, nil
}

// limiting reports whether a container has limits. One without gets no group, which saves the time to create and remove it.
func limiting(wanted *v1.LinuxContainerResources) bool {
	return wanted.GetMemoryLimitInBytes() > 0 || wanted.GetCpuQuota() > 0
}

func (l *limits) create(id string, wanted *v1.LinuxContainerResources) (cgroups.Manager, error) {
	config := &cgroups.Cgroup{Name: id, Resources: resources(wanted)}
	paths := map[string]string{}
	for controller, parent := range l.parents {
		paths[controller] = filepath.Join(parent, id)
	}
	group, err := newGroup(config, paths)
	if err != nil {
		return nil, err
	}
	if err := group.Apply(-1); err != nil {
		return nil, err
	}
	if err := group.Set(config.Resources); err != nil {
		return nil, errors.Join(err, group.Destroy())
	}
	return group, nil
}

func newGroup(config *cgroups.Cgroup, paths map[string]string) (cgroups.Manager, error) {
	if path, unified := paths[""]; unified {
		return fs2.NewManager(config, path)
	}
	return fs.NewManager(config, paths)
}

func resources(wanted *v1.LinuxContainerResources) *cgroups.Resources {
	shares := uint64(wanted.GetCpuShares())
	r := &cgroups.Resources{
		CpuShares: shares, CpuWeight: cgroups.ConvertCPUSharesToCgroupV2Value(shares),
		CpuQuota: wanted.GetCpuQuota(), CpuPeriod: uint64(wanted.GetCpuPeriod()),
		Memory: wanted.GetMemoryLimitInBytes(), MemorySwap: wanted.GetMemorySwapLimitInBytes(),
		SkipDevices: true,
	}
	if r.MemorySwap == 0 {
		r.MemorySwap = r.Memory // memory that may go to swap is not limited
	}
	if cgroups.IsCgroup2UnifiedMode() {
		r.Unified = wanted.GetUnified()
	}
	return r
}

// placeIn returns what moves a process into the group.
func placeIn(group cgroups.Manager) func(pid int) error {
	return func(pid int) error {
		if group == nil {
			return nil
		}
		if err := group.AddPid("", pid); err != nil {
			return fmt.Errorf("setting limits: %w", err)
		}
		return nil
	}
}

// remove removes a group whose processes have ended.
func remove(group cgroups.Manager) {
	if group != nil {
		_ = group.Destroy()
	}
}

// outOfMemory reports whether the kernel killed a process of the group for its memory.
func outOfMemory(group cgroups.Manager) bool {
	if group == nil {
		return false
	}
	kills, err := group.OOMKillCount()
	return err == nil && kills > 0
}

// UpdateContainerResources changes the limits of a container, running or not.
func (r *Runtime) UpdateContainerResources(_ context.Context, id string, wanted *v1.ContainerResources) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	c.starting.Lock()
	defer c.starting.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != nil || c.supervisor == nil:
	case c.group != nil:
		err = c.group.Set(resources(wanted.GetLinux()))
	default:
		if c.group, err = r.limits.group(c.id, wanted.GetLinux()); c.group != nil {
			for _, p := range atAndBelow(proc.ReadAll(), c.roots()) {
				err = errors.Join(err, placeIn(c.group)(p.Pid))
			}
		}
	}
	if err != nil {
		return fmt.Errorf("updating limits of container %q: %w", c.name(), err)
	}
	c.resources = wanted.GetLinux()
	return nil
}

// Notes says in sentences what containers cannot have on this machine.
func (r *Runtime) Notes() []string {
	if r.limits.why == "" {
		return nil
	}
	return []string{r.limits.why}
}
