package job

import (
	"math"
	"reflect"
	"time"
)

// Decide says what to do about a job, given everything known about it.
//
// The steps share one pass, and each relies on those before it, as said beside it. No step undoes what an earlier one
// decided, except that [pass.decision] drops everything when a step asked for more facts.
func Decide(o Observed) Decision {
	if o.Job.Deleting || o.Job.ManagedElsewhere() {
		return Decision{Status: o.Status}
	}
	p := newPass(o)
	p.begin() // gives the status a first condition, a start time and an attempt, which all others read
	switch {
	case p.next().Finished():
		p.progress()
		p.clean()
	case o.Job.Policy.Suspend:
		p.suspend()
	case o.Job.Missing != "":
		p.waitForMissing()
	default:
		p.decideActive()
	}
	p.expire()           // after the verdict, which may have been given in this pass
	p.forceDeleteStuck() // after nextAttempt has sorted the pods for the last time
	p.countReplicas()    // after all deletions: a pod that is about to be deleted does not count
	return p.decision()
}

// decideActive decides about a job that is neither finished nor suspended and lacks nothing.
func (p *pass) decideActive() {
	p.progress()      // before anything that may begin another attempt: what has started or succeeded belongs to the present one
	p.resume()        // before scale: a resumed job begins its attempt with its present size
	p.scale()         // before incidents: a replica that is no longer wanted has none
	p.noteFinishing() // before incidents: a finishing job has none
	p.followBounds()  // before incidents: pods with other bounds are of an earlier attempt from here on
	p.findIncidents() // before the verdict, which judges by them
	if verdict := p.verdict(); verdict != nil {
		p.end(*verdict)
		p.clean()
		return
	}
	p.restartFailed() // before run: it says which pods are garbage, and when new ones may start
	p.releasePlaces() // after restartFailed: an attempt that has failed is over already
	p.run()
}

// begin records a new job before anything is created for it.
func (p *pass) begin() {
	s := p.next()
	s.ObservedGeneration = p.Job.Generation
	if len(s.Conditions) == 0 {
		p.becomes(Created, "is created")
		p.count(JobsCreated)
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
	// A suspended job has a start time too, set again when it is resumed: Flyte takes a job without one for a job that nobody runs.
	if s.StartTime.IsZero() {
		s.StartTime = ceil(p.Now)
	}
	if len(s.Attempts) == 0 && !p.Job.Policy.Suspend {
		s.openAttempt(p.Now, p.keepsDone)
		p.recordSizes()
	}
}

// waitForMissing holds a job back that lacks something. Its active deadline does not run, and it has no attempt yet.
func (p *pass) waitForMissing() {
	p.leaveSuspended()
	p.wait("%s", p.Job.Missing)
}

// progress records which replicas have started and which have succeeded.
func (p *pass) progress() {
	for _, r := range p.replicas {
		if r.pod == nil || p.handled(r) {
			continue
		}
		role := p.next().role(r.Role)
		if r.started && !contains(role.Started, r.Index) && p.isCurrent(r) {
			role.Started = insert(role.Started, r.Index)
		}
		if r.succeeded {
			role.Done = insert(role.Done, r.Index)
		}
	}
}

// startListWait is how long the first of several replaced replicas that start waits for the others, so that one list is read for
// all of them.
const startListWait = 3 * time.Second

// isCurrent reports whether a pod that trains is the replica's present pod. A stale cache may show a pod that was deleted long
// ago, which would then seem to vanish a second time. So where a replica had a pod before, another counts only once it was read
// from the API server itself. Until then a pod that vanishes counts as one that never started.
func (p *pass) isCurrent(r replica) bool {
	rec := p.next().record(r.Replica)
	if rec == nil || rec.Pod == r.pod.UID || p.next().Finished() {
		return true
	}
	if due := r.runFrom.Add(startListWait); !p.Live && p.Now.Before(due) && !r.runFrom.After(p.Now) { // clocks differ
		p.requeueAt(due)
		return false
	}
	if !p.Live {
		p.Ask.Pods = true
		return false
	}
	p.next().recordOf(r.Replica, r.pod.UID)
	return true
}

func (p *pass) done(r Replica) bool { return contains(p.next().role(r.Role).Done, r.Index) }

// decision is the result of the pass. If facts are missing it only asks for them: without them nothing else is certain.
func (p *pass) decision() Decision {
	d := p.Decision
	if d.Asks() {
		return Decision{Ask: d.Ask, Status: p.Observed.Status}
	}
	d.Write = howToWrite(p.Observed.Status, d.Status)
	if d.Write == WriteNow {
		d.Status.Records = p.trimmed(d.Status.Records)
	}
	if d.acts() && d.Write != WriteNow && !p.Fresh { // a write would have failed on an old status
		return Decision{Ask: Ask{Job: true}, Status: p.Observed.Status}
	}
	return d
}

// howToWrite compares the recorded status with the next. Counts and messages follow from the pods and may be written
// later, with other changes; everything else is memory, without which the next pass would decide differently.
func howToWrite(recorded, next Status) Write {
	if reflect.DeepEqual(recorded, next) {
		return WriteNothing
	}
	memory := func(s Status) Status {
		s = s.clone()
		for i := range s.Roles {
			s.Roles[i] = RoleStatus{Role: s.Roles[i].Role, Size: s.Roles[i].Size}
		}
		s.ObservedGeneration, s.Message, s.Ready = 0, "", ""
		return s
	}
	if reflect.DeepEqual(memory(recorded), memory(next)) {
		return WriteLater
	}
	return WriteNow
}

// at is the time of a stored moment plus a duration given in seconds.
func at(stored time.Time, seconds int64) time.Time {
	return stored.Add(Seconds(seconds))
}

// Seconds is the duration that a policy names in seconds. A number too large for a duration means never: it becomes the longest
// duration there is, 292 years.
func Seconds(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	return time.Duration(min(n, most)) * time.Second
}
