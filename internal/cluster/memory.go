package cluster

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// idleCheckPeriod is how often a process checks whether it is idle.
	idleCheckPeriod = 2 * time.Second
	// idleAllocation is the most bytes that an idle process allocates in one period; freeAfterAllocation is how many bytes it
	// allocates before its memory is worth freeing again.
	idleAllocation      = 16 << 20
	freeAfterAllocation = 64 << 20
)

// freeMemoryWhenIdle returns memory to the machine whenever the process has done something and is idle again: a start needs twice
// the memory of the running cluster, and a person's machine has better uses for the difference.
func freeMemoryWhenIdle(ctx context.Context) {
	ticker := time.NewTicker(idleCheckPeriod)
	defer ticker.Stop()
	last, freed := allocated(), uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := allocated()
		if now-last < idleAllocation && (freed == 0 || now-freed > freeAfterAllocation) {
			debug.FreeOSMemory()
			unmapProgram()
			freed = now
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
