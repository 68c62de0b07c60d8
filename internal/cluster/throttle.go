package cluster

import "time"

// podPace is how often kubelet is told the pods of its node.
const podPace = 20 * time.Millisecond

// atMostEvery passes on what is sent to the channel it returns, at most once in a period: the first at once, and of what comes
// in between the last. It is for states that replace each other. Kubelet is told all its pods whenever one of them changes, and
// compares each with what it knows: with a hundred pods that change at the same time that is a fifth of all the work there is.
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

// lastWithin is the last of what comes within a time, if anything does.
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
