package job

import (
	"fmt"
	"slices"
)

// Elastic lets a job train with any number of replicas of one role between Min and Max. Scaling changes the top end
// only, so that replica 0 is never the one removed.
type Elastic struct {
	Role     string
	Min, Max int32
	// Anchored says that replica 0 holds the rendezvous: without it nobody can train, and the others lose
	// touch with each other.
	Anchored bool
}

// Bounds is their text, as torchrun reads it and as pods carry it.
func (e *Elastic) Bounds() string { return fmt.Sprintf("%d:%d", e.Min, e.Max) }

// anchor reports whether the other replicas cannot train without this one. They restart together with it.
func (j Job) anchor(r Replica) bool {
	return j.Elastic != nil && j.Elastic.Anchored && j.ScopeOverride == "" && r == Replica{j.Elastic.Role, 0}
}

// anchorFailed reports whether the replica that holds the rendezvous is among the incidents of this pass.
func (p *pass) anchorFailed() bool {
	return slices.ContainsFunc(p.incidents, func(i incident) bool { return i.newInPlace == 0 && p.Job.anchor(i.replica.Replica) })
}

// withoutUndecided leaves out failures of replicas that ended by themselves less than siblingWait ago, unless the replica
// that holds the rendezvous has failed. When that one fails the others fail because of it, perhaps visibly earlier, and are
// not charged then. A replica that failed for good is judged with all its failures at once: its pod is not read again.
func (p *pass) withoutUndecided(incidents []incident) []incident {
	if p.Job.Elastic == nil || !p.Job.anchor(Replica{p.Job.Elastic.Role, 0}) || p.anchorFailed() {
		return incidents
	}
	early := func(i incident) bool {
		return i.likelihood() == 0 && !i.Time.After(p.Now) && p.Now.Before(i.Time.Add(siblingWait))
	}
	failed := map[Replica]bool{}
	for _, i := range incidents {
		failed[i.replica.Replica] = failed[i.replica.Replica] || i.newInPlace == 0 && !early(i)
	}
	return slices.DeleteFunc(incidents, func(i incident) bool {
		undecided := early(i) && !failed[i.replica.Replica]
		if undecided {
			p.requeueAt(i.Time.Add(siblingWait))
		}
		return undecided
	})
}

// expendable reports whether the job can go on without a replica of the role.
func (p *pass) expendable(role string) bool {
	return p.Job.Elastic != nil && p.Job.Elastic.Role == role && p.scope() == ScopeReplica
}

// isLost reports whether the job goes on without the replica.
func (p *pass) isLost(r Replica) bool {
	rec := p.next().record(r)
	return rec != nil && rec.Lost
}

// lost counts the replicas the job goes on without.
func (p *pass) lost() int32 {
	var n int32
	for _, r := range p.replicas {
		if p.isLost(r.Replica) {
			n++
		}
	}
	return n
}

// required is how many replicas of a role must train for the job to be running.
func (p *pass) required(role Role) int32 {
	if e := p.Job.Elastic; e != nil && e.Role == role.Name {
		return e.Min
	}
	return p.Job.Size(role)
}
