package mpiplan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsAreReadAsTheyAreWritten(t *testing.T) {
	for _, plan := range []Plan{
		{Workers: 2, Slots: 1, Host: "demo-worker-%d", Service: "demo.team.svc"},
		{Workers: 10000, Slots: 8, Host: "demo-worker-%d.demo.team.svc", Launcher: "demo-launcher", Service: "demo.team.svc", Colon: true, Wait: true, Agent: true},
	} {
		got, err := Parse(plan.Args()[1:])
		if diff := cmp.Diff(plan, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}
