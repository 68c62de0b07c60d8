package job

import "testing"

func TestRestartPolicy(t *testing.T) {
	exit := func(code int32) *Failure { return &Failure{Class: Application, ExitCode: code} }
	disruption := &Failure{Class: Disruption, Reason: "Evicted"}
	oom := &Failure{Class: Application, ExitCode: 1, Reason: reasonOOMKilled}
	for _, row := range []struct {
		sentence      string
		policy        RestartPolicy
		failure       *Failure
		retry, charge bool
	}{
		{"Never forgives no exit code", RestartNever, exit(137), false, false},
		{"Never forgives no disruption either", RestartNever, disruption, false, false},
		{"OnFailure restarts after any exit code and charges it", RestartOnFailure, exit(1), true, true},
		{"OnFailure restarts after a disruption for free", RestartOnFailure, disruption, true, false},
		{"Always is as OnFailure", RestartAlways, exit(1), true, true},
		{"Always is as OnFailure, also when disrupted", RestartAlways, disruption, true, false},
		{"ExitCode takes 1 for an error of the program", RestartExitCode, exit(1), false, false},
		{"ExitCode takes 127 for an error of the program", RestartExitCode, exit(127), false, false},
		{"ExitCode tries again from 128", RestartExitCode, exit(128), true, true},
		{"ExitCode tries again up to 255", RestartExitCode, exit(255), true, true},
		{"ExitCode restarts after a disruption for free", RestartExitCode, disruption, true, false},
		{"ExitCode tries again when memory ran out, whatever the code", RestartExitCode, oom, true, true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if retry, charge := row.policy.retries(row.failure); retry != row.retry || charge != row.charge {
				t.Errorf("retry %v, charge %v", retry, charge)
			}
		})
	}
}
