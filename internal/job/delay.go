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

// inARow is the number of restarts in a row with the one for this incident, given how many there were before. All count,
// whatever their class, but for a disruption of a training that was healthy; that, or any failure of one, starts a new row.
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
// replica. A pod that vanished shows nothing of it, and the job's own time stands for it.
func (p *pass) trained(i *incident) time.Duration {
	if from := i.runFrom; p.scope() == ScopeReplica && !from.IsZero() {
		if i.runTo.IsZero() {
			return p.Now.Sub(from)
		}
		return i.runTo.Sub(from)
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
