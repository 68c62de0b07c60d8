package job

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestRestartScope(t *testing.T) {
	for _, row := range []struct {
		sentence string
		job      Job
		scope    Scope
		kubelet  corev1.RestartPolicy
	}{
		{"a gang restarts as one, and the kubelet keeps out of it", demo(2), ScopeJob, corev1.RestartPolicyNever},
		{"a single replica restarts in place", demo(0), ScopeReplica, corev1.RestartPolicyOnFailure},
		{"replicas of a TFJob restart alone", demo(2, tensorflow), ScopeReplica, corev1.RestartPolicyOnFailure},
		{"the user may ask for the replica alone", demo(2, func(j *Job) { j.ScopeOverride = ScopeReplica }), ScopeReplica, corev1.RestartPolicyOnFailure},
		{"the user may ask for the whole job", demo(0, func(j *Job) { j.ScopeOverride = ScopeJob }), ScopeJob, corev1.RestartPolicyNever},
		{"an elastic job's rendezvous is restarted with all who meet there", demo(2, elastic), ScopeReplica, corev1.RestartPolicyNever},
		{"unless the user asks for the replica alone", demo(2, elastic, func(j *Job) { j.ScopeOverride = ScopeReplica }), ScopeReplica, corev1.RestartPolicyOnFailure},
		{"a single node restarts in place, however much is fetched for it", demo(0, steps, replicas("node", 1)), ScopeReplica, corev1.RestartPolicyOnFailure},
		{"nodes are a gang also where a step waits for their end", demo(0, steps, replicas("evaluate", 1)), ScopeJob, corev1.RestartPolicyNever},
		{"where the exit code decides, the kubelet cannot", demo(2, tensorflow, policy(RestartExitCode)), ScopeReplica, corev1.RestartPolicyNever},
		{"Always is passed on", demo(2, tensorflow, policy(RestartAlways)), ScopeReplica, corev1.RestartPolicyAlways},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := row.job.RestartScope(); got != row.scope {
				t.Errorf("scope %s, want %s", got, row.scope)
			}
			if got := row.job.PodRestartPolicy(Replica{Role: row.job.Roles[0].Name}); got != row.kubelet {
				t.Errorf("the kubelet is told %s, want %s", got, row.kubelet)
			}
		})
	}
}

// elastic makes Workers of all, of any number up to four.
func elastic(j *Job) {
	j.Roles, j.Scope, j.Success = j.Roles[1:], ScopeReplica, Success{Role: "Worker", Rule: SuccessAny}
	j.Elastic = &Elastic{Role: "Worker", Min: 1, Max: 4, Anchored: true}
}

func replicas(role string, n int32) func(*Job) {
	return func(j *Job) { j.role(role).Replicas = n }
}

func policy(p RestartPolicy) func(*Job) {
	return func(j *Job) {
		for i := range j.Roles {
			j.Roles[i].RestartPolicy = p
		}
	}
}
