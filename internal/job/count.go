package job

import "fmt"

// countReplicas sums up what the pods show: the numbers of every role, and what the job waits for.
func (p *pass) countReplicas() {
	s := p.next()
	var active int32
	for _, role := range p.Job.Roles {
		is := s.role(role.Name)
		was := *is
		is.Active, is.Failed, is.Succeeded = 0, 0, int32(len(is.Done))
		for _, r := range p.replicas {
			if r.Role != role.Name || r.pod == nil || p.isLeaving(r.pod) {
				continue
			}
			if r.failure != nil {
				is.Failed++
			} else if r.running && !p.done(r.Replica) {
				is.Active++
			}
		}
		if s.Is(Suspended) {
			// Whoever suspends a job to have its places, as Kueue does, waits until nothing is active.
			is.Active = p.remaining(role.Name)
		}
		if s.Finished() {
			// Pods of a finished job are removed; how it ended stays.
			is.Failed, is.Succeeded = max(is.Failed, was.Failed), max(is.Succeeded, was.Succeeded)
		}
		if !p.Job.prepares(role.Name) && !s.Is(Suspended) {
			active += is.Active
		}
	}
	s.Ready = fmt.Sprintf("%d/%d", active, p.Job.total())
	s.Message = p.message()
}

// remaining counts the pods of a role that have a node and have not ended, whatever will become of them.
func (p *pass) remaining(role string) int32 {
	var n int32
	for _, pod := range p.allPods() {
		if r, _, ok := p.Job.replicaOf(pod); ok && r.Role == role && pod.Spec.NodeName != "" && !isOver(pod) {
			n++
		}
	}
	return n
}
