package job

// expire removes a finished job that has been kept for as long as its user wished. Its children are the garbage
// collector's.
func (p *pass) expire() {
	ttl := p.Job.Policy.TTLSecondsAfterFinished
	if ttl == nil || !p.next().Finished() || p.next().CompletionTime.IsZero() {
		return
	}
	due := at(p.next().CompletionTime, int64(*ttl))
	if p.Now.Before(due) {
		p.lookAt(due)
		return
	}
	p.DeleteJob = true
	p.tell(JobsDeleted)
}
