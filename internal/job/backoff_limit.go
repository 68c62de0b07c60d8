package job

// backoffLimitExceeded ends the job at the failure after the last retry that the limit allows. The limit is read again in
// every pass: lowered below the retries already made, it ends the job at once.
func (p *pass) backoffLimitExceeded() *verdict {
	limit := p.Job.Policy.BackoffLimit
	if limit == nil || p.next().Retries+p.newCharges() <= *limit {
		return nil
	}
	culprit := p.next().LastFailure
	if i := p.culprit(); i != nil {
		culprit = i.Failure
	}
	if culprit == nil {
		return p.fails(ReasonBackoffLimit, "backoffLimit %d is used up", *limit)
	}
	return p.fails(ReasonBackoffLimit, "%s; backoffLimit %d is used up", culprit, *limit).of(culprit)
}

// chargedRetries is the number of retries with the incidents of this pass. The failure that ends the job is not charged.
func (p *pass) chargedRetries() int32 {
	retries := p.next().Retries + p.newCharges()
	if limit := p.Job.Policy.BackoffLimit; limit != nil {
		retries = max(min(retries, *limit), p.next().Retries)
	}
	return retries
}

// newCharges is what the incidents of this pass add to the retries. A gang that restarts as one is charged once,
// however many of its members failed.
func (p *pass) newCharges() int32 {
	var n int32
	for _, i := range p.decisive() {
		n += i.charges()
	}
	return n
}

// charges is the number of retries that an incident is charged. Of several failures in place the last may be a
// disruption; those before it are the replica's own.
func (i incident) charges() int32 {
	if i.charge {
		return max(i.newInPlace, 1)
	}
	return max(i.newInPlace-1, 0)
}
