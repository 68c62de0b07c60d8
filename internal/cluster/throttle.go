package cluster

import "time"

// podUpdatePeriod is how often kubelet gets the list of its pods at most.
const podUpdatePeriod = 20 * time.Millisecond

// atMostEvery forwards what is sent to the channel it returns, at most once in a period: the first at once, and of those that
// follow within the period the last. It is for states that replace each other. Kubelet gets all its pods whenever one of them
// changes, and compares each with what it has: with a hundred pods that change at the same time that is a fifth of all work.
func atMostEvery[T any](period time.Duration, out chan<- T) chan<- T {
	in := make(chan T)
	go func() {
		for state := range in {
			for more := true; more; {
				out <- state
				state, more = lastWithin(period, in)
			}
		}
	}()
	return in
}

// lastWithin is the last of what is sent within a period, if anything is.
func lastWithin[T any](period time.Duration, in <-chan T) (last T, came bool) {
	for end := time.After(period); ; {
		select {
		case state, open := <-in:
			if !open {
				return last, came
			}
			last, came = state, true
		case <-end:
			return last, came
		}
	}
}
