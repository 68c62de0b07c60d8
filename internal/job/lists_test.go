package job

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lists counts how often the controller lists the job's pods past its cache.
type lists struct{ n int }

func (l *lists) decided(_ Observed, d Decision) {
	if d.Ask.Pods {
		l.n++
	}
}
func (l *lists) recorded(Observed, Decision) {}
func (l *lists) created(*corev1.Pod)         {}
func (l *lists) deleting(*corev1.Pod, bool)  {}

// Fifty replicas were evicted and start again, ten a second. A list of all pods for each of them would be fifty.
func TestReplacedReplicasThatStartShareAList(t *testing.T) {
	const replicas = 50
	j := demo(0)
	tensorflow(&j)
	j.Roles[2].Replicas = replicas
	w := started(t, j)
	for _, pod := range sorted(w.pods) {
		w.evict(w.pods[pod.Name], 137)
	}
	rest(t, w)
	counted := &lists{}
	w.watch = counted
	for _, pod := range sorted(w.pods) {
		w.start(w.pods[pod.Name], "n1")
		w.main(w.pods[pod.Name]).State.Running.StartedAt = metav1.NewTime(w.now.Truncate(time.Second))
		w.changed()
		rest(t, w)
		w.now = w.now.Add(100 * time.Millisecond)
	}
	w.now = w.now.Add(startListWait)
	rest(t, w)
	if started := len(w.status.role("Worker").Started); started != replicas || counted.n > 4 {
		t.Errorf("%d of %d replicas have started, and there were %d lists", started, replicas, counted.n)
	}
}
