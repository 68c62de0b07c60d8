package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
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
			p.anew(what)
		}
		p.recordSizes()
	}
	p.settleSurplus()
}

// rebound follows an edit of an elastic job's bounds. Its replicas were told them when they started, and those that were told
// others never meet, so that other bounds are another attempt.
func (p *pass) rebound() {
	if p.Job.Elastic == nil || !p.next().Finishing.IsZero() {
		return
	}
	now := p.Job.Elastic.Bounds()
	for _, r := range p.replicas {
		if r.pod == nil || p.leaves(r.pod) {
			continue
		}
		if told := r.pod.Annotations[AnnotationBounds]; told != "" && told != now {
			what := fmt.Sprintf("is bounded otherwise: from %s to %s", told, now)
			p.say(false, "Scaled", what)
			p.anew(what)
			return
		}
	}
}

// anew starts the next attempt because the job was edited, at nobody's cost.
func (p *pass) anew(what string) {
	p.nextAttempt(ReasonScaled, what)
	p.next().unset(Running)
	p.next().set(Restarting, p.reason(Restarting), p.sentence(what), p.Now)
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
		r, _, ok := p.Job.replicaOf(pod)
		if !ok {
			continue
		}
		if rec := s.record(r); rec != nil && rec.Pod != "" && rec.Pod != pod.UID && !p.Live {
			p.Ask.Pods = true // an old list may show a pod that was replaced long ago, and what is known of the present one be lost
		}
		s.recordOf(r, pod.UID).Settled = true
	}
	for n := range s.Records { // who was lost for good may come back by scaling
		if rec := &s.Records[n]; rec.Replica.Index >= s.role(rec.Replica.Role).Size {
			rec.Lost, rec.NotBefore = false, time.Time{}
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
