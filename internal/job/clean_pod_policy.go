package job

import corev1 "k8s.io/api/core/v1"

// CleanPodPolicy says which pods of a finished job are removed.
type CleanPodPolicy string

// The clean-up policies.
const (
	// CleanNone keeps every pod as it is after an ordinary end.
	CleanNone CleanPodPolicy = "None"
	// CleanRunning stops what still runs or waits, and keeps finished pods for their logs.
	CleanRunning CleanPodPolicy = "Running"
	// CleanAll removes every pod.
	CleanAll CleanPodPolicy = "All"
)

// clean removes what a finished job leaves behind. Every pass does it until nothing is left to remove: a request may be
// lost. Services go when no pod is left that could use them, other children at once.
func (p *pass) clean() {
	finishing := map[*corev1.Pod]bool{}
	for _, r := range p.replicas {
		if p.mayFinish(r) {
			finishing[r.pod] = true
		}
	}
	inUse := false
	for _, pod := range p.allPods() {
		if p.isRemoved(pod) && !finishing[pod] {
			p.deletePod(pod, "the job is finished")
		}
		inUse = inUse || !isOver(pod)
	}
	p.deleteChildren(!inUse)
}

// isRemoved reports whether a pod of the finished job is removed. The pods of a job that exceeded a limit are stopped whatever
// the policy: otherwise it would go on beyond the limit.
func (p *pass) isRemoved(pod *corev1.Pod) bool {
	switch p.Job.Policy.CleanPodPolicy {
	case CleanAll:
		return true
	case CleanNone:
		return !isOver(pod) && p.exceededLimit()
	default:
		return !isOver(pod)
	}
}

// mayFinish reports whether a replica still trains and has time to finish: a Worker that writes its part of a checkpoint when the
// Master, which decides, has succeeded.
func (p *pass) mayFinish(r replica) bool {
	due := p.next().CompletionTime.Add(p.Job.Policy.FinishWithin)
	if p.next().endReason() != ReasonSucceeded || !p.Now.Before(due) || r.pod == nil || r.pod.DeletionTimestamp != nil || !r.role.MayFinish || !r.running {
		return false
	}
	p.requeueAt(due)
	return true
}

func (p *pass) exceededLimit() bool {
	switch p.next().endReason() {
	case ReasonDeadlineExceeded, ReasonBackoffLimit, ReasonMaxDisruptions, ReasonRefused:
		return true
	}
	return false
}
