package job

import (
	"fmt"
	"hash/fnv"
	"time"
)

// releasePlaces starts the next attempt if some replicas of a gang have had a node for scheduleTimeoutSeconds while others found none. Two jobs
// that each hold half of what the other needs would wait for each other for ever. A scheduler that places replicas together never
// gives a part of them a node, so the rule is only for jobs without one. Nothing is charged.
func (p *pass) releasePlaces() {
	timeout := p.Job.ScheduleTimeoutSeconds
	if timeout == nil || *timeout <= 0 || p.Job.Gang != nil || p.scope() != ScopeJob || len(p.incidents) > 0 || !p.next().Finishing.IsZero() {
		return
	}
	without, members, since := p.placesMissing()
	if without == 0 || without == members {
		return
	}
	if due := at(since, int64(*timeout)); p.Now.Before(due) {
		p.requeueAt(due)
		return
	}
	if !p.Live { // the last one may have found a node
		p.Ask.Pods = true
		return
	}
	s := p.next()
	row := s.InARow + 1
	why := fmt.Sprintf("%d of %d places were not found within scheduleTimeoutSeconds %d; not charged", without, members, *timeout)
	p.nextAttempt(ReasonUnplaced, why)
	s.InARow, s.NotBefore = row, ceil(p.Now.Add(p.releaseDelay(row)))
	p.count(JobsRestarted)
	p.reportRestart(why)
}

// placesMissing counts the members of the gang, and those of them without a node, since the last of them was created. While a member has no pod
// that stays, none is missing.
func (p *pass) placesMissing() (without, members int, since time.Time) {
	for _, r := range p.replicas {
		if !p.Job.InGang(*r.role) || p.done(r.Replica) || p.isLost(r.Replica) {
			continue
		}
		if r.pod == nil || p.handled(r) || p.isLeaving(r.pod) {
			return 0, 0, time.Time{}
		}
		members++
		if r.pod.Spec.NodeName == "" {
			without++
		}
		since = latest(since, r.pod.CreationTimestamp.Time)
	}
	return without, members, since
}

// releaseDelay is how long a job waits after it has released its places for the nth time in a row, so that another job can take them. Jobs that
// have released theirs at the same moment wait for different times, by their UIDs.
func (p *pass) releaseDelay(n int32) time.Duration {
	delay := restartDelay(n + 1)
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.Job.UID)) // never fails
	return delay + delay*time.Duration(h.Sum32()%100)/100
}
