package job

import "slices"

// Dependency is a role that another waits for before it starts.
type Dependency struct {
	Role  string
	Until Milestone
}

// Milestone is how far a role must have come.
type Milestone string

// The milestones.
const (
	// MilestoneReady: each of its replicas is ready, or has succeeded.
	MilestoneReady Milestone = "Ready"
	// MilestoneComplete: each of its replicas has succeeded.
	MilestoneComplete Milestone = "Complete"
)

// prepares reports whether the role that trains waits for the end of this one. Such a role works once: what it has done stays
// done in later attempts, since it is there for them, and its replicas are not among those that train. It is not enough that another
// role waits for it: a step after the training waits for the training, too.
func (j Job) prepares(role string) bool { return j.follows(j.Trains, role) }

// follows reports whether a role starts after the end of another, by way of any that it waits for.
func (j Job) follows(role, other string) bool {
	r := j.role(role)
	return r != nil && slices.ContainsFunc(r.After, func(d Dependency) bool {
		return d == Dependency{other, MilestoneComplete} || j.follows(d.Role, other)
	})
}

// keepsDone reports whether what a role has done stays done in later attempts: with a role that prepares the training what each of its
// replicas did, with the training itself, where a step waits for its end, all of it or nothing.
func (p *pass) keepsDone(role string) bool {
	awaited := slices.ContainsFunc(p.Job.Roles, func(r Role) bool { return p.Job.follows(r.Name, role) })
	return p.Job.prepares(role) || awaited && p.reached(Dependency{role, MilestoneComplete})
}

// waitsForRole says what a role that has not started waits for, nothing if it may start.
func (p *pass) waitsForRole(role *Role) string {
	for _, d := range role.After {
		if !p.reached(d) {
			return "it starts when " + d.Role + " is " + map[Milestone]string{MilestoneReady: "ready", MilestoneComplete: "complete"}[d.Until]
		}
	}
	return ""
}

func (p *pass) reached(d Dependency) bool {
	for _, r := range p.replicas {
		if r.Role == d.Role && !p.done(r.Replica) && (d.Until == MilestoneComplete || !r.ready || p.handled(r)) {
			return false
		}
	}
	return true
}
