package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/testing/local"
	"github.com/trainyard/trainyard/internal/yard"
)

// A foreign finalizer holds a deleted job: delete says so while it waits.
func TestDeletingAHeldJob(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, strings.Replace(job("held", 1, "true"), "{name: held}", "{name: held, finalizers: [example.com/audit]}", 1))
	d.expect(d.types("submit", "-f", file), 0)
	d.expect(d.types("wait", "held"), 0)
	said, cmd := &transcript{}, d.command("delete", "held")
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.Eventually("what holds it", func() error {
		return said.has(`(?m)^job held is deleted, but still there: its finalizers hold it, example.com/audit\.$`)
	})
	d.Kubectl("patch", "pytorchjob", "held", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	_ = cmd.Wait()
	d.expect(local.Outcome{Stdout: said.String(), Code: cmd.ProcessState.ExitCode()}, 0, `^held is deleted\.$`)
}

// Follow says that a job which was deleted before is gone. It does not wait for ever, and does not confuse it with another of its name.
func TestFollowingAJobThatIsGone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, job("brief", 1, "true"))
	d.expect(d.types("submit", "-f", file), 0)
	y, err := yard.Open(local.Shared(t).RESTConfig(), d.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	j, err := y.Find(t.Context(), "brief")
	if err != nil {
		t.Fatal(err)
	}
	follow := func() {
		t.Helper()
		changes, err := y.Follow(t.Context(), j, func(bool) {})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case next := <-changes:
			if !next.Gone {
				t.Errorf("the job is not gone and has %d conditions", len(next.Status.Conditions))
			}
		case <-t.Context().Done():
			t.Error("Follow sends nothing")
		}
	}
	d.expect(d.types("delete", "brief"), 0)
	follow()
	d.expect(d.types("submit", "-f", file), 0)
	follow()
}

// A finished job of the same kind and name is deleted for the next one. A job of another kind with that name does not matter.
func TestAFinishedJobIsReplaced(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file, other := filepath.Join(t.TempDir(), "job.yaml"), filepath.Join(t.TempDir(), "other.yaml")
	write(t, file, job("twin", 1, "true"))
	write(t, other, strings.NewReplacer("PyTorchJob", "TFJob", "pytorchReplicaSpecs", "tfReplicaSpecs", "name: pytorch", "name: tensorflow").Replace(job("twin", 1, "true")))
	d.expect(d.types("submit", "-f", file), 0)
	d.expect(d.types("submit", "-f", other), 0)
	d.expect(d.types("wait", "pytorchjob/twin"), 0)
	d.expect(d.types("submit", "-f", file), 0, "^PyTorchJob twin is submitted")
	d.expect(d.types("wait", "twin"), 1, "jobs of two kinds have the name twin: use pytorchjob/twin")
}
