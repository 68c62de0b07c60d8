package controller_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// failing is a script that does something the first time it is run, and trains for ever after.
func failing(t *testing.T, first string) string {
	return fmt.Sprintf(`mkdir %s 2>/dev/null && %s; sleep 600`, filepath.Join(t.TempDir(), "ran"), first)
}

// What happens to a worker in the table of restart policies.
const (
	deleted = "is deleted"
	evicted = "is evicted"
)

// outcome is what a failure leads to.
type outcome string

const (
	fails    outcome = "the job fails"
	charged  outcome = "restarted: charged"
	forgiven outcome = "restarted: not charged"
)

func TestRestartPolicies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, c := range []struct {
		policy  kubeflowv1.RestartPolicy
		happens string
		leads   outcome
	}{
		{kubeflowv1.RestartPolicyNever, "exit 1", fails},
		{kubeflowv1.RestartPolicyNever, deleted, fails},
		{kubeflowv1.RestartPolicyOnFailure, "exit 1", charged},
		{kubeflowv1.RestartPolicyOnFailure, deleted, forgiven},
		{kubeflowv1.RestartPolicyOnFailure, evicted, forgiven},
		{kubeflowv1.RestartPolicyAlways, "exit 1", charged},
		{kubeflowv1.RestartPolicyAlways, deleted, forgiven},
		{kubeflowv1.RestartPolicyExitCode, "exit 1", fails},
		{kubeflowv1.RestartPolicyExitCode, "exit 127", fails},
		{kubeflowv1.RestartPolicyExitCode, "exit 128", charged},
		{kubeflowv1.RestartPolicyExitCode, "sh -c 'kill -KILL $PPID'", charged},
		{kubeflowv1.RestartPolicyExitCode, evicted, forgiven},
	} {
		for _, scope := range []string{"Job", "Replica"} {
			w.row(fmt.Sprintf("%s, scope %s, a worker does %s: %s", c.policy, scope, c.happens, c.leads), func(w *world) {
				script := "sleep 600"
				if c.happens != deleted && c.happens != evicted {
					script = failing(w.t, c.happens)
				}
				job := lineup(scope, script, c.policy)
				job.SetName(fmt.Sprintf("row-%d-%s", i, strings.ToLower(scope)))
				j := w.submit(job)
				var other *corev1.Pod
				if script == "sleep 600" {
					j.becomes(kubeflowv1.JobRunning)
					other = j.pods()["chief-0"]
					j.disrupt("worker-0", c.happens)
				}
				j.meets(scope, c.leads, other)
			})
		}
	}
}

// lineup is a TFJob of a Chief that trains for ever and a Worker that runs the script, with a restart scope.
func lineup(scope, script string, policy kubeflowv1.RestartPolicy) client.Object {
	tf := tensorflow(roles{"Chief": running(1, "sleep 600"), "Worker": running(1, script)})
	tf.Annotations = map[string]string{kubeflowv1.AnnotationRestartScope: scope}
	tf.Spec.TFReplicaSpecs["Worker"].RestartPolicy = policy
	return tf
}

// disrupt does to a pod what a person or the cluster may do.
func (j *training) disrupt(replica, how string) {
	j.Helper()
	ctx, name := j.t.Context(), j.name+"-"+replica
	var err error
	if how == evicted {
		err = j.Client.PolicyV1().Evictions(j.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: j.Namespace}})
	} else {
		err = j.Client.CoreV1().Pods(j.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
	}
	if err != nil {
		j.Fatal(err)
	}
}

// meets waits for the outcome and checks what it cost, and whom. The other pod goes too where the whole job restarts.
func (j *training) meets(scope string, leads outcome, other *corev1.Pod) {
	j.Helper()
	if leads == fails {
		s := j.becomes(kubeflowv1.JobFailed)
		if s.Retries+s.Disruptions != 0 || s.CompletionTime == nil || !strings.Contains(newest(s).Message, "does not restart it") {
			j.Errorf("the status is\n%s", describe(s))
		}
		return
	}
	s := j.until("runs again", func(s kubeflowv1.JobStatus) bool { return newest(s).Type == kubeflowv1.JobRunning && s.Restarts > 0 })
	want := map[outcome][2]int32{charged: {1, 0}, forgiven: {0, 1}}[leads]
	if got := [2]int32{s.Retries, s.Disruptions}; got != want {
		j.Errorf("%d retries and %d disruptions, want %v", got[0], got[1], want)
	}
	if restarted := s.Attempt == 1; restarted != (scope == "Job") {
		j.Errorf("it is in attempt %d", s.Attempt)
	}
	if other != nil && (j.pods()["chief-0"].UID == other.UID) != (scope == "Replica") {
		j.Errorf("the other replica's pod is %s, it was %s", j.pods()["chief-0"].UID, other.UID)
	}
}

// An elastic job that may not restart its Workers goes on without those it loses, while enough are left.
func TestAnElasticJobLosesWorkersDownToItsMinimum(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	script := fmt.Sprintf(`case $HOSTNAME in *-2) exit 1;; *-1) until test -f %s; do sleep 0.1; done; exit 1;; esac; sleep 600`, gate)
	pj := pytorch(roles{"Worker": running(3, script)})
	pj.Spec.ElasticPolicy = &kubeflowv1.ElasticPolicy{MinReplicas: new(int32(2)), MaxReplicas: new(int32(3))}
	pj.Spec.PyTorchReplicaSpecs["Worker"].RestartPolicy = kubeflowv1.RestartPolicyNever
	j := newWorld(t).submit(pj)
	j.until("goes on without one", func(s kubeflowv1.JobStatus) bool {
		return newest(s).Type == kubeflowv1.JobRunning && s.LastFailure != nil && s.LastFailure.Replica == "worker-2"
	})
	open(t, gate)
	if s := j.becomes(kubeflowv1.JobFailed); !strings.Contains(newest(s).Message, "minReplicas 2") {
		t.Errorf("the message is %q", newest(s).Message)
	}
}

// The delay before a charged restart is none, then ten seconds. All times are the API server's or the status'.
func TestTheSecondRestartWaitsTenSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, scope := range []string{"Job", "Replica"} {
		w.row("scope "+scope, func(w *world) {
			dir := w.t.TempDir()
			gate := filepath.Join(dir, "gate")
			script := `echo run >> %[1]s/runs; case $(cat %[1]s/runs | wc -l) in 1) exit 137;; 2) until test -f %[2]s; do sleep 0.1; done; exit 137;; esac; sleep 600`
			job := lineup(scope, fmt.Sprintf(script, dir, gate), kubeflowv1.RestartPolicyExitCode)
			job.SetName("delayed-" + strings.ToLower(scope))
			j := w.submit(job)
			s := j.until("has failed once", func(s kubeflowv1.JobStatus) bool { return s.Retries == 1 })
			if s.NotBefore != nil || len(s.Records) > 0 && s.Records[0].NotBefore != nil {
				w.Errorf("the first restart is delayed: %+v", s)
			}
			open(w.t, gate)
			s = j.until("runs again after two failures", func(s kubeflowv1.JobStatus) bool {
				return newest(s).Type == kubeflowv1.JobRunning && s.Retries == 2
			})
			failed, again := s.LastFailure.Time, j.pods()["worker-0"].CreationTimestamp
			if waited := again.Sub(failed.Time).Seconds(); waited < 10 {
				w.Errorf("the second restart came %v seconds after the failure", waited)
			}
		})
	}
}
