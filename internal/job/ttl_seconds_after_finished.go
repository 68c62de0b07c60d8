package job

import "time"

// expire removes a finished job that has been kept for as long as its user wished. Its children are the garbage
// collector's.
func (p *pass) expire() {
	ttl := p.Job.Policy.TTLSecondsAfterFinished
	if ttl == nil || !p.next().Finished() {
		return
	}
	due := at(p.next().ended(), int64(*ttl))
	if p.Now.Before(due) {
		p.lookAt(due)
		return
	}
	p.DeleteJob = true
	p.tell(JobsDeleted)
}

// ended is when a finished job did so. Training Operator left some of the jobs it failed without a completion time.
func (s *Status) ended() time.Time {
	if !s.CompletionTime.IsZero() {
		return s.CompletionTime
	}
	if s.Is(Failed) {
		return s.condition(Failed).LastTransition
	}
	return s.condition(Succeeded).LastTransition
}
