package cluster

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestGPUsAreGiven(t *testing.T) {
	type step struct {
		pod, container string
		gpus           int
		want           []string // nil: refused
	}
	for _, c := range []struct {
		name   string
		active []types.UID // the pods that kubelet says are there at the last step
		steps  []step
	}{
		{"two containers have different ones", nil, []step{{"a", "x", 1, []string{"0"}}, {"a", "y", 1, []string{"1"}}}},
		{"two pods have different ones", []types.UID{"a"}, []step{{"a", "x", 1, []string{"0"}}, {"b", "x", 1, []string{"1"}}}},
		{"a restarted container has those it had", []types.UID{"a", "b"}, []step{{"a", "x", 1, []string{"0"}}, {"b", "x", 1, []string{"1"}}, {"a", "x", 1, []string{"0"}}}},
		{"a container has as many as it wants", nil, []step{{"a", "x", 3, []string{"0", "1", "2"}}}},
		{"one that wants more than there are is refused", nil, []step{{"a", "x", 4, nil}}},
		{"one that wants more than are free is refused", []types.UID{"a"}, []step{{"a", "x", 2, []string{"0", "1"}}, {"b", "x", 2, nil}}},
		{"an init container's are the pod's afterwards", []types.UID{"a"},
			[]step{{"a", "init-1", 3, []string{"0", "1", "2"}}, {"a", "init-2", 2, []string{"0", "1"}}, {"a", "x", 2, []string{"0", "1"}}, {"a", "y", 1, []string{"2"}}}},
		{"an init container's are not another pod's", []types.UID{"a"}, []step{{"a", "init", 2, []string{"0", "1"}}, {"b", "x", 2, nil}}},
		{"a pod that has gone gives them back", []types.UID{"b"}, []step{{"a", "x", 3, []string{"0", "1", "2"}}, {"b", "x", 3, []string{"0", "1", "2"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGPUManager([]string{"0", "1", "2"})
			for i, s := range c.steps {
				if i == len(c.steps)-1 {
					g.active = func() []*corev1.Pod { return podsOf(c.active) }
				} else {
					g.active = func() []*corev1.Pod { return podsOf([]types.UID{"a", "b"}) }
				}
				got, err := g.give(gpuHolder{types.UID(s.pod), s.container, strings.HasPrefix(s.container, "init")}, s.gpus)
				if (err != nil) != (s.want == nil) || !slices.Equal(got, s.want) {
					t.Errorf("step %d: %v, %v", i, got, err)
				}
			}
		})
	}
}

func podsOf(all []types.UID) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, uid := range all {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}})
	}
	return pods
}

func TestABrokenDriverDoesNotHoldTheStart(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, row := range []struct {
		script, note string
		want         []string
		timeout      time.Duration
	}{
		{"echo GPU-a; echo GPU-b", "", []string{"GPU-a", "GPU-b"}, time.Minute},
		{"exit 9", "", nil, time.Minute},
		{"exec sleep 600", "pods get no GPUs: nvidia-smi has not answered for 10ms", nil, 10 * time.Millisecond},
	} {
		if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte("#!/bin/sh\n"+row.script), 0o755); err != nil {
			t.Fatal(err)
		}
		if gpus, note := findGPUs(context.Background(), row.timeout); !slices.Equal(gpus, row.want) || note != row.note {
			t.Errorf("%s: %v, %q", row.script, gpus, note)
		}
	}
}

func TestParseGPUUse(t *testing.T) {
	got := parseGPUUse("GPU-aaaa, 87, 40960\nGPU-bbbb, 0, 4\nGPU-cccc, [N/A], [N/A]\nunable to determine the device handle\n")
	want := map[string]gpuUse{"GPU-aaaa": {0.87, 40 << 30}, "GPU-bbbb": {0, 4 << 20}, "GPU-cccc": {}}
	if !maps.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}

// TestContainersUseTheGPUsThatTheyHold lets a script answer for nvidia-smi.
func TestContainersUseTheGPUsThatTheyHold(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho asked >> " + filepath.Join(dir, "asked") + "\nprintf '0, 50, 10\\n1, 100, 20\\n2, 10, 30\\n'\n"
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	g := newGPUManager([]string{"0", "1", "2"})
	usage := []containerUsage{{PodUID: "a", Container: "x"}, {PodUID: "a", Container: "sidecar"}, {PodUID: "b", Container: "x"}}
	g.addUse(t.Context(), usage)
	if _, err := os.Stat(filepath.Join(dir, "asked")); err == nil {
		t.Error("nvidia-smi is asked although nobody holds a GPU")
	}
	for _, holder := range []gpuHolder{{pod: "a", container: "x"}, {pod: "b", container: "x"}} {
		if _, err := g.give(holder, map[types.UID]int{"a": 2, "b": 1}[holder.pod]); err != nil {
			t.Fatal(err)
		}
		g.active = func() []*corev1.Pod { return podsOf([]types.UID{"a", "b"}) }
	}
	g.addUse(t.Context(), usage)
	if usage[0].GPU != 1.5 || usage[0].GPUMemory != 30<<20 || usage[1].GPU != 0 || usage[2].GPU != 0.1 {
		t.Errorf("the containers use %+v", usage)
	}
}
