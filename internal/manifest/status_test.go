package manifest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
)

func TestTheReplicaOfAFailureIsReadAsItIsWritten(t *testing.T) {
	roles := []job.Role{{Name: "node-eval"}, {Name: "node"}, {Name: "node-1"}, {Name: "Worker"}}
	for _, replica := range []job.Replica{
		{Role: "node", Index: 1}, {Role: "node-eval"}, {Role: "node-1", Index: 12}, {Role: "Worker", Index: 3},
	} {
		written := writeFailure(&job.Failure{Replica: replica})
		if got := readFailure(written, roles).Replica; got != replica {
			t.Errorf("%s is written %q and read %s", replica, written.Replica, got)
		}
	}
	for _, text := range []string{"", "worker", "other-0"} {
		if got := readFailure(&kubeflowv1.ReplicaFailure{Replica: text}, roles).Replica; got != (job.Replica{}) {
			t.Errorf("%q is read %s", text, got)
		}
	}
}

func TestIndexes(t *testing.T) {
	for _, row := range []struct {
		text string
		set  []int32
	}{
		{"", nil}, {"0", []int32{0}}, {"0-3", []int32{0, 1, 2, 3}}, {"0,3-5", []int32{0, 3, 4, 5}}, {"1,3,5", []int32{1, 3, 5}},
	} {
		if got := writeIndexes(row.set); got != row.text {
			t.Errorf("%v is written %q, want %q", row.set, got, row.text)
		}
		if got := readIndexes(row.text); !slices.Equal(got, row.set) {
			t.Errorf("%q is read %v, want %v", row.text, got, row.set)
		}
	}
	if got := readIndexes("x,2,5-y,7"); !slices.Equal(got, []int32{2, 7}) {
		t.Errorf("what makes no sense is not left out: %v", got)
	}
	if got := readIndexes("0-2147483647,0-2147483647"); len(got) != job.MaxReplicas {
		t.Errorf("%d indexes are read, and a job has at most %d", len(got), job.MaxReplicas)
	}
}

// FuzzIndexes: whatever a status has, few indexes are read, and they are written and read back as they are.
func FuzzIndexes(f *testing.F) {
	for _, text := range []string{"", "0", "0,3-5", "5-3", "-1", "0-2147483647", "0-9999,0-9999", "1-,,-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set := readIndexes(text)
		if len(set) > job.MaxReplicas || !slices.IsSorted(set) {
			t.Fatalf("%q is read as %d indexes", text, len(set))
		}
		if again := readIndexes(writeIndexes(set)); !slices.Equal(again, set) {
			t.Fatalf("%v is read back as %v", set, again)
		}
	})
}

// etcdLimit is the largest object that etcd stores with its default settings, 1.5 MiB. restOfJob is what is left for the job's spec.
const (
	etcdLimit = 3 << 19
	restOfJob = 64 << 10
)

// Each replica of the largest job was replaced again and again, and waits for its next pod: that is when a record is longest.
func TestTheStatusOfTheLargestJobCanBeStored(t *testing.T) {
	s := job.Status{Roles: []job.RoleStatus{{Role: "Worker", Size: job.MaxReplicas}}}
	for i := range int32(job.MaxReplicas) {
		s.Records = append(s.Records, job.Record{
			Replica: job.Replica{Role: "Worker", Index: i}, Pod: uuid.NewUUID(), Handled: true, InARow: 12, NotBefore: time.Now(),
		})
		if i%2 == 0 {
			s.Roles[0].Started = append(s.Roles[0].Started, i) // every other one: the longest list of ranges
		}
	}
	text, err := json.Marshal(WriteStatus(s, func(string) string { return "" }))
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > etcdLimit-restOfJob {
		t.Errorf("the status has %d bytes, and a job of %d can be stored", len(text), etcdLimit)
	}
}
