package kinds

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/testing/golden"
)

// TestGangs shows what each scheduler is told of the job in testdata/gangs: the pod group, and how a pod names it.
func TestGangs(t *testing.T) {
	for _, name := range []string{"kubernetes", "volcano", "some-scheduler"} {
		t.Run(name, func(t *testing.T) {
			m := read(t, "testdata/gangs/job.txt")
			m.PlaceTogether(manifest.GangSchedulerNamed(name))
			got := append(encode(t, groupOf(t, m)), "---\n"...)
			got = append(got, encode(t, membershipOf(m.Pod(job.Replica{Role: "Worker", Index: 1}, 2)))...)
			golden.Check(t, "testdata/gangs/"+name+".txt", string(got))
		})
	}
}

// TestGangsOfEveryKind shows which replicas of each manifest in testdata are placed together, and that there is one of every kind. The
// pods name the group that the scheduler waits for, and no others do.
func TestGangsOfEveryKind(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, kind := range All {
		missing[kind.Name()] = true
	}
	var table strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, ".children.yaml") || strings.HasSuffix(file, "-no-runtime.yaml") {
			continue
		}
		kind, obj := object(t, file)
		m := kind.Read(obj)
		m.PlaceTogether(manifest.GangSchedulerNamed(manifest.GangKubernetes))
		var members, others []string
		for _, role := range m.Job.Roles {
			for i := range m.Job.Size(role) {
				pod := m.Pod(job.Replica{Role: role.Name, Index: i}, 0)
				if pod.Spec.SchedulingGroup != nil {
					members = append(members, pod.Name)
				} else {
					others = append(others, pod.Name)
				}
			}
		}
		if len(members) > 0 {
			delete(missing, kind.Name())
		}
		fmt.Fprintf(&table, "%s (%s): %d together\n", filepath.Base(file), kind.Name(), m.Job.Together())
		fmt.Fprintf(&table, "  in the group: %s\n  not in it: %s\n", listed(members), listed(others))
	}
	golden.Check(t, "testdata/gangs/kinds.txt", table.String())
	for name := range missing {
		t.Errorf("no manifest in testdata is a gang of kind %s", name)
	}
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " ")
}

// groupOf is the pod group of the job's attempt 2, with all its members.
func groupOf(t *testing.T, m *manifest.Manifest) manifest.Object {
	t.Helper()
	i := slices.IndexFunc(m.Job.Children, func(c job.Child) bool { return c.Kind == "PodGroup" })
	if i < 0 {
		t.Fatal("the job has no pod group")
	}
	group := m.Job.Children[i]
	group.Members = m.Job.Together()
	group.SetName(m.Job.GroupName(2))
	return manifest.WithMembers(group)
}

// membershipOf is what a pod says to its scheduler.
func membershipOf(pod *corev1.Pod) *corev1.Pod {
	short := &corev1.Pod{}
	short.Name, short.Labels, short.Annotations = pod.Name, pod.Labels, pod.Annotations
	short.Spec.SchedulerName, short.Spec.PriorityClassName, short.Spec.SchedulingGroup = pod.Spec.SchedulerName, pod.Spec.PriorityClassName, pod.Spec.SchedulingGroup
	return short
}

func encode(t *testing.T, obj any) []byte {
	t.Helper()
	text, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A scheduler is not asked where the job has nothing to place together, or has chosen another one.
func TestJobsThatAreNoGang(t *testing.T) {
	for sentence, change := range map[string]func(*manifest.Manifest){
		"one replica": func(m *manifest.Manifest) { m.Job.Roles = m.Job.Roles[:1] },
		"a template names another scheduler": func(m *manifest.Manifest) {
			m.Templates["Worker"].Spec.SchedulerName = "mine"
		},
		"the roles have different priorities": func(m *manifest.Manifest) { m.Templates["Worker"].Spec.PriorityClassName = "low" },
	} {
		m := read(t, "testdata/gangs/job.txt")
		change(m)
		m.PlaceTogether(manifest.GangSchedulerNamed(manifest.GangKubernetes))
		pod := m.Pod(job.Replica{Role: "Master"}, 0)
		if group := slices.ContainsFunc(m.Job.Children, func(c job.Child) bool { return c.Kind == "PodGroup" }); group || m.Job.Gang != nil || pod.Spec.SchedulingGroup != nil {
			t.Errorf("%s: there is a pod group", sentence)
		}
	}
	m := read(t, "testdata/gangs/job.txt")
	m.Templates["Worker"].Spec.SchedulerName = corev1.DefaultSchedulerName
	if m.PlaceTogether(manifest.GangSchedulerNamed(manifest.GangKubernetes)); m.Job.Gang == nil {
		t.Error("a template that names the default scheduler: there is no pod group")
	}
}
