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
	// Anchored says that replica 0 holds the rendezvous: without it nobody can train, and what the others know of each
	// other is lost with it.
	Anchored bool
}

// Bounds are what torchrun is told of them.
func (e *Elastic) Bounds() string { return fmt.Sprintf("%d:%d", e.Min, e.Max) }

// anchor tells whether the others cannot do without the replica. It and they then restart as one.
func (j Job) anchor(r Replica) bool {
	return j.Elastic != nil && j.Elastic.Anchored && j.ScopeOverride == "" && r == Replica{j.Elastic.Role, 0}
}

// anchorFell tells whether the replica that holds the rendezvous is among the incidents of this pass.
func (p *pass) anchorFell() bool {
	return slices.ContainsFunc(p.incidents, func(i incident) bool { return i.inPlace == 0 && p.Job.anchor(i.replica.Replica) })
}

// unheard leaves out the failures of replicas that ended by themselves while nothing is known of the one that holds the
// rendezvous. When that is lost the others fail by it, and may be seen to before it is: they are not to be charged then. A
// replica that has fallen meanwhile is judged whole: its pod is not looked at again.
func (p *pass) unheard(incidents []incident) []incident {
	if p.Job.Elastic == nil || !p.Job.anchor(Replica{p.Job.Elastic.Role, 0}) || p.anchorFell() {
		return incidents
	}
	early := func(i incident) bool {
		return i.likelihood() == 0 && !i.Time.After(p.Now) && p.Now.Before(i.Time.Add(heard))
	}
	fallen := map[Replica]bool{}
	for _, i := range incidents {
		fallen[i.replica.Replica] = fallen[i.replica.Replica] || i.inPlace == 0 && !early(i)
	}
	return slices.DeleteFunc(incidents, func(i incident) bool {
		unheard := early(i) && !fallen[i.replica.Replica]
		if unheard {
			p.lookAt(i.Time.Add(heard))
		}
		return unheard
	})
}

// expendable tells whether the job can go on without a replica of the role.
func (p *pass) expendable(role string) bool {
	return p.Job.Elastic != nil && p.Job.Elastic.Role == role && p.scope() == ScopeReplica
}

// isLost tells whether the job goes on without the replica.
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
