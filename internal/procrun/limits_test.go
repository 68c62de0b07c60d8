package procrun

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func withCgroup(c *Config) { c.Cgroup = fmt.Sprintf("procrun-test-%d", os.Getpid()) }

func memory(bytes int64) func(*v1.ContainerConfig) {
	return func(c *v1.ContainerConfig) {
		c.Linux = &v1.LinuxContainerConfig{Resources: &v1.LinuxContainerResources{MemoryLimitInBytes: bytes}}
	}
}

// gluttony takes 200 MB in one process.
const gluttony = "head -c 200000000 /dev/zero | tail | wc -c"

func TestMemoryLimit(t *testing.T) {
	w := newWorld(t, withCgroup)
	pod := w.pod("hungry")
	if rootless() {
		if notes := w.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "limits are not enforced") {
			t.Errorf("notes are %q", notes)
		}
		if out, code := w.run(pod, gluttony, memory(50<<20)); code != 0 {
			t.Errorf("without limits it should just run: %d %s", code, out)
		}
		return
	}
	if notes := w.Notes(); len(notes) > 0 {
		t.Fatalf("limits cannot be tested here: %s", notes)
	}
	for name, tt := range map[string]struct {
		script string
		limit  int64
		code   int32
		reason string
	}{
		"within its limit":                    {gluttony, 400 << 20, 0, "Completed"},
		"the command is killed":               {"exec tail /dev/zero", 50 << 20, 137, "OOMKilled"},
		"a child is killed, the command ends": {"tail /dev/zero; exit 3", 50 << 20, 3, "OOMKilled"},
		"a child is killed, nobody minds":     {"tail /dev/zero; exit 0", 50 << 20, 0, "Completed"},
		"a failure without a kill":            {"exit 3", 50 << 20, 3, "Error"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			status := w.ended(w.start(pod, tt.script, memory(tt.limit)))
			if status.GetExitCode() != tt.code || status.GetReason() != tt.reason {
				t.Errorf("got %d %s, want %d %s", status.GetExitCode(), status.GetReason(), tt.code, tt.reason)
			}
		})
	}
}

func TestLimitsOfARunningContainerChange(t *testing.T) {
	w := newWorld(t, withCgroup)
	pod := w.pod("grown")
	for name, before := range map[string]int64{"from a smaller one": 30 << 20, "from none": 0} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			id := w.start(pod, "trap exit TERM; while :; do sleep 0.1; done", memory(before))
			wanted := &v1.LinuxContainerResources{MemoryLimitInBytes: 60 << 20}
			w.must(w.UpdateContainerResources(context.Background(), id, &v1.ContainerResources{Linux: wanted}))
			c, err := w.container(id)
			w.must(err)
			if got := c.status().GetResources().GetLinux().GetMemoryLimitInBytes(); got != 60<<20 {
				t.Errorf("status says %d", got)
			}
			if rootless() {
				return
			}
			limit, err := os.ReadFile(c.group.Path("memory") + "/memory.limit_in_bytes")
			w.must(err)
			if got := strings.TrimSpace(string(limit)); got != "62914560" {
				t.Errorf("limit is %s", got)
			}
			pids, err := cgroups.GetPids(c.group.Path("memory"))
			if err != nil || len(pids) < 2 {
				t.Errorf("processes in the group: %v %v", pids, err)
			}
		})
	}
}

func TestNoControlGroupIsLeft(t *testing.T) {
	w := newWorld(t, withCgroup)
	if rootless() {
		if w.limits.parents != nil {
			t.Errorf("there are control groups: %v", w.limits.parents)
		}
		return
	}
	id := w.start(w.pod("gone"), "sleep 1000", memory(50<<20))
	c, err := w.container(id)
	w.must(err)
	own, parents := c.group.Path("memory"), w.limits.parents
	w.must(w.StopContainer(context.Background(), id, 0))
	if _, err := os.Stat(own); !os.IsNotExist(err) {
		t.Errorf("the container's group is still there: %v", err)
	}
	w.must(w.Close(context.Background()))
	for _, parent := range parents {
		if _, err := os.Stat(parent); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", parent, err)
		}
	}
}

// systemd and version 2 of control groups cannot be had in a test.
func TestDelegatedGroups(t *testing.T) {
	const terminal = "/user.slice/user-1000.slice/user@1000.service/app.slice/terminal.scope"
	for _, row := range []struct {
		name, own string
		yours     []string
		want      string
	}{
		{"root has them all", "/system.slice/ssh.service", []string{"/", "/system.slice/"}, "/"},
		{"a user's terminal", terminal, []string{"/user.slice/user-1000.slice/user@1000.service/", "/user.slice/user-1000.slice/user@1000.service/app.slice/"},
			"/user.slice/user-1000.slice/user@1000.service/"},
		{"a user by SSH", "/user.slice/user-1000.slice/session-3.scope", nil, ""},
		{"a group with this process in it cannot have children", "/user.slice/mine.scope", []string{"/user.slice/mine.scope/"}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := delegated(row.own, func(group string) bool { return slices.Contains(row.yours, group) })
			if got != row.want || (err != nil) != (row.want == "") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
