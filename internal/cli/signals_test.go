package cli

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/yard"
)

func TestWhatSignalsDoToAJob(t *testing.T) {
	const (
		deleted = ""
		kept    = "» demo is not deleted: the local cluster stops with this run, and `trainyard up --data-dir /d` continues the job.\n"
		goesOn  = "» demo keeps running: `trainyard attach demo --data-dir /d` follows it again, `trainyard delete demo --data-dir /d` stops it.\n"
	)
	const own, joined, another = "a cluster of its own", "a cluster that `up` started", "another cluster"
	for _, row := range []struct {
		signal               os.Signal
		cluster, onInterrupt string
		says                 string
		code                 outcome
		endsNow              bool
	}{
		{os.Interrupt, own, "", deleted, 0, false},
		{os.Interrupt, own, "detach", kept, 130, false},
		{os.Interrupt, joined, "detach", goesOn, 130, false},
		{os.Interrupt, another, "", goesOn, 130, false},
		{os.Interrupt, another, "delete", deleted, 0, false},
		{syscall.SIGTERM, own, "", kept, 143, true},
		{syscall.SIGTERM, own, "delete", deleted, 0, false},
		{syscall.SIGTERM, joined, "", goesOn, 143, true},
		{syscall.SIGTERM, another, "", goesOn, 143, true},
		{syscall.SIGHUP, own, "delete", kept, 129, false},
		{syscall.SIGPIPE, joined, "", goesOn, 129, false},
		{endCluster, own, "", kept, 129, true},
	} {
		t.Run(row.signal.String()+" on "+row.cluster+" "+row.onInterrupt, func(t *testing.T) {
			var said bytes.Buffer
			r := running{onInterrupt: row.onInterrupt, own: row.cluster == own, screen: newScreen(&said, &said)}
			r.local = row.cluster != another
			f := r.follower(nil)
			if row.says == deleted {
				if f.leaves(row.signal) {
					t.Error("the job is not deleted")
				}
				return
			}
			f.job = &yard.Job{Manifest: &manifest.Manifest{Job: job.Job{Name: "demo", Namespace: "default"}}}
			f.yard = &yard.Yard{DefaultNamespace: "default", TargetFlags: strings.Fields("--data-dir /d")}
			if err := f.interrupt(t.Context(), row.signal); !errors.Is(err, row.code) || said.String() != row.says || f.endsNow != row.endsNow {
				t.Errorf("it ends with %v and says %q; it ends now: %t", err, said.String(), f.endsNow)
			}
		})
	}
}

func TestAJobThatCannotContinueIsNotPromisedTo(t *testing.T) {
	var said bytes.Buffer
	f := (&running{own: true, screen: newScreen(&said, &said)}).follower(nil)
	f.job = &yard.Job{Manifest: &manifest.Manifest{Job: job.Job{Name: "demo", Roles: []job.Role{{Name: "Worker", RestartPolicy: job.RestartNever}}}}}
	f.yard = &yard.Yard{}
	_ = f.interrupt(t.Context(), syscall.SIGTERM)
	const want = "» demo is not deleted: the local cluster stops with this run, and `trainyard up` starts it again. The job then fails, because its restartPolicy is Never (--retries sets another).\n"
	if said.String() != want {
		t.Errorf("it says %q", said.String())
	}
}
