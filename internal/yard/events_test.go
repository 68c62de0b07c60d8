package yard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
)

var day = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

// noted is an event of demo's, as the n-th thing that was stored. A time with parts of a second is in the new field.
func noted(n int, after time.Duration, kind, text string, changes ...func(*corev1.Event)) corev1.Event {
	e := corev1.Event{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(n)}, Message: text, Reason: text}
	e.InvolvedObject = corev1.ObjectReference{Kind: kind, Name: "demo", UID: "j1"}
	if kind == "Pod" {
		e.InvolvedObject.Name, e.InvolvedObject.UID = "demo-worker-0", "p1"
	}
	if at := day.Add(after); after%time.Second == 0 {
		e.FirstTimestamp, e.LastTimestamp = metav1.NewTime(at), metav1.NewTime(at)
	} else {
		e.EventTime = metav1.NewMicroTime(at)
	}
	for _, change := range changes {
		change(&e)
	}
	return e
}

func TestTheTimelineIsInTheOrderOfTime(t *testing.T) {
	const ms = time.Millisecond
	condition := func(t job.ConditionType, after time.Duration, holds bool) job.Condition {
		return job.Condition{Type: t, Status: holds, Reason: "PyTorchJob" + string(t), Message: strings.ToLower(string(t)), LastTransition: day.Add(after)}
	}
	repeated := func(e *corev1.Event) {
		e.Count, e.LastTimestamp = 3, metav1.NewTime(e.FirstTimestamp.Add(20*time.Second))
	}
	series := func(e *corev1.Event) {
		e.Series = &corev1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(day.Add(30 * time.Second))}
	}
	for _, row := range []struct {
		sentence   string
		conditions []job.Condition
		noted      []corev1.Event
		want       []string
	}{
		{"the job was created when its object was, though the condition was renewed after it was suspended",
			[]job.Condition{condition(job.Created, 10*time.Second, true), condition(job.Suspended, 9*time.Second, true)},
			[]corev1.Event{noted(7, 9200*ms, "PyTorchJob", "suspended"), noted(5, 2*time.Second, "Pod", "started")},
			[]string{"0 created", "2 started", "9 suspended"}},
		{"it runs once what it needs has started in the same second, before or after that was stored",
			[]job.Condition{condition(job.Created, 0, true), condition(job.Running, 2*time.Second, true)},
			[]corev1.Event{noted(9, 2*time.Second, "Pod", "started"), noted(5, 1500*ms, "Pod", "assigned")},
			[]string{"0 created", "1 assigned", "2 started", "2 running"}},
		{"within a second the order counts in which whole and exact times were stored",
			nil, []corev1.Event{noted(6, 6*time.Second, "Pod", "stopping"), noted(5, 6900*ms, "PyTorchJob", "restarting")},
			[]string{"6 restarting", "6 stopping"}},
		{"what one recorder stores by several hands is in the order in which it happened",
			nil, []corev1.Event{noted(5, 6700*ms, "PyTorchJob", "cleaned up"), noted(6, 6*time.Second, "Pod", "stopping"), noted(7, 6600*ms, "PyTorchJob", "failed")},
			[]string{"6 failed", "6 stopping", "6 cleaned up"}},
		{"an event that was recorded often appears at its first and last time, with the count",
			nil, []corev1.Event{noted(5, time.Second, "Pod", "started", repeated), noted(6, 1500*ms, "Pod", "unschedulable", series), noted(4, 22*time.Second, "Pod", "other")},
			[]string{"1 started", "1 unschedulable", "21 started 3 since 1", "22 other", "30 unschedulable 4 since 1"}},
		{"nothing of another job, nor of one of the same name before",
			nil, []corev1.Event{noted(5, -time.Second, "Pod", "older"), noted(6, time.Second, "PyTorchJob", "another", func(e *corev1.Event) { e.InvolvedObject.UID = "j0" })},
			nil},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			pj := &kubeflowv1.PyTorchJob{ObjectMeta: metav1.ObjectMeta{Name: "demo", UID: "j1", CreationTimestamp: metav1.NewTime(day)}}
			m := &manifest.Manifest{Job: job.Job{Name: "demo", UID: "j1", Roles: []job.Role{{Name: "Worker"}}}, Status: job.Status{Conditions: row.conditions}}
			var got []string
			for _, e := range timeline(&Job{Kind: kinds.All[0], Object: pj, Manifest: m}, row.noted) {
				line := fmt.Sprintf("%d %s", e.Time.Sub(day)/time.Second, e.Text)
				if e.Times > 1 {
					line += fmt.Sprintf(" %d since %d", e.Times, e.First.Sub(day)/time.Second)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("another order (-want +got):\n%s", diff)
			}
		})
	}
}
