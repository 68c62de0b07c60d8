package job

// suspend removes all children. The job keeps its count of retries.
func (p *pass) suspend() {
	s := p.next()
	if !s.Is(Suspended) {
		// Once its pod is being deleted, nobody can tell a success of the same second from an exit on SIGTERM. A cache may be behind.
		p.Ask.Pods = p.Ask.Pods || len(s.Attempts) > 0 && !p.Live
		p.progress()
		s.closeAttempt(p.Now, ReasonSuspended, "")
		s.unset(Restarting)
		s.clear(Running, p.reason(Suspended), p.sentence("is suspended"), p.Now)
		p.becomes(Suspended, "is suspended")
		s.renew(Created, p.Now)
	}
	for _, pod := range p.allPods() {
		p.deletePod(pod, "the job is suspended")
	}
	p.deleteChildren(true)
	p.SizeJob = p.Job.Misstated && p.Job.Queue != "" // before Kueue admits the job by the number that stands there
	switch {
	case p.Job.Unqueued != "":
		p.wait("%s", p.Job.Unqueued)
	case p.Job.Queue != "":
		p.wait("Kueue has not admitted the job to the queue %s", p.Job.Queue)
	}
}

// resume starts the job again, as a further attempt: pods of the run before the suspension may still be stopping. If that run had
// succeeded, it goes on instead, and the verdict follows.
func (p *pass) resume() {
	s := p.next()
	if !s.Is(Suspended) {
		return
	}
	s.StartTime = ceil(p.Now)
	switch {
	case s.endReason() != ReasonSuspended:
	case p.isComplete():
		s.reopenAttempt()
		p.recordSizes()
	default:
		p.nextAttempt(ReasonSuspended, "")
	}
	p.leaveSuspended()
}

// leaveSuspended records that the job is no longer suspended, if it was.
func (p *pass) leaveSuspended() {
	if s := p.next(); s.Is(Suspended) {
		s.clear(Suspended, p.Job.Kind+"Resumed", p.sentence("is resumed"), p.Now)
		p.emit(false, p.Job.Kind+"Resumed", "is resumed")
	}
}
