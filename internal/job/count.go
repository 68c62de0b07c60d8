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
		if s.Finished() {
			// Pods of a finished job are removed; how it ended stays.
			is.Failed, is.Succeeded = max(is.Failed, was.Failed), max(is.Succeeded, was.Succeeded)
		}
		if !p.Job.prepares(role.Name) {
			active += is.Active
		}
	}
	s.Ready = fmt.Sprintf("%d/%d", active, p.Job.total())
	s.Message = p.message()
}
