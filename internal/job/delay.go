package job

import "time"

const (
	firstDelay = 10 * time.Second
	maxDelay   = 300 * time.Second
	// healthyAfter is how long a replica, or a gang, must have trained for its earlier restarts to be forgotten.
	healthyAfter = 10 * time.Minute
)

// restartDelay is the wait before the nth restart in a row: none before the first, then doubling.
func restartDelay(n int32) time.Duration {
	if n <= 1 {
		return 0
	}
	delay := firstDelay
	for range n - 2 {
		if delay = 2 * delay; delay >= maxDelay {
			return maxDelay
		}
	}
	return delay
}

// inARow is the number of restarts in a row with the one for this incident, given how many there were before. Each restart
// counts, whatever its class. Ten healthy minutes before it reset the count: to 0 for a disruption, to 1 for another failure.
func (p *pass) inARow(before int32, i *incident) int32 {
	if p.trained(i) < healthyAfter {
		return before + 1
	}
	if i.Class == Disruption {
		return 0
	}
	return 1
}

// trained is how long the training went on before the incident: that of the gang where it restarts as one, else that of the
// replica. A replica whose pod shows nothing of it, because it was refused or has vanished, counts as one that never trained:
// its replacements must not follow each other without a delay.
func (p *pass) trained(i *incident) time.Duration {
	switch {
	case i.Class == Refusal, p.scope() == ScopeReplica && i.runFrom.IsZero():
		return 0
	case p.scope() == ScopeReplica && i.runTo.IsZero():
		return p.Now.Sub(i.runFrom)
	case p.scope() == ScopeReplica:
		return i.runTo.Sub(i.runFrom)
	}
	if running := p.next().condition(Running); running != nil && running.Status {
		return p.Now.Sub(running.LastTransition)
	}
	return 0
}

// earliest is when the nth restart in a row may begin, zero if at once. The delay counts from the end of the second of the
// failure, but from no earlier than siblingWait ago: clocks differ.
func (p *pass) earliest(n int32, f *Failure) time.Time {
	delay := restartDelay(n)
	if delay == 0 {
		return time.Time{}
	}
	since := p.Now
	if ended := f.Time.Add(time.Second); !f.Time.IsZero() && ended.Before(since) {
		since = latest(ended, since.Add(-siblingWait))
	}
	return ceil(since.Add(delay))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
