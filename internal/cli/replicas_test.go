package cli

import (
	"testing"

	"github.com/trainyard/trainyard/internal/job"
)

func TestHowAReplicaIsNamed(t *testing.T) {
	ring := job.Job{Name: "ring", Roles: []job.Role{{Name: "Launcher", Replicas: 1, Single: true}, {Name: "Worker", Replicas: 2}}}
	named := job.Job{Name: "worker", Roles: []job.Role{{Name: "Worker", Replicas: 2}}}
	for _, row := range []struct {
		sentence string
		job      job.Job
		name     string
		want     string
	}{
		{"by its short name", ring, "worker-1", "Worker 1"},
		{"by its pod", ring, "ring-worker-1", "Worker 1"},
		{"by its pod, whose name has no index", ring, "ring-launcher", "Launcher 0"},
		{"by the only replica's role", ring, "launcher", "Launcher 0"},
		{"by its short name, though its pod has none", ring, "launcher-0", "Launcher 0"},
		{"in the spelling of the manifest", ring, "Worker-1", "Worker 1"},
		{"in a job that is called like a role", named, "worker-1", "Worker 1"},
		{"by its pod, in a job that is called like a role", named, "worker-worker-1", "Worker 1"},
		{"a role alone names none of several", ring, "worker", "ring has no replica worker: it has launcher-0, worker-0, worker-1"},
		{"there are not so many", ring, "worker-2", "ring has no replica worker-2: it has launcher-0, worker-0, worker-1"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			r, err := findReplica(row.job, row.name)
			got := r.String()
			if err != nil {
				got = err.Error()
			}
			if got != row.want {
				t.Errorf("it is %q, want %q", got, row.want)
			}
		})
	}
}
