package record

import (
	"sync/atomic"
	"time"
)

// Written tells what a store has written since it was opened, for those who watch a recorder.
type Written struct {
	gaps, lag, size atomic.Int64
}

// Gaps is how many gaps were recorded.
func (w *Written) Gaps() int64 { return w.gaps.Load() }

// Lag is how old an entry of a log was at most when it was recorded, since Lag was last called.
func (w *Written) Lag() time.Duration { return time.Duration(w.lag.Swap(0)) }

// Size is how many bytes all jobs took when they were last pruned.
func (w *Written) Size() int64 { return w.size.Load() }

// note takes entries that were written: how many gaps are among them, and the time of the last.
func (w *Written) note(gaps int64, last, now time.Time) {
	w.gaps.Add(gaps)
	for late := int64(now.Sub(last)); ; {
		if most := w.lag.Load(); late <= most || w.lag.CompareAndSwap(most, late) {
			return
		}
	}
}
