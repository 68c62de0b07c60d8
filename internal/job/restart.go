package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// incident is a failure that is not charged yet.
type incident struct {
	replica
	*Failure
	// newInPlace is the number of new failures after which the kubelet restarts the container by itself; zero where the pod
	// has failed for good, and only we can restart the replica.
	newInPlace int32
	// retry: the restart policy allows a restart. charge: the restart counts against the backoff limit.
	retry, charge bool
}

// findIncidents finds the failures that are new. A pod that was handled, or is of an earlier attempt, shows none; a replica
// that has started and has no pod has vanished. No failure is charged on the word of a cache: after a change of leader it
// may show pods whose failures are charged already, or lack pods that a recorded pass has seen.
func (p *pass) findIncidents() {
	if !p.next().Finishing.IsZero() {
		return
	}
	for _, r := range p.replicas {
		switch {
		case p.handled(r):
		case r.pod != nil:
			if n := r.inPlace - p.chargedInPlace(r); n > 0 {
				p.addIncident(r, r.lastInPlace, n)
			}
			if r.failure != nil && !p.done(r.Replica) {
				p.addIncident(r, p.asSeen(r), 0)
			}
		case p.done(r.Replica):
		case contains(p.next().role(r.Role).Started, r.Index):
			p.addIncident(r, vanished(p.Job, r.Replica), 0)
		}
	}
	if len(p.incidents) == 0 { // what has failed by itself goes first
		p.leaveNodes()
	}
	p.incidents, p.refusals = partition(p.incidents)
	p.incidents = p.withoutUndecided(p.incidents)
	if due := p.judgeAfter(); p.Now.Before(due) {
		p.incidents = nil
		p.requeueAt(due)
	}
	if len(p.incidents)+len(p.refusals) > 0 && !p.Live {
		p.Ask.Pods = true
	}
}

// asSeen is the failure of a replica's pod. One that was seen to train was not refused: a kubelet that restarts checks its pods
// again, and the status of one that it then refuses shows no trace of what ran.
func (p *pass) asSeen(r replica) *Failure {
	if r.failure.Class == Refusal && contains(p.next().role(r.Role).Started, r.Index) {
		f := *r.failure
		f.Class = Disruption
		return &f
	}
	return r.failure
}

// partition separates refusals, which concern one pod alone, from incidents that may concern all.
func partition(all []incident) (incidents, refusals []incident) {
	for _, i := range all {
		if i.Class == Refusal {
			refusals = append(refusals, i)
		} else {
			incidents = append(incidents, i)
		}
	}
	return incidents, refusals
}

// siblingWait is how long a gang waits for failures of its other members before it judges the first. A kubelet looks at its pods
// every second, and the time of an end is rounded down.
const siblingWait = 3 * time.Second

// judgeAfter is the time before which a gang does not judge a member that ended by itself: it may have ended because of
// another that no kubelet has reported yet. There is no need to wait where no other member runs, or where clocks cannot be
// compared.
func (p *pass) judgeAfter() time.Time {
	culprit := p.culprit()
	if p.scope() != ScopeJob || culprit == nil || culprit.likelihood() > 0 || culprit.Time.After(p.Now) {
		return time.Time{}
	}
	for _, r := range p.replicas {
		if r.pod != nil && r.running && !p.isLeaving(r.pod) {
			return culprit.Time.Add(siblingWait)
		}
	}
	return time.Time{}
}

func (p *pass) addIncident(r replica, f *Failure, newInPlace int32) {
	if f == nil {
		f = &Failure{Replica: r.Replica, Pod: r.pod.Name, Node: r.pod.Spec.NodeName, Class: Application}
	}
	i := incident{replica: r, Failure: f, newInPlace: newInPlace, retry: true, charge: f.Class == Application}
	if newInPlace == 0 && f.Class != Refusal {
		i.retry, i.charge = r.role.RestartPolicy.retries(f)
	}
	p.incidents = append(p.incidents, i)
}

// chargedInPlace is the number of failures in place of this very pod that are counted already.
func (p *pass) chargedInPlace(r replica) int32 {
	if rec := p.next().record(r.Replica); rec != nil && rec.Pod == r.pod.UID {
		return rec.Failures
	}
	return 0
}

// decisive are the incidents that count. When a member of a gang has failed, that is the culprit alone: the failures of
// the others are its consequence.
func (p *pass) decisive() []incident {
	if p.scope() == ScopeJob {
		if i := p.culprit(); i != nil && i.newInPlace == 0 {
			return []incident{*i}
		}
	}
	return p.incidents
}

// culprit is the incident to name and to judge by, nil if there is none. A replica that has failed for good goes before one
// that the kubelet restarts; of several, the most likely cause among those that came first. First means within a second:
// times are whole seconds by the clocks of several nodes.
func (p *pass) culprit() *incident {
	if len(p.incidents) == 0 {
		return nil
	}
	suspects := slices.DeleteFunc(slices.Clone(p.incidents), func(i incident) bool { return i.newInPlace > 0 })
	if len(suspects) == 0 {
		suspects = slices.Clone(p.incidents)
	}
	byTime := func(a, b incident) int { return a.Time.Compare(b.Time) }
	first := slices.MinFunc(suspects, byTime).Time.Add(time.Second)
	suspects = slices.DeleteFunc(suspects, func(i incident) bool { return i.Time.After(first) })
	culprit := slices.MinFunc(suspects, func(a, b incident) int { return cmp.Or(b.likelihood()-a.likelihood(), byTime(a, b)) })
	return &culprit
}

// likelihood ranks how likely a failure is the cause of others at the same time. A member that lost its peer exits by
// itself, or aborts, as torch does when a collective breaks.
func (i *incident) likelihood() int {
	switch {
	case i.Class == Disruption:
		return 2
	case i.Signal != 0 && i.Signal != sigabrt || i.Reason == reasonOOMKilled || i.Reason == reasonEvicted:
		return 1
	default:
		return 0
	}
}

// chargeIncidents charges the incidents of this pass, and keeps the culprit's failure. Each is charged exactly once: the
// caller ends the job, or records the incidents as handled in the same status.
func (p *pass) chargeIncidents() {
	s := p.next()
	if i := p.culprit(); i != nil {
		s.LastFailure = i.Failure.at(p.Now)
	}
	retries, disruptions := p.chargedRetries(), p.newDisruptions()
	s.Retries, s.Disruptions = retries, s.Disruptions+disruptions
	for _, i := range p.decisive() {
		p.countFailure(i.Failure)
	}
}

// restartFailed answers the incidents of this pass: by the next attempt, or replica by replica.
func (p *pass) restartFailed() {
	for _, i := range p.refusals {
		p.replaceRefused(i)
	}
	if len(p.incidents) == 0 {
		return
	}
	p.chargeIncidents()
	culprit := p.culprit()
	blamed := p.decisive()
	if culprit.Reason == reasonMaintenance {
		blamed = p.incidents // each of these nodes is about to fail the job
	}
	for _, i := range blamed {
		p.avoid(i.Failure)
	}
	why := culprit.String() + p.nth(culprit)
	if p.scope() == ScopeJob && culprit.newInPlace == 0 {
		p.restartGang(culprit, why)
	} else {
		for _, i := range p.incidents {
			p.handle(i)
		}
	}
	if !culprit.retry {
		p.emit(true, "Lost", "goes on: "+culprit.String()+" and is not replaced"+culprit.lastLine())
		p.about(culprit.Failure)
		return
	}
	p.count(JobsRestarted)
	p.reportRestart(why + culprit.lastLine())
	p.about(culprit.Failure)
}

// nth says what a restart is charged.
func (p *pass) nth(i *incident) string {
	switch limit := p.Job.Policy.BackoffLimit; {
	case !i.charge:
		return "; not charged"
	case limit == nil:
		return fmt.Sprintf("; retry %d", p.next().Retries)
	default:
		return fmt.Sprintf("; retry %d of %d", p.next().Retries, *limit)
	}
}

func (p *pass) restartGang(culprit *incident, why string) {
	s := p.next()
	row := p.inARow(s.InARow, culprit)
	reason := ReasonDisrupted
	if culprit.charge {
		reason = ReasonRestarted
	}
	p.nextAttempt(reason, why)
	s.InARow, s.NotBefore = row, p.earliest(row, culprit.Failure)
}

// replaceRefused lets a pod that its node refused be replaced, alone and within the attempt, whatever the restart policy:
// nothing of it has run.
func (p *pass) replaceRefused(i incident) {
	p.next().LastFailure = i.Failure.at(p.Now)
	p.countFailure(i.Failure)
	p.handle(i)
	p.emit(true, "Refused", "replaces a pod: "+i.String()+i.lastLine())
	p.about(i.Failure)
	p.avoid(i.Failure)
}

// nextAttempt raises the number of the attempt. All pods there are belong to an earlier attempt from then on.
func (p *pass) nextAttempt(reason, why string) {
	s := p.next()
	s.closeAttempt(p.Now, reason, why)
	s.Attempt++
	s.openAttempt(p.Now, p.keepsDone)
	for n := range p.replicas {
		r := &p.replicas[n]
		if r.pod != nil {
			p.outdated = append(p.outdated, r.pod)
		}
		r.pod, r.evidence = nil, evidence{}
	}
	p.outdated = append(p.outdated, p.surplus...)
	p.surplus = nil
	p.recordSizes()
}

// handle records that a replica's incident is charged.
func (p *pass) handle(i incident) {
	s := p.next()
	if i.newInPlace > 0 {
		s.recordOf(i.replica.Replica, i.pod.UID).Failures = i.replica.inPlace
		return
	}
	role := s.role(i.replica.Role)
	role.Started = remove(role.Started, i.replica.Index)
	rec := s.recordOf(i.replica.Replica, "")
	if i.pod != nil {
		rec = s.recordOf(i.replica.Replica, i.pod.UID)
		rec.Handled = true
		rec.Failures = 0 // nothing of the pod is read again
	}
	rec.Lost = !i.retry
	if i.retry {
		rec.InARow = p.inARow(rec.InARow, &i)
		rec.NotBefore = p.earliest(rec.InARow, i.Failure)
	}
}
