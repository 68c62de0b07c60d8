package job

import corev1 "k8s.io/api/core/v1"

// Scope is what a failure restarts.
type Scope string

// The restart scopes.
const (
	// ScopeJob: the whole gang, as the next attempt. For collectives that are broken when one member is.
	ScopeJob Scope = "Job"
	// ScopeReplica: that replica alone.
	ScopeReplica Scope = "Replica"
)

// RestartScope is what a failure of this job restarts: what its user asked for, else the replica alone where there is
// only one, else what suits the kind.
func (j Job) RestartScope() Scope {
	switch {
	case j.ScopeOverride != "":
		return j.ScopeOverride
	case j.total() == 1:
		return ScopeReplica
	default:
		return j.Scope
	}
}

// gang reports whether the replicas know from their start how many they are, so that another number needs another attempt, whatever a
// failure restarts.
func (j Job) gang() bool { return j.Elastic == nil && j.Scope == ScopeJob }

// scope is what the incidents of this pass restart. An elastic job restarts as one when it has lost its rendezvous.
func (p *pass) scope() Scope {
	if p.anchorFailed() {
		return ScopeJob
	}
	return p.Job.RestartScope()
}

// PodRestartPolicy is the restart policy of a replica's pod, which the kubelet follows. Where more than the replica
// restarts, and where the exit code decides, it must leave that to us.
func (j Job) PodRestartPolicy(r Replica) corev1.RestartPolicy {
	policy := j.role(r.Role).RestartPolicy
	if j.RestartScope() == ScopeJob || j.anchor(r) || policy == RestartExitCode {
		return corev1.RestartPolicyNever
	}
	return corev1.RestartPolicy(policy)
}
