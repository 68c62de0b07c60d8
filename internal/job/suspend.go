package job

// suspend takes everything away that costs something. What the job has used up of its retries it keeps.
func (p *pass) suspend() {
	s := p.next()
	if !s.Is(Suspended) {
		s.closeAttempt(p.Now, ReasonSuspended, "")
		s.unset(Restarting)
		s.clear(Running, p.reason(Suspended), p.sentence("is suspended"), p.Now)
		p.becomes(Suspended, "is suspended")
		s.renew(Created, p.Now)
	}
	for _, pod := range p.allPods() {
		p.delete(pod, "the job is suspended")
	}
	p.deleteChildren(true)
}

// resume starts the job anew, as a further attempt: pods of the run before the suspension may still be stopping.
func (p *pass) resume() {
	s := p.next()
	if !s.Is(Suspended) {
		return
	}
	s.StartTime = ceil(p.Now)
	if s.endReason() == ReasonSuspended {
		p.nextAttempt(ReasonSuspended, "")
	}
	p.leaveSuspended()
}

// leaveSuspended reports that the job is suspended no more, if it was.
func (p *pass) leaveSuspended() {
	if s := p.next(); s.Is(Suspended) {
		s.clear(Suspended, p.Job.Kind+"Resumed", p.sentence("is resumed"), p.Now)
		p.say(false, p.Job.Kind+"Resumed", "is resumed")
	}
}
