package job

import (
	"testing"
	"time"
)

// The delay of a charged restart counts from the failure, though the gang waited for its members since; a clock that is wrong makes it neither
// much shorter nor longer.
func TestTheDelayCountsFromTheFailure(t *testing.T) {
	now := epoch.Add(time.Hour)
	for _, row := range []struct {
		sentence string
		failed   time.Time
		starts   time.Duration
	}{
		{"judged at once", now, 10 * time.Second},
		{"judged within the second in which it came", now.Add(-900 * time.Millisecond).Truncate(time.Second), 10 * time.Second},
		{"judged after siblingWait", now.Add(-3 * time.Second), 8 * time.Second},
		{"told by a clock that is behind, or found after long", now.Add(-time.Hour), 7 * time.Second},
		{"told by a clock that is ahead", now.Add(time.Hour), 10 * time.Second},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			p := &pass{Observed: Observed{Now: now}}
			if got := p.earliest(2, &Failure{Time: row.failed}).Sub(now); got != row.starts {
				t.Errorf("it starts after %s, not %s", got, row.starts)
			}
			if got := p.earliest(1, &Failure{Time: row.failed}); !got.IsZero() {
				t.Errorf("the first restart is delayed until %s", got)
			}
		})
	}
}
