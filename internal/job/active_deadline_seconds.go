package job

// deadlineExceeded ends a job that has been active for longer than it may, counted from its start or last resume,
// whatever its pods do.
func (p *pass) deadlineExceeded() *verdict {
	seconds := p.Job.Policy.ActiveDeadlineSeconds
	if seconds == nil {
		return nil
	}
	due := at(p.next().StartTime, *seconds)
	if p.Now.Before(due) {
		p.requeueAt(due)
		return nil
	}
	p.measure(DeadlineLateness, p.Now.Sub(due))
	if why := p.whyNotRunning(); why != "" {
		return p.fails(ReasonDeadlineExceeded, "it was active longer than activeDeadlineSeconds %d allows, and was not running: %s", *seconds, why)
	}
	return p.fails(ReasonDeadlineExceeded, "it was active longer than activeDeadlineSeconds %d allows", *seconds)
}

// whyNotRunning is what keeps the job from running now, as far as that is known. For a pod that does not exist the reason
// is in the message of the pass before.
func (p *pass) whyNotRunning() string {
	if p.trains() {
		return ""
	}
	if why := p.message(); why != "" {
		return why
	}
	for _, r := range p.replicas {
		if r.pod == nil && !p.done(r.Replica) && !p.isLost(r.Replica) {
			return p.Observed.Status.Message
		}
	}
	return ""
}
