package cluster

import (
	"testing"
	"testing/synctest"
	"time"
)

// Whatever the pace of the changes, the last state arrives, the first at once, and two are never closer than the period.
func TestStatesArePassedOnAtMostOnceInAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 20 * time.Millisecond
		out := make(chan int)
		in := atMostEvery(period, out)
		go func() {
			for i := range 100 {
				in <- i
				time.Sleep(time.Millisecond)
			}
			close(in)
		}()
		began, last := time.Now(), -1
		for n := 0; last < 99; n++ {
			last = <-out
			if want := time.Duration(n) * period; time.Since(began) != want {
				t.Errorf("state %d, the %dth sent, came after %v, not %v", last, n, time.Since(began), want)
			}
		}
	})
}
