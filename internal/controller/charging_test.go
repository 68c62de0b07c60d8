package controller_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// One attempt that failed is one retry, however many of its pods fell; where replicas restart alone, each restart counts.
// backoffLimit N allows N retries: a job that always fails is run N+1 times.
func TestWhatIsChargedToTheBackoffLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	always := func(runs string) string { return fmt.Sprintf(`echo run >> %s; exit 137`, runs) }
	for i, c := range []struct {
		sentence string
		limit    int32
		job      func(runs string) client.Object
		retries  int32
		runs     int
	}{
		{"a gang of which all members fall at once, limit 1: it is run twice", 1, func(runs string) client.Object {
			after := fmt.Sprintf(`until test $(cat %s | wc -l) -gt $TRAINYARD_ATTEMPT; do sleep 0.1; done; exit 1`, runs)
			return pytorch(roles{"Master": running(1, after), "Worker": running(1, always(runs))})
		}, 1, 2},
		{"limit 0: it is run once", 0, func(runs string) client.Object {
			return pytorch(roles{"Worker": running(2, `test $RANK = 1 && sleep 600; `+always(runs))})
		}, 0, 1},
		{"a replica that the kubelet restarts in place, limit 1: it is run twice", 1, func(runs string) client.Object {
			return pytorch(roles{"Worker": running(1, always(runs))})
		}, 1, 2},
		{"a replica that is replaced, limit 1: it is run twice", 1, func(runs string) client.Object {
			tf := tensorflow(roles{"Chief": running(1, "sleep 600"), "Worker": running(1, always(runs))})
			tf.Spec.TFReplicaSpecs["Worker"].RestartPolicy = kubeflowv1.RestartPolicyExitCode
			return tf
		}, 1, 2},
		{"an init container that fails is charged like the training", 1, func(runs string) client.Object {
			pj := gang(1, "sleep 600")
			spec := &pj.Spec.PyTorchReplicaSpecs["Worker"].Template.Spec
			prepare := *spec.Containers[0].DeepCopy()
			prepare.Name, prepare.Command = "prepare", []string{"sh", "-c", always(runs)}
			spec.InitContainers = append(spec.InitContainers, prepare)
			return pj
		}, 1, 2},
	} {
		w.row(c.sentence, func(w *world) {
			runs := filepath.Join(w.t.TempDir(), "runs")
			job := c.job(runs)
			job.SetName(fmt.Sprintf("row-%d", i))
			policyOf(job).BackoffLimit = &c.limit
			j := w.submit(job)
			s := j.becomes(kubeflowv1.JobFailed)
			j.comesToRest()
			if n := count(w.t, runs); s.Retries != c.retries || n != c.runs {
				w.Errorf("%d runs, and the status is\n%s", n, describe(s))
			}
			if !strings.Contains(newest(s).Message, fmt.Sprintf("backoffLimit %d is used up", c.limit)) {
				w.Errorf("the message is %q", newest(s).Message)
			}
			w.inTime("the end", w.lastWord(s.LastFailure.Pod, s.CompletionTime.Time), s.CompletionTime.Time)
		})
	}
}

// lastWord is when the kubelet last told of a pod before the given time, by the API server's clock.
func (w *world) lastWord(pod string, before time.Time) time.Time {
	w.Helper()
	var last time.Time
	for _, r := range w.audited("") {
		at := r.RequestReceivedTimestamp.Time
		if r.ObjectRef.Resource == "pods" && r.ObjectRef.Subresource == "status" && r.ObjectRef.Name == pod && at.Before(before) {
			last = at
		}
	}
	return last
}

// Two replicas that fail once each are two retries where they restart alone.
func TestEveryReplicaThatRestartsAloneIsCharged(t *testing.T) {
	t.Parallel()
	runs := filepath.Join(t.TempDir(), "runs")
	script := fmt.Sprintf(`echo run >> %[1]s-$HOSTNAME; test $(wc -l < %[1]s-$HOSTNAME) = 1 && exit 1; sleep 600`, runs)
	tf := tensorflow(roles{"Worker": running(2, script)})
	tf.Spec.TFReplicaSpecs["Worker"].RestartPolicy = kubeflowv1.RestartPolicyOnFailure
	j := newWorld(t).submit(tf)
	j.until("runs after two retries", func(s kubeflowv1.JobStatus) bool {
		return newest(s).Type == kubeflowv1.JobRunning && s.Retries == 2 && s.Attempt == 0 && s.Disruptions == 0
	})
}
