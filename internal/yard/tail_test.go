package yard

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestOnlySilenceEndsALog(t *testing.T) {
	for _, row := range []struct {
		sentence string
		writes   func(*tail)
		whole    bool
	}{
		{"the reader takes an hour for the only line", func(t *tail) {
			t.emitting.Lock()
			time.Sleep(time.Hour)
			t.emitted.Add(1)
			t.emitting.Unlock()
		}, true},
		{"a line comes every few seconds, for an hour", func(t *tail) {
			for range 1200 {
				time.Sleep(3 * time.Second)
				t.emitted.Add(1)
			}
		}, true},
		{"nothing comes", func(*tail) { time.Sleep(time.Hour) }, false},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, done := &tail{}, make(chan struct{})
				go func() {
					row.writes(log)
					close(done)
				}()
				if whole := log.await(t.Context(), done, 5*time.Second); whole != row.whole {
					t.Errorf("read to its end: %t", whole)
				}
				<-done
			})
		})
	}
}
