package job

// RestartPolicy says what a replica's failure leads to.
type RestartPolicy string

// The restart policies.
const (
	RestartNever     RestartPolicy = "Never"
	RestartOnFailure RestartPolicy = "OnFailure"
	RestartAlways    RestartPolicy = "Always"
	// RestartExitCode: exit codes from 128, which are signals and the like, are worth another try; 1 to 127 are not.
	RestartExitCode RestartPolicy = "ExitCode"
)

// retries says whether the policy allows a restart after a failure, and whether that is charged to the backoff limit. A
// disruption is never charged.
func (policy RestartPolicy) retries(f *Failure) (retry, charge bool) {
	switch policy {
	case RestartOnFailure, RestartAlways:
		return true, f.Class == Application
	case RestartExitCode:
		if f.Class == Disruption {
			return true, false
		}
		retry = f.ExitCode >= 128 || f.Reason == reasonOOMKilled || f.Reason == reasonEvicted
		return retry, retry
	default:
		return false, false
	}
}

// notRetryable ends the job at a failure that the replica's restart policy does not retry. An elastic job goes on without
// the replica while enough of the others are left.
func (p *pass) notRetryable() *verdict {
	lost := p.lost()
	for _, i := range p.decisive() {
		if i.retry {
			continue
		}
		policy := "restartPolicy " + string(i.role.RestartPolicy) + " does not restart it"
		if !p.expendable(i.role.Name) {
			return p.fails(ReasonFailed, "%s; %s", i.Failure, policy).of(i.Failure)
		}
		lost++
		if left := p.Job.Size(*i.role) - lost; left < p.Job.Elastic.Min {
			return p.fails(ReasonFailed, "%s; %s, and minReplicas %[4]d needs more than the %[3]d that are left",
				i.Failure, policy, left, p.Job.Elastic.Min).of(i.Failure)
		}
	}
	return nil
}
