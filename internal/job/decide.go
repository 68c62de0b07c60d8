package job

import (
	"math"
	"reflect"
	"time"
)

// Decide says what to do about a job, given everything known about it.
func Decide(o Observed) Decision {
	if o.Job.Deleting || o.Job.ManagedElsewhere() {
		return Decision{Status: o.Status}
	}
	p := look(o)
	p.begin()
	switch {
	case p.next().Finished():
		p.progress()
		p.clean()
	case o.Job.Policy.Suspend:
		p.suspend()
	case o.Job.Missing != "":
		p.await()
	default:
		p.progress()
		p.resume()
		p.scale()
		p.noteFinishing()
		p.rebound()
		p.account()
		if verdict := p.verdict(); verdict != nil {
			p.end(*verdict)
			p.clean()
		} else {
			p.restart()
			p.run()
		}
	}
	p.expire()
	p.forceStuck()
	p.count()
	return p.decision()
}

// begin makes a new job known to the world before anything is made for it.
func (p *pass) begin() {
	s := p.next()
	s.ObservedGeneration = p.Job.Generation
	if len(s.Conditions) == 0 {
		p.becomes(Created, "is created")
		p.tell(JobsCreated)
	}
	if s.Finished() {
		// Training Operator 1.9 forgets the time when an exit code ends a job; without one no TTL can end.
		if s.CompletionTime.IsZero() {
			s.CompletionTime = s.Conditions[len(s.Conditions)-1].LastTransition
		}
		return
	}
	if p.Job.Missing != "" {
		return
	}
	// A suspended job has a start time too, set anew when it is resumed: Flyte takes one without for a job nobody runs.
	if s.StartTime.IsZero() {
		s.StartTime = ceil(p.Now)
	}
	if len(s.Attempts) == 0 && !p.Job.Policy.Suspend {
		s.openAttempt(p.Now, p.keeps)
		p.recordSizes()
	}
}

// progress notes what the pods show of the training going on.
func (p *pass) progress() {
	for _, r := range p.replicas {
		if r.pod == nil || p.settled(r) {
			continue
		}
		role := p.next().role(r.Role)
		if r.started && !contains(role.Started, r.Index) && p.believes(r) {
			role.Started = insert(role.Started, r.Index)
		}
		if r.succeeded {
			role.Done = insert(role.Done, r.Index)
		}
	}
}

// believes tells whether a pod that trains is the one its replica has now. A cache that is behind may show one that went
// long ago, which would then seem to vanish once more: where a replica had a pod before, another is only believed when it
// was seen past the cache, and is remembered from then on.
func (p *pass) believes(r replica) bool {
	rec := p.next().record(r.Replica)
	if rec == nil || rec.Pod == r.pod.UID || p.next().Finished() {
		return true
	}
	if !p.Live {
		p.Ask.Pods = true
		return false
	}
	p.next().recordOf(r.Replica, r.pod.UID)
	return true
}

func (p *pass) done(r Replica) bool { return contains(p.next().role(r.Role).Done, r.Index) }

// decision is what the pass came to. Facts that are missing come first: without them nothing else is certain.
func (p *pass) decision() Decision {
	d := p.Decision
	if d.Ask.Pods || len(d.Ask.Nodes) > 0 {
		return Decision{Ask: d.Ask, Status: p.Observed.Status}
	}
	d.Write = howToWrite(p.Observed.Status, d.Status)
	return d
}

// howToWrite compares what is recorded with what should be. Counts and words follow from the pods and may wait for
// other news; everything else is memory, without which the next pass would decide differently.
func howToWrite(recorded, next Status) Write {
	if reflect.DeepEqual(recorded, next) {
		return WriteNothing
	}
	shown := func(s Status) Status {
		s = s.clone()
		for i := range s.Roles {
			s.Roles[i] = RoleStatus{Role: s.Roles[i].Role, Size: s.Roles[i].Size}
		}
		s.ObservedGeneration, s.Message, s.Ready = 0, "", ""
		return s
	}
	if reflect.DeepEqual(shown(recorded), shown(next)) {
		return WriteSoon
	}
	return WriteFirst
}

// at is the time of a stored moment plus a duration given in seconds.
func at(stored time.Time, seconds int64) time.Time {
	return stored.Add(Seconds(seconds))
}

// Seconds is the length of time that a policy names. What is more than three lifetimes is meant as never, and is as long as can be.
func Seconds(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	return time.Duration(min(n, most)) * time.Second
}
