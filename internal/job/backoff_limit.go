package job

import "time"

// backoffLimitExceeded ends the job at the failure after the last retry it was granted. The limit is read afresh in
// every pass: lowered below the retries already made, it ends the job at once.
func (p *pass) backoffLimitExceeded() *verdict {
	limit := p.Job.Policy.BackoffLimit
	if limit == nil || p.next().Retries+p.charges() <= *limit {
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

// granted is the number of retries with the incidents of this pass. The failure that ends the job is not retried.
func (p *pass) granted() int32 {
	retries := p.next().Retries + p.charges()
	if limit := p.Job.Policy.BackoffLimit; limit != nil {
		retries = max(min(retries, *limit), p.next().Retries)
	}
	return retries
}

// charges is what the incidents of this pass would add to the retries. A gang that restarts as one is charged once,
// however many of its members fell.
func (p *pass) charges() int32 {
	var n int32
	for _, i := range p.decisive() {
		n += i.costs()
	}
	return n
}

// costs is the number of retries that an incident takes. Of several failures in place the last may have been done to the
// replica; those before it are its own.
func (i incident) costs() int32 {
	if i.charge {
		return max(i.inPlace, 1)
	}
	return max(i.inPlace-1, 0)
}

const (
	firstDelay = 10 * time.Second
	maxDelay   = 300 * time.Second
)

// restartDelay is the wait before the nth charged restart: none before the first, then doubling.
func restartDelay(n int32) time.Duration {
	if n <= 1 {
		return 0
	}
	delay := firstDelay
	for range n - 2 {
		if delay = 2 * delay; delay >= maxDelay {
			return maxDelay
		}
	}
	return delay
}
