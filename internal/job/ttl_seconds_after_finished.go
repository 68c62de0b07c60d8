package job

import (
	"slices"
	"time"
)

// minTTLOfOwnedJobs is how long a finished job stays at least where another controller created it. A controller that polls, as
// Flyte does every ten seconds, must see the end: otherwise it takes the job for lost and runs it again.
const minTTLOfOwnedJobs = 30 * time.Second

// expire deletes a finished job when its TTL has passed. The garbage collector deletes its children, so the job stays while one of
// them may finish.
func (p *pass) expire() {
	ttl := p.Job.Policy.TTLSecondsAfterFinished
	if ttl == nil || !p.next().Finished() {
		return
	}
	due := at(p.next().ended(), int64(*ttl))
	if seen := p.next().ended().Add(minTTLOfOwnedJobs); p.Job.Owned && due.Before(seen) {
		due = seen
	}
	if p.Now.Before(due) {
		p.requeueAt(due)
		return
	}
	if slices.ContainsFunc(p.replicas, p.mayFinish) {
		return
	}
	p.DeleteJob = true
	p.count(JobsDeleted)
}

// ended is when the job finished. Training Operator left some of the jobs it failed without a completion time.
func (s *Status) ended() time.Time {
	if !s.CompletionTime.IsZero() {
		return s.CompletionTime
	}
	if s.Is(Failed) {
		return s.condition(Failed).LastTransition
	}
	return s.condition(Succeeded).LastTransition
}
