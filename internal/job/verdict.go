package job

import "fmt"

// verdict is how a job ends.
type verdict struct {
	end     ConditionType // Succeeded or Failed
	reason  string        // why the last attempt ended
	message string
	culprit *Failure // whose last log line the message ends with, if any
}

// verdict answers whether the job has ended, in this order:
//
//  1. the verdict was given already: Decide does not ask again
//  2. suspended: Decide does not ask
//  3. success
//  4. the active deadline has passed
//  5. a failure that may not be retried
//  6. more retries than the backoff limit allows
//  7. more disruptions than the user allows
//  8. a job that cannot be run as it is written, or a child that the API server rejects for good
func (p *pass) verdict() *verdict {
	for _, rule := range []func() *verdict{
		p.succeeded, p.deadlineExceeded, p.notRetryable, p.backoffLimitExceeded, p.disruptionsExceeded, p.invalidJob, p.childRejected,
	} {
		if v := rule(); v != nil {
			return v
		}
	}
	return nil
}

// end gives the verdict: condition, completion time, event and metric together, once. No job fails on the word of a cache: the
// replica that decides may have succeeded a moment ago.
func (p *pass) end(v verdict) {
	s := p.next()
	p.Ask.Pods = p.Ask.Pods || v.end == Failed && !p.Live
	if v.reason == ReasonFailed || v.reason == ReasonBackoffLimit || v.reason == ReasonMaxDisruptions {
		p.chargeIncidents()
	}
	s.CompletionTime = ceil(p.Now)
	s.closeAttempt(p.Now, v.reason, v.message)
	s.unset(Restarting)
	if c := s.condition(Running); c != nil {
		s.clear(Running, c.Reason, c.Message, p.Now)
	}
	if v.end == Succeeded {
		p.count(JobsSucceeded)
	} else {
		p.count(JobsFailed)
	}
	p.becomes(v.end, v.message+v.culprit.lastLine())
	p.about(v.culprit)
}

// fails is a verdict of failure with a sentence that says by which rule.
func (p *pass) fails(reason, format string, args ...any) *verdict {
	return &verdict{end: Failed, reason: reason, message: fmt.Sprintf("failed: "+format, args...)}
}

// of names the failure that a verdict is about.
func (v *verdict) of(f *Failure) *verdict {
	v.culprit = f
	return v
}
