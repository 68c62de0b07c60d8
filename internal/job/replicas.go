package job

import (
	"fmt"
	"slices"
	"strings"
)

// scale follows an edit of the number of replicas. A gang was told its size when it started, so that another size is
// another attempt; elsewhere replicas are added and removed at the top end.
func (p *pass) scale() {
	var changes []string
	for _, role := range p.Job.Roles {
		if was, is := p.next().role(role.Name).Size, p.Job.Size(role); was != is {
			changes = append(changes, fmt.Sprintf("%s from %d to %d", role.Name, was, is))
		}
	}
	if len(changes) > 0 {
		what := "is scaled: " + strings.Join(changes, ", ")
		p.say(false, "Scaled", what)
		if p.Job.gang() {
			p.nextAttempt(ReasonScaled, what)
			p.next().unset(Running)
			p.next().set(Restarting, p.reason(Restarting), p.sentence(what), p.Now)
		}
		p.recordSizes()
	}
	p.settleSurplus()
}

func (p *pass) recordSizes() {
	for _, role := range p.Job.Roles {
		p.next().role(role.Name).Size = p.Job.Size(role)
	}
}

// settleSurplus makes sure that a pod removed by scaling down is not taken for a disrupted one when the number is raised
// again, neither before it is gone nor after, by a cache that still shows it.
func (p *pass) settleSurplus() {
	s := p.next()
	for _, pod := range p.surplus {
		if r, _, ok := p.Job.replicaOf(pod); ok {
			s.recordOf(r, pod.UID).Settled = true
		}
	}
	for n := range s.Roles {
		role := &s.Roles[n]
		beyond, _ := slices.BinarySearch(role.Started, role.Size)
		for _, index := range role.Started[beyond:] {
			if r := (Replica{role.Role, index}); s.record(r) == nil {
				s.recordOf(r, "")
			}
		}
		if role.Started = role.Started[:beyond]; beyond == 0 {
			role.Started = nil
		}
	}
}
