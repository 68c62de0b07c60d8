package job

import "testing"

func TestTheLedgerKeepsTenAttempts(t *testing.T) {
	var s Status
	for range 25 {
		s.openAttempt(epoch, func(string) bool { return false })
		s.closeAttempt(epoch, ReasonRestarted, "")
		s.Attempt++
	}
	if len(s.Attempts) != 10 || s.Attempts[9].Number != 24 {
		t.Errorf("%d attempts, the last is %d", len(s.Attempts), s.Attempts[len(s.Attempts)-1].Number)
	}
}
