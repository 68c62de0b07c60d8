package job

import "time"

// Success says which role's end ends the job; that of all where none is named.
type Success struct {
	Role string
	Rule SuccessRule
}

// SuccessRule says how many of the role's replicas must succeed.
type SuccessRule string

// The rules of success.
const (
	// SuccessAll: every replica of the role.
	SuccessAll SuccessRule = "All"
	// SuccessFirst: replica 0.
	SuccessFirst SuccessRule = "First"
	// SuccessAny: one, once no other runs any more.
	SuccessAny SuccessRule = "Any"
)

// exitBarrier is how long torch's agents wait for each other at the end.
const exitBarrier = 300 * time.Second

func (p *pass) succeeded() *verdict {
	if !p.roleSucceeded() {
		return nil
	}
	return &verdict{end: Succeeded, reason: ReasonSucceeded, message: "is successfully completed"}
}

func (p *pass) roleSucceeded() bool {
	switch p.Job.Success.Rule {
	case SuccessFirst:
		return p.done(Replica{p.Job.Success.Role, 0})
	case SuccessAny:
		if p.next().Finishing.IsZero() {
			return false
		}
		barrier := p.next().Finishing.Add(exitBarrier)
		if p.running(p.Job.Success.Role) == 0 || !p.Now.Before(barrier) {
			return true
		}
		p.requeueAt(barrier)
		return false
	default:
		there := false
		for _, r := range p.replicas {
			if p.Job.Success.Role != "" && p.Job.Success.Role != r.Role {
				continue
			}
			if there = true; !p.done(r.Replica) {
				return false
			}
		}
		return there
	}
}

// isComplete reports whether all that must succeed has succeeded, though others may still have to end.
func (p *pass) isComplete() bool {
	if p.Job.Success.Rule == SuccessAny {
		return len(p.next().role(p.Job.Success.Role).Done) > 0
	}
	return p.roleSucceeded()
}

// noteFinishing records since when an elastic job has a worker that succeeded. From then on nothing is restarted or
// added: the others are about to end.
func (p *pass) noteFinishing() {
	if p.Job.Success.Rule == SuccessAny && p.next().Finishing.IsZero() && len(p.next().role(p.Job.Success.Role).Done) > 0 {
		p.next().Finishing = ceil(p.Now)
	}
}

// running counts the replicas of a role whose training runs.
func (p *pass) running(role string) int32 {
	var n int32
	for _, r := range p.replicas {
		if r.Role == role && r.pod != nil && r.running && !p.done(r.Replica) {
			n++
		}
	}
	return n
}
