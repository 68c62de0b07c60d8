package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// incident is a failure that is not accounted for yet.
type incident struct {
	replica
	*Failure
	// inPlace is the number of new failures that the kubelet answers by itself; zero for a replica that has fallen, which
	// only we can restart.
	inPlace       int32
	retry, charge bool
}

// account finds the failures that are news. A pod that is settled, or of an earlier attempt, is none; a replica whose
// training had begun and that has no pod has vanished. No failure is charged on the word of a cache: after a change of
// leader it may show pods that a recorded pass has long accounted for, or not yet show those it has seen.
func (p *pass) account() {
	if !p.next().Finishing.IsZero() {
		return
	}
	for _, r := range p.replicas {
		switch {
		case p.settled(r):
		case r.pod != nil:
			if n := r.inPlace - p.charged(r); n > 0 {
				p.meet(r, r.lastInPlace, n)
			}
			if r.failure != nil && !p.done(r.Replica) {
				p.meet(r, r.failure, 0)
			}
		case p.done(r.Replica):
		case contains(p.next().role(r.Role).Started, r.Index):
			p.meet(r, vanished(p.Job, r.Replica), 0)
		}
	}
	p.incidents = p.unheard(p.incidents)
	if due := p.hearing(); p.Now.Before(due) {
		p.incidents = nil
		p.lookAt(due)
	}
	if len(p.incidents) > 0 && !p.Live {
		p.Ask.Pods = true
	}
}

// heard is how long the other members of a gang have to show what befell them: a kubelet looks at its pods every second, and
// the time of an end is rounded down.
const heard = 3 * time.Second

// hearing is until when a gang waits before it judges a member that ended by itself, which may be the effect of a fall
// that is not told yet. There is no need where nobody else runs any more; nor where clocks cannot be compared.
func (p *pass) hearing() time.Time {
	culprit := p.culprit()
	if p.scope() != ScopeJob || culprit == nil || culprit.likelihood() > 0 || culprit.Time.After(p.Now) {
		return time.Time{}
	}
	for _, r := range p.replicas {
		if r.pod != nil && r.running && !p.leaves(r.pod) {
			return culprit.Time.Add(heard)
		}
	}
	return time.Time{}
}

func (p *pass) meet(r replica, f *Failure, inPlace int32) {
	if f == nil {
		f = &Failure{Replica: r.Replica, Pod: r.pod.Name, Node: r.pod.Spec.NodeName, Class: Application}
	}
	i := incident{replica: r, Failure: f, inPlace: inPlace, retry: true, charge: f.Class == Application}
	if inPlace == 0 {
		i.retry, i.charge = r.role.RestartPolicy.retries(f)
	}
	p.incidents = append(p.incidents, i)
}

// charged is the number of failures in place of this very pod that are counted already.
func (p *pass) charged(r replica) int32 {
	if rec := p.next().record(r.Replica); rec != nil && rec.Pod == r.pod.UID {
		return rec.Failures
	}
	return 0
}

// decisive are the incidents that count. When a member of a gang has fallen it is the culprit alone: what befalls the
// others is its consequence.
func (p *pass) decisive() []incident {
	if p.scope() == ScopeJob {
		if i := p.culprit(); i != nil && i.inPlace == 0 {
			return []incident{*i}
		}
	}
	return p.incidents
}

// culprit is the incident to name and to judge by, nil if there is none. A replica that has fallen goes before one that the
// kubelet restarts; of several the likeliest cause among those that came first. First means within a second: times are
// whole seconds by the clocks of several nodes.
func (p *pass) culprit() *incident {
	if len(p.incidents) == 0 {
		return nil
	}
	suspects := slices.DeleteFunc(slices.Clone(p.incidents), func(i incident) bool { return i.inPlace > 0 })
	if len(suspects) == 0 {
		suspects = slices.Clone(p.incidents)
	}
	byTime := func(a, b incident) int { return a.Time.Compare(b.Time) }
	first := slices.MinFunc(suspects, byTime).Time.Add(time.Second)
	suspects = slices.DeleteFunc(suspects, func(i incident) bool { return i.Time.After(first) })
	culprit := slices.MinFunc(suspects, func(a, b incident) int { return cmp.Or(b.likelihood()-a.likelihood(), byTime(a, b)) })
	return &culprit
}

// likelihood ranks how likely a failure is the cause of others about it: a peer that was cut off exits by itself, or
// aborts, as torch does when a collective breaks.
func (i *incident) likelihood() int {
	switch {
	case i.Class == Disruption:
		return 2
	case i.Signal != 0 && i.Signal != sigabrt || i.Reason == reasonOOMKilled:
		return 1
	default:
		return 0
	}
}

// charge records the incidents: every one exactly once, since from here on they are accounted for.
func (p *pass) charge() {
	s := p.next()
	if i := p.culprit(); i != nil {
		f := *i.Failure
		if f.Time.IsZero() {
			f.Time = ceil(p.Now)
		}
		s.LastFailure = &f
	}
	s.Retries = p.granted()
	for _, i := range p.decisive() {
		if i.Class == Disruption && i.retry {
			s.Disruptions++
		}
	}
}

// restart answers the incidents of this pass: by the next attempt, or replica by replica.
func (p *pass) restart() {
	if len(p.incidents) == 0 {
		return
	}
	p.charge()
	culprit := p.culprit()
	why := culprit.String() + p.nth(culprit)
	if p.scope() == ScopeJob && culprit.inPlace == 0 {
		p.restartGang(culprit, why)
	} else {
		for _, i := range p.incidents {
			p.settle(i)
		}
	}
	if !culprit.retry {
		p.say(true, "Lost", "goes on: "+culprit.String()+" and is not replaced"+culprit.lastWords())
		return
	}
	p.tell(JobsRestarted)
	p.restarts(why + culprit.lastWords())
}

// nth says what a restart costs.
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
	if !culprit.charge {
		p.nextAttempt(ReasonDisrupted, why)
		return
	}
	p.nextAttempt(ReasonRestarted, why)
	p.next().NotBefore = p.earliest(p.next().Retries, culprit.Failure)
}

// nextAttempt gives the gang another number. All pods there are become garbage by that.
func (p *pass) nextAttempt(reason, why string) {
	s := p.next()
	s.closeAttempt(p.Now, reason, why)
	s.Attempt++
	s.openAttempt(p.Now, p.keeps)
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

// settle accounts for one replica's incident.
func (p *pass) settle(i incident) {
	s := p.next()
	if i.inPlace > 0 {
		s.recordOf(i.replica.Replica, i.pod.UID).Failures = i.replica.inPlace
		return
	}
	role := s.role(i.replica.Role)
	role.Started = remove(role.Started, i.replica.Index)
	rec := s.recordOf(i.replica.Replica, "")
	if i.pod != nil {
		rec = s.recordOf(i.replica.Replica, i.pod.UID)
		rec.Settled = true
	}
	rec.Lost = !i.retry
	if i.charge {
		rec.Charged++
		rec.NotBefore = p.earliest(rec.Charged, i.Failure)
	}
}

// earliest is when the nth charged restart may begin, zero if at once. The delay counts from the end of the second of the failure, but
// from no earlier than a gang can have been heard since: clocks differ.
func (p *pass) earliest(n int32, f *Failure) time.Time {
	delay := restartDelay(n)
	if delay == 0 {
		return time.Time{}
	}
	since := p.Now
	if ended := f.Time.Add(time.Second); ended.Before(since) {
		since = latest(ended, since.Add(-heard))
	}
	return ceil(since.Add(delay))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
