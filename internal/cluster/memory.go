package cluster

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// breath is how often a process looks whether it is at rest.
	breath = 2 * time.Second
	// calm is the most bytes that a process at rest allocates in one breath; garbage is how many it lets come together.
	calm    = 16 << 20
	garbage = 64 << 20
)

// giveBackAtRest returns memory to the machine whenever the process has done something and is at rest again: a start needs twice
// what the cluster it leads to does, and a person's machine has better uses for the difference.
func giveBackAtRest(ctx context.Context) {
	ticker := time.NewTicker(breath)
	defer ticker.Stop()
	last, given := allocated(), uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := allocated()
		if now-last < calm && (given == 0 || now-given > garbage) {
			debug.FreeOSMemory()
			given = now
		}
		last = now
	}
}

// allocated is how many bytes the process has allocated since it began.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
