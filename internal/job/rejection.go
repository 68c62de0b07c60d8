package job

import (
	"slices"
	"time"
)

// Rejection is an error with which the API server answered a creation.
type Rejection struct {
	// Object is what was to be created: "pod demo-worker-1".
	Object string
	// Optional says that the job can start without the object.
	Optional bool
	// Invalid says that the object itself is wrong (422), so that a retry is no use. Otherwise the cause
	// may go away: a quota, a limit range, an object of that name.
	Invalid bool
	Message string
	// At is when the last such answer came, Times how many came in a row.
	At    time.Time
	Times int32
}

const (
	firstRetry = 5 * time.Second
	maxRetry   = 60 * time.Second
)

// delayAfterRejection delays creations after the API server rejected one: no event tells when it would accept it.
func (p *pass) delayAfterRejection() {
	optional := func(c Child) bool { return !c.Required }
	creates := slices.ContainsFunc(p.CreateChildren, optional)
	if p.Rejection == nil || !creates && (p.Rejection.Optional || len(p.CreatePods)+len(p.CreateChildren) == 0) {
		return
	}
	p.wait("cannot create %s: %s", p.Rejection.Object, head(p.Rejection.Message, 300))
	wait := firstRetry
	for range min(p.Rejection.Times-1, 10) {
		wait = min(2*wait, maxRetry)
	}
	again := p.Rejection.At.Add(wait)
	if !p.Now.Before(again) {
		return
	}
	p.requeueAt(again)
	if p.Rejection.Optional {
		p.CreateChildren = slices.DeleteFunc(p.CreateChildren, optional)
	} else {
		p.CreatePods, p.CreateChildren = nil, nil
	}
}

// childRejected ends a job one of whose children the API server will never accept.
func (p *pass) childRejected() *verdict {
	if p.Rejection == nil || !p.Rejection.Invalid {
		return nil
	}
	return p.fails(ReasonRefused, "the API server rejects %s: %s", p.Rejection.Object, head(p.Rejection.Message, 500))
}

// invalidJob ends a job that cannot be run as it is written.
func (p *pass) invalidJob() *verdict {
	if role, found := p.Job.TooManyReplicas(); found {
		return p.fails(ReasonRefused, "it has too many replicas: %d of %s, and a job may have %d in all", p.Job.Size(role), role.Name, MaxReplicas)
	}
	if p.Job.Invalid == "" {
		return nil
	}
	return p.fails(ReasonRefused, "%s", p.Job.Invalid)
}
