package job

// disruptionsExceeded ends a job that was disrupted more often than its user allows. Without a limit no number of disruptions
// ends a job.
func (p *pass) disruptionsExceeded() *verdict {
	limit := p.Job.Policy.MaxDisruptions
	if limit == nil || p.next().Disruptions+p.newDisruptions() <= *limit {
		return nil
	}
	culprit := p.next().LastFailure
	if i := p.culprit(); i != nil {
		culprit = i.Failure
	}
	if culprit == nil {
		return p.fails(ReasonMaxDisruptions, "trainyard.dev/max-disruptions %d is used up", *limit)
	}
	return p.fails(ReasonMaxDisruptions, "%s; trainyard.dev/max-disruptions %d is used up", culprit, *limit).of(culprit)
}

// newDisruptions is the number of disruptions among the incidents of this pass.
func (p *pass) newDisruptions() int32 {
	var n int32
	for _, i := range p.decisive() {
		if i.Class == Disruption && i.retry {
			n++
		}
	}
	return n
}
