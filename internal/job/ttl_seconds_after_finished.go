package job

import "time"

// readable is how long a finished job stays at least where another controller made it. One that polls, as Flyte does
// every ten seconds, must see the end, or it takes the job for lost and runs it all over again.
const readable = 30 * time.Second

// expire removes a finished job that has been kept for as long as its user wished. Its children are the garbage
// collector's.
func (p *pass) expire() {
	ttl := p.Job.Policy.TTLSecondsAfterFinished
	if ttl == nil || !p.next().Finished() {
		return
	}
	due := at(p.next().ended(), int64(*ttl))
	if seen := p.next().ended().Add(readable); p.Job.Owned && due.Before(seen) {
		due = seen
	}
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
