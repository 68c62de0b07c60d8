package job

// await keeps a job that lacks something from beginning. Its time does not run, and it has no attempt yet.
func (p *pass) await() {
	p.leaveSuspended()
	p.wait("%s", p.Job.Missing)
}

// neverFits ends a job that cannot be run as it is written.
func (p *pass) neverFits() *verdict {
	if p.Job.Misfit == "" {
		return nil
	}
	return p.fails(ReasonRefused, "%s", p.Job.Misfit)
}
