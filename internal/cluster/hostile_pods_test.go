package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// withMark marks all that a pod's containers start, by a variable of their environment.
func withMark(pod *corev1.Pod, mark string) *corev1.Pod {
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Env = append(pod.Spec.Containers[i].Env, corev1.EnvVar{Name: "MARK", Value: mark})
	}
	return pod
}

// left returns an error if a marked process still runs.
func left(mark string) error {
	if n := count(mark); n > 0 {
		return fmt.Errorf("%d processes still run", n)
	}
	return nil
}

// count is the number of marked processes.
func count(mark string) int {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	n := 0
	for _, path := range paths {
		if content, err := os.ReadFile(path); err == nil && strings.Contains("\x00"+string(content), "\x00MARK="+mark+"\x00") {
			n++
		}
	}
	return n
}

// supervisors is the number of containers' first processes below this one.
func supervisors() int {
	parents, names := map[int]int{}, map[int]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		content, _ := os.ReadFile(path)
		name, rest, _ := strings.Cut(string(content), ")")
		if fields := strings.Fields(rest); len(fields) > 1 {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			parents[pid], _ = strconv.Atoi(fields[1])
			_, names[pid], _ = strings.Cut(name, "(")
		}
	}
	n := 0
	for pid, name := range names {
		for above := pid; above > 1 && name == "trainyard-init"; above = parents[above] {
			if parents[above] == os.Getpid() {
				n++
				break
			}
		}
	}
	return n
}

func contains(text, part string) error {
	if !strings.Contains(text, part) {
		return fmt.Errorf("%q is not in %q", part, text)
	}
	return nil
}

func TestNastyPods(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	cases := []struct {
		what, script string
		phase        corev1.PodPhase
	}{
		{"a pod that leaves children behind", `sleep 1000 & sleep 1000 & exit 0`, corev1.PodSucceeded},
		{"a pod whose children ignore every signal", `(trap '' TERM INT HUP; while :; do sleep 1; done) & exit 0`, corev1.PodSucceeded},
		{"a pod that daemonizes", `setsid sh -c 'setsid sleep 1000 </dev/null >/dev/null 2>&1 &' & wait; exit 0`, corev1.PodSucceeded},
		{"a pod that forks hundreds of processes and fails", `i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i+1)); done; exit 4`, corev1.PodFailed},
		{"a pod whose children keep its output open", `sh -c 'while :; do echo still here; sleep 0.1; done' & exit 0`, corev1.PodSucceeded},
		{"a pod that makes orphans all the time", `i=0; while [ $i -lt 200 ]; do sh -c 'sleep 0.01 &'; i=$((i+1)); done; sleep 0.5; ! grep -l ') Z' /proc/[0-9]*/stat`, corev1.PodSucceeded},
		{"a pod that closes its output", `exec >&- 2>&-; sleep 0.3; exit 0`, corev1.PodSucceeded},
		{"a pod that stops itself", `(sleep 0.5; kill -CONT $$$$) & kill -STOP $$$$; exit 0`, corev1.PodSucceeded},
	}
	for i, c := range cases {
		name := fmt.Sprintf("nasty-%d", i)
		w.Create(withMark(local.Pod(name, c.script), w.Namespace+"/"+name))
	}
	for i, c := range cases {
		w.Run(t, c.what, func(t *testing.T, w *local.World) {
			name := fmt.Sprintf("nasty-%d", i)
			w.UntilPhase(name, c.phase)
			if err := left(w.Namespace + "/" + name); err != nil {
				t.Errorf("after its end %v", err)
			}
		})
	}
}

// Not parallel: it counts what is left on the cluster.
func TestTwoHundredPodsAtOnce(t *testing.T) {
	w := local.New(t)
	const pods = 200
	begin, before := time.Now(), supervisors()
	for i := range pods {
		pod := local.Pod(fmt.Sprintf("pod-%d", i), `echo hello from $(hostname)`)
		pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
		w.Create(withMark(pod, w.Namespace))
	}
	w.Eventually("all pods have succeeded", func() error {
		list, err := w.Client.CoreV1().Pods(w.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		phases := map[corev1.PodPhase]int{}
		for _, pod := range list.Items {
			phases[pod.Status.Phase]++
		}
		if phases[corev1.PodSucceeded] != pods {
			return fmt.Errorf("they are %v", phases)
		}
		return nil
	})
	t.Logf("%d pods ran to their end in %s", pods, time.Since(begin).Round(time.Second/10))
	if got := w.Logs("pod-123"); got != "hello from pod-123\n" {
		t.Errorf("the log of one of them is %q", got)
	}
	if err := left(w.Namespace); err != nil {
		t.Error(err)
	}
	if after := supervisors(); after != before {
		t.Errorf("there were %d supervisors and are %d", before, after)
	}
}
