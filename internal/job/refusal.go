package job

import (
	"slices"
	"time"
)

// Refusal is an answer of the API server to a creation that was not yes.
type Refusal struct {
	// Object is what was to be created: "pod demo-worker-1".
	Object string
	// Optional says that the job can start without the object.
	Optional bool
	// Invalid says that the object itself is wrong (422), so that asking again is no use. Otherwise something stands in
	// its way that may pass: a quota, a limit range, an object of that name.
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

// heedRefusal puts creations off when the API server said no a moment ago: nothing will tell us when it would say yes.
func (p *pass) heedRefusal() {
	optional := func(c Child) bool { return !c.Required }
	creates := slices.ContainsFunc(p.CreateChildren, optional)
	if p.Refusal == nil || !creates && (p.Refusal.Optional || len(p.CreatePods)+len(p.CreateChildren) == 0) {
		return
	}
	p.wait("cannot create %s: %s", p.Refusal.Object, head(p.Refusal.Message, 300))
	wait := firstRetry
	for range min(p.Refusal.Times-1, 10) {
		wait = min(2*wait, maxRetry)
	}
	again := p.Refusal.At.Add(wait)
	if !p.Now.Before(again) {
		return
	}
	p.lookAt(again)
	if p.Refusal.Optional {
		p.CreateChildren = slices.DeleteFunc(p.CreateChildren, optional)
	} else {
		p.CreatePods, p.CreateChildren = nil, nil
	}
}

// refusedForGood ends a job one of whose children the API server will never accept.
func (p *pass) refusedForGood() *verdict {
	if p.Refusal == nil || !p.Refusal.Invalid {
		return nil
	}
	return p.fails(ReasonRefused, "the API server refuses %s: %s", p.Refusal.Object, head(p.Refusal.Message, 500))
}
