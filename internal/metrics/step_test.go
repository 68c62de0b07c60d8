package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/job"
)

var day = time.Date(2026, 11, 16, 8, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return day.Add(time.Duration(seconds) * time.Second) }

func is(t job.ConditionType, since int) job.Condition {
	return job.Condition{Type: t, Status: true, LastTransition: at(since)}
}

func placed(second int) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(second))}}
	return pod
}

func TestSteps(t *testing.T) {
	open := job.Status{StartTime: at(5), Attempts: []job.Attempt{{Start: at(5)}}, Conditions: []job.Condition{is(job.Created, 0)}}
	running := open
	running.Conditions = []job.Condition{is(job.Created, 0), is(job.Running, 25)}
	ended := func(from job.Status, reason string, end int, conditions ...job.Condition) job.Status {
		from.Attempts = []job.Attempt{{Start: at(5), End: at(end), Reason: reason}}
		from.Conditions = append(slices.Clone(from.Conditions), conditions...)
		from.CompletionTime = at(end)
		return from
	}
	for _, row := range []struct {
		sentence      string
		before, after job.Status
		want          string
	}{
		{"a job waited in its queue until it began", job.Status{}, open, "queue 5"},
		{"a suspended job has not begun", job.Status{}, job.Status{StartTime: at(5), Conditions: []job.Condition{is(job.Suspended, 1)}}, ""},
		{"all replicas run, and the last had a node after 9 s", open, running, "schedule 9"},
		{"nothing happens", running, running, ""},
		{"it succeeded", running, ended(running, job.ReasonSucceeded, 105, is(job.Succeeded, 105)), "Succeeded 100, training 640, waiting 160"},
		{"it failed", running, ended(running, job.ReasonBackoffLimit, 105, is(job.Failed, 105)), "Failed 100, lost 640, waiting 160"},
		{"it failed before all replicas ran", open, ended(open, job.ReasonDeadlineExceeded, 15, is(job.Failed, 15)), "Failed 10, lost 0, waiting 80"},
		{"it restarts", running, func() job.Status {
			next := ended(open, job.ReasonRestarted, 35, is(job.Restarting, 35))
			next.Attempts = append(next.Attempts, job.Attempt{Number: 1, Start: at(35)})
			return next
		}(), "lost 80, waiting 160"},
		{"it is suspended", running, ended(open, job.ReasonSuspended, 35, is(job.Suspended, 35)), "training 80, waiting 160"},
		{"a finished job is looked at again", ended(running, job.ReasonSucceeded, 105, is(job.Succeeded, 105)), ended(running, job.ReasonSucceeded, 105, is(job.Succeeded, 105)), ""},
	} {
		registry := prometheus.NewRegistry()
		m, err := New(registry)
		if err != nil {
			t.Fatal(err)
		}
		m.RecordStep("team", "pytorch", Step{Created: day, Before: row.before, After: row.after, Pods: []*corev1.Pod{placed(6), placed(14), {}}, GPUs: 8})
		var got []string
		for name, metric := range gather(t, registry) {
			what, label, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{pytorch,team")
			value := metric.GetCounter().GetValue()
			if h := metric.GetHistogram(); h != nil {
				value = h.GetSampleSum()
			}
			what = strings.TrimSuffix(strings.TrimPrefix(what, "trainyard_job_"), "_seconds")
			if label != "" {
				what = strings.TrimPrefix(label, ",")
			}
			got = append(got, fmt.Sprint(what, " ", value))
		}
		slices.Sort(got)
		if diff := cmp.Diff(row.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.sentence, diff)
		}
	}
}
