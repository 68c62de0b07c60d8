package ui

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/record"
)

// get is the answer that the person gets.
func (s *site) get(t *testing.T, own *http.Cookie, path string) string {
	t.Helper()
	code, body, _ := s.ask(t, http.MethodGet, path, func(r *http.Request) { r.AddCookie(own) })
	if code != http.StatusOK {
		t.Fatalf("%s answers %d: %s", path, code, body)
	}
	return strings.TrimSpace(body)
}

func TestFiguresOfALogGrow(t *testing.T) {
	s := newSite(t)
	created := day
	s.add(t, record.Summary{UID: "j1", Name: "demo", Created: created}, failing(created, true))
	own := s.enter(t)
	if got := s.get(t, own, "/api/v1/jobs/j1/scalars"); got != `{"replica":"","replicas":[],"runs":[]}` {
		t.Errorf("without a log: %s", got)
	}
	s.write(t, "j1", 0, "p0", "step 1 loss=3.5", "no figure", "step 2 loss=nan")
	at := day.UnixMilli()
	first := fmt.Sprintf(`{"attempt":0,"restart":0,"series":[{"name":"loss","steps":[1,2],"times":[%d,%d],"values":[3.5,null]}]}`, at, at+2)
	if got := s.get(t, own, "/api/v1/jobs/j1/scalars"); got != `{"replica":"worker-0","replicas":["worker-0"],"runs":[`+first+`]}` {
		t.Errorf("of one attempt: %s", got)
	}
	s.write(t, "j1", 1, "p1", "{'loss': 1.5, 'step': 3}")
	second := fmt.Sprintf(`{"attempt":1,"restart":0,"series":[{"name":"loss","steps":[3],"times":[%d],"values":[1.5]}]}`, at)
	if got := s.get(t, own, "/api/v1/jobs/j1/scalars?replica=worker-0"); got != `{"replica":"worker-0","replicas":["worker-0"],"runs":[`+first+`,`+second+`]}` {
		t.Errorf("of two attempts: %s", got)
	}
}

// A progress bar is one line that is written for hours: its last state counts.
func TestFiguresOfAnOpenLineAreThoseOfNow(t *testing.T) {
	s := newSite(t)
	s.add(t, record.Summary{UID: "j1", Name: "demo", Created: day}, failing(day, true))
	w, err := s.store.WriteLog("default", "j1", record.Log{Replica: "worker-0", Container: "pytorch", Pod: "p0"})
	if err != nil {
		t.Fatal(err)
	}
	own, at := s.enter(t), day.UnixMilli()
	for _, row := range []struct{ entry, steps, values string }{
		{"P \rstep 1 loss=3", "1", "3"}, {"P \rstep 2 loss=2", "2", "2"}, {"F \rstep 3 loss=1", "3", "1"}, {"F step 4 loss=0.5", "3,4", "1,0.5"},
	} {
		if err := w.Write(fmt.Appendf(nil, "%s stderr %s\n", day.Format(time.RFC3339Nano), row.entry)); err != nil {
			t.Fatal(err)
		}
		times := strings.TrimSuffix(strings.Repeat(fmt.Sprint(at, ","), strings.Count(row.steps, ",")+1), ",")
		want := fmt.Sprintf(`"series":[{"name":"loss","steps":[%s],"times":[%s],"values":[%s]}]`, row.steps, times, row.values)
		if got := s.get(t, own, "/api/v1/jobs/j1/scalars"); !strings.Contains(got, want) {
			t.Errorf("after %q: %s, want %s", row.entry, got, want)
		}
	}
}

func TestUsageIsShownForEachPod(t *testing.T) {
	s := newSite(t)
	s.add(t, record.Summary{UID: "j1", Name: "demo", Created: day}, failing(day, true))
	if err := s.store.AddUsage("default", "j1", []record.Use{{Time: day, Pod: "p1", Cores: 1.5, Memory: 100}, {Time: day.Add(time.Second), Pod: "p1", Cores: 2, Memory: 200}}); err != nil {
		t.Fatal(err)
	}
	at := day.UnixMilli()
	want := fmt.Sprintf(`{"pods":[{"replica":"worker-0","attempt":1,"gpus":0,"times":[%d,%d],"cores":[1.5,2],"memory":[100,200],"gpu":[],"gpuMemory":[]}]}`, at, at+1000)
	if got := s.get(t, s.enter(t), "/api/v1/jobs/j1/usage"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCapacityIsAddedUp(t *testing.T) {
	amounts := func(cores, memory, gpus string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cores), "memory": resource.MustParse(memory), "nvidia.com/gpu": resource.MustParse(gpus)}
	}
	nodes := []corev1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: corev1.NodeSpec{Unschedulable: true}},
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{Allocatable: amounts("8", "1k", "4"), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}},
	}
	yes := true
	pod := func(node, job string, phase corev1.PodPhase) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Status: corev1.PodStatus{Phase: phase}}
		p.Spec.NodeName = node
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amounts("500m", "100", "1")}}}
		if job != "" {
			p.Labels = map[string]string{naming.LabelJobName: job}
			p.OwnerReferences = []metav1.OwnerReference{{UID: "u-1", Controller: &yes}}
		}
		if node == "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available"}}
		}
		return p
	}
	all, waiting := held(nodes, []corev1.Pod{
		pod("a", "demo", corev1.PodRunning), pod("a", "demo", corev1.PodRunning), pod("a", "", corev1.PodRunning), pod("a", "demo", corev1.PodSucceeded), pod("", "demo", corev1.PodPending),
		pod("gone", "demo", corev1.PodRunning),
	})
	got := fmt.Sprintf("%+v\n%+v", all, waiting)
	want := "[{Name:a State:ready Total:{Cores:8 Memory:1000 GPUs:4} Held:{Cores:1.5 Memory:300 GPUs:3}" +
		" Holders:[{Namespace:default Job:demo UID:u-1 Pods:2 Wants:{Cores:1 Memory:200 GPUs:2} Message:} {Namespace:default Job: UID: Pods:1 Wants:{Cores:0.5 Memory:100 GPUs:1} Message:}]}" +
		" {Name:b State:not ready, takes no new pods Total:{Cores:0 Memory:0 GPUs:0} Held:{Cores:0 Memory:0 GPUs:0} Holders:[]}]\n" +
		"[{Namespace:default Job:demo UID:u-1 Pods:1 Wants:{Cores:0.5 Memory:100 GPUs:1} Message:0/2 nodes are available}]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
