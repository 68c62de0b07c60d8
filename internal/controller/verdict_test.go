package controller_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// Two things have happened while no operator was there to see which came first. The verdict goes by the order of the
// rules, whatever the order of roles or pods.
func TestTheOrderOfVerdicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := filepath.Join(t.TempDir(), "gate")
	when := func(end string) string { return fmt.Sprintf(`until test -f %s; do sleep 0.1; done; %s`, gate, end) }
	never := func(job client.Object) {
		for _, spec := range specsOf(job) {
			spec.RestartPolicy = kubeflowv1.RestartPolicyNever
		}
	}
	deadline := func(job client.Object) { policyOf(job).ActiveDeadlineSeconds = new(int64(1)) }
	limit := func(job client.Object) { policyOf(job).BackoffLimit = new(int32(0)) }
	suspend := func(job client.Object) { policyOf(job).Suspend = new(true) }
	table := []struct {
		sentence       string
		master, worker string
		before, after  func(client.Object)
		verdict        kubeflowv1.JobConditionType
		says           string
	}{
		{"success before a failure that may not be retried", "exit 0", "exit 1", never, nil, kubeflowv1.JobSucceeded, "successfully completed"},
		{"success before the deadline", "exit 0", "sleep 600", nil, deadline, kubeflowv1.JobSucceeded, "successfully completed"},
		{"success before the backoff limit", "exit 0", "exit 1", limit, nil, kubeflowv1.JobSucceeded, "successfully completed"},
		{"the deadline before a failure that may not be retried", "sleep 600", "exit 1", never, deadline, kubeflowv1.JobFailed, "activeDeadlineSeconds"},
		{"the deadline before the backoff limit", "sleep 600", "exit 1", limit, deadline, kubeflowv1.JobFailed, "activeDeadlineSeconds"},
		{"a failure that may not be retried before the backoff limit", "sleep 600", "exit 1", func(job client.Object) { never(job); limit(job) }, nil, kubeflowv1.JobFailed, "restartPolicy Never"},
		{"suspended: no verdict", "exit 0", "exit 1", never, suspend, kubeflowv1.JobSuspended, "is suspended"},
	}
	var all []*training
	for i, c := range table {
		job := pytorch(roles{"Master": running(1, when(c.master)), "Worker": running(1, when(c.worker))})
		job.Name = fmt.Sprintf("row-%d", i)
		if c.before != nil {
			c.before(job)
		}
		all = append(all, w.submit(job))
	}
	for _, j := range all {
		j.becomes(kubeflowv1.JobRunning)
	}
	w.stop()
	open(t, gate)
	for i, c := range table {
		for pod, script := range map[string]string{"master-0": c.master, "worker-0": c.worker} {
			if script != "sleep 600" {
				w.Until(all[i].name+"-"+pod, "over", func(p *corev1.Pod) bool {
					return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
				})
			}
		}
		if c.after != nil {
			all[i].edit(c.after)
		}
	}
	w.operate()
	for i, c := range table {
		w.row(c.sentence, func(w *world) {
			j := *all[i]
			j.world = w
			if s := j.becomes(c.verdict); !strings.Contains(newest(s).Message, c.says) {
				w.Errorf("the message is %q", newest(s).Message)
			}
		})
	}
}

// Whatever happens to the children of a finished job, its verdict stays, and it is the only one.
func TestAVerdictIsFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := filepath.Join(t.TempDir(), "gate")
	j := w.submit(tensorflow(roles{
		"Chief": running(1, "exit 0"), "Worker": running(1, fmt.Sprintf(`until test -f %s; do sleep 0.1; done; exit 1`, gate)),
	}, func(tf *kubeflowv1.TFJob) { tf.Spec.RunPolicy.CleanPodPolicy = new(kubeflowv1.CleanPodPolicyNone) }))
	before := j.becomes(kubeflowv1.JobSucceeded)
	open(t, gate)
	w.UntilPhase("demo-worker-0", corev1.PodFailed)
	w.Kubectl("delete", "pod", "demo-chief-0")
	j.edit(func(obj client.Object) { policyOf(obj).ActiveDeadlineSeconds = new(int64(1)) })
	w.waitForAnotherPass("after")
	after := j.status()
	if newest(after) != newest(before) || condition(after, kubeflowv1.JobFailed).Type != "" || !after.CompletionTime.Equal(before.CompletionTime) {
		t.Errorf("the status is\n%s", describe(after))
	}
	if j.pods()["chief-0"] != nil {
		t.Errorf("a replica of a finished job was made again")
	}
}
