package job

import "fmt"

// wait records what the job waits for. Of several, the first is the one to report.
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
		return "the restart delay is not over"
	}
	if why := p.whyNotPlaced(); why != "" {
		return why
	}
	for _, r := range p.replicas {
		if why := p.whyWaiting(r); why != "" {
			return fmt.Sprintf("%s (pod %s) waits: %s", r.Replica, p.Job.PodName(r.Replica), why)
		}
	}
	return ""
}

// whyWaiting says what keeps one replica from training, nothing if it trains or is on its way.
func (p *pass) whyWaiting(r replica) string {
	switch rec := p.next().record(r.Replica); {
	case p.done(r.Replica) || p.isLost(r.Replica):
		return ""
	case p.handled(r), r.pod != nil && r.pod.DeletionTimestamp != nil:
		return "its last pod is stopping"
	case r.pod != nil:
		return r.waiting
	case p.foreign[p.Job.PodName(r.Replica)]:
		return "a pod of that name belongs to something else"
	case rec != nil && p.Now.Before(rec.NotBefore):
		return "its restart delay is not over"
	default:
		return p.waitsForRole(r.role)
	}
}
