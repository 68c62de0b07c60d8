package job

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// count sums up what the pods show: the numbers of every role, and what the job waits for.
func (p *pass) count() {
	s := p.next()
	var active int32
	for _, role := range p.Job.Roles {
		is := s.role(role.Name)
		was := *is
		is.Active, is.Failed, is.Succeeded = 0, 0, int32(len(is.Done))
		for _, r := range p.replicas {
			if r.Role != role.Name || r.pod == nil || p.leaves(r.pod) {
				continue
			}
			if r.failure != nil {
				is.Failed++
			} else if r.running && !p.done(r.Replica) {
				is.Active++
			}
		}
		if s.Finished() {
			// Pods of a finished job are removed; how it ended stays.
			is.Failed, is.Succeeded = max(is.Failed, was.Failed), max(is.Succeeded, was.Succeeded)
		}
		if !p.Job.prepares(role.Name) {
			active += is.Active
		}
	}
	s.Ready = fmt.Sprintf("%d/%d", active, p.Job.total())
	s.Message = p.message()
}

// wait notes what the job waits for. The first thing noted is the one to be told.
func (p *pass) wait(format string, args ...any) {
	if p.waits == "" {
		p.waits = fmt.Sprintf(format, args...)
	}
}

// message is one sentence on what the job waits for, or why it failed. It stays the same while that does.
func (p *pass) message() string {
	s := p.next()
	switch {
	case s.Is(Failed):
		return s.condition(Failed).Message
	case s.Finished() || p.Job.Policy.Suspend:
		return p.waits
	case p.waits != "":
		return p.waits
	case len(p.outdated) > 0:
		return "the pods of the attempt before are stopping"
	case p.Now.Before(s.NotBefore):
		return fmt.Sprintf("the restart delay of retry %d is not over", s.Retries)
	}
	for _, r := range p.replicas {
		if why := p.holds(r); why != "" {
			return fmt.Sprintf("%s (pod %s) waits: %s", r.Replica, p.Job.PodName(r.Replica), why)
		}
	}
	return ""
}

// leaves tells whether a pod is on its way out, or will be once this decision is carried out.
func (p *pass) leaves(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || slices.ContainsFunc(p.DeletePods, func(d Deletion) bool { return d.Pod == pod })
}

// holds says what keeps one replica from training, nothing if it trains or is on its way.
func (p *pass) holds(r replica) string {
	switch rec := p.next().record(r.Replica); {
	case p.done(r.Replica) || p.isLost(r.Replica):
		return ""
	case p.settled(r), r.pod != nil && r.pod.DeletionTimestamp != nil:
		return "its last pod is stopping"
	case r.pod != nil:
		return r.waiting
	case p.strangers[p.Job.PodName(r.Replica)]:
		return "a pod of that name belongs to something else"
	case rec != nil && p.Now.Before(rec.NotBefore):
		return "its restart delay is not over"
	default:
		return p.awaits(r.role)
	}
}
