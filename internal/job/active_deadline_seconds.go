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
		p.lookAt(due)
		return nil
	}
	p.measure(DeadlineLateness, p.Now.Sub(due))
	return p.fails(ReasonDeadlineExceeded, "it was active longer than activeDeadlineSeconds %d allows", *seconds)
}
