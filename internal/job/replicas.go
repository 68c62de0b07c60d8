package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// scale follows an edit of the number of replicas. The members of a gang have its size in their environment, so another size
// is another attempt; elsewhere replicas are added and removed at the top end.
func (p *pass) scale() {
	var changes []string
	for _, role := range p.Job.Roles {
		if was, is := p.next().role(role.Name).Size, p.Job.Size(role); was != is {
			changes = append(changes, fmt.Sprintf("%s from %d to %d", role.Name, was, is))
		}
	}
	if len(changes) > 0 {
		what := "is scaled: " + strings.Join(changes, ", ")
		p.emit(false, "Scaled", what)
		if p.Job.gang() {
			p.restartAfterEdit(what)
		}
		p.recordSizes()
	}
	p.recordSurplus()
}

// followBounds follows an edit of an elastic job's bounds. Each replica has the bounds in its environment from its start, and
// replicas with different bounds never meet. So new bounds are another attempt.
func (p *pass) followBounds() {
	if p.Job.Elastic == nil || !p.next().Finishing.IsZero() {
		return
	}
	now := p.Job.Elastic.Bounds()
	for _, r := range p.replicas {
		if r.pod == nil || p.isLeaving(r.pod) {
			continue
		}
		if told := r.pod.Annotations[AnnotationBounds]; told != "" && told != now {
			what := fmt.Sprintf("has new elastic bounds: %s instead of %s", now, told)
			p.emit(false, "Scaled", what)
			p.restartAfterEdit(what)
			return
		}
	}
}

// restartAfterEdit starts the next attempt because the job was edited. It is not charged.
func (p *pass) restartAfterEdit(what string) {
	p.nextAttempt(ReasonScaled, what)
	p.next().unset(Running)
	p.next().set(Restarting, p.reason(Restarting), p.sentence(what), p.Now)
}

func (p *pass) recordSizes() {
	for _, role := range p.Job.Roles {
		p.next().role(role.Name).Size = p.Job.Size(role)
	}
}

// recordSurplus makes sure that a pod removed by scaling down does not count as disrupted when the number is raised
// again: neither before it is gone, nor afterwards while a stale cache still shows it.
func (p *pass) recordSurplus() {
	s := p.next()
	for _, pod := range p.surplus {
		r, _, ok := p.Job.replicaOf(pod)
		if !ok {
			continue
		}
		if rec := s.record(r); rec != nil && rec.Pod != "" && rec.Pod != pod.UID && !p.Live {
			p.Ask.Pods = true // an old list may show a pod that was replaced long ago, and the record of the present one would be lost
		}
		s.recordOf(r, pod.UID).Handled = true
	}
	for n := range s.Records { // a replica that was not replaced may come back by scaling
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
