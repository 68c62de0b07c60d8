package job

// Elastic lets a job train with any number of replicas of one role between Min and Max. Scaling changes the top end
// only: replica 0 holds the rendezvous and is never the one removed.
type Elastic struct {
	Role     string
	Min, Max int32
}

// expendable tells whether the job can go on without a replica of the role.
func (p *pass) expendable(role string) bool {
	return p.Job.Elastic != nil && p.Job.Elastic.Role == role && p.Job.RestartScope() == ScopeReplica
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
