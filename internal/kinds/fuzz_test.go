package kinds

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/job"
)

// FuzzRead: whatever object the API server stores, also one that no schema has seen, it is read, its children can be made, the rules
// decide about it, and its status can be written and read again.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		documents := strings.Split(string(text), "\n---\n")
		data, err := yaml.YAMLToJSON([]byte(documents[len(documents)-1]))
		if err != nil {
			f.Fatal(err)
		}
		for i, kind := range All {
			if strings.Contains(string(data), kind.Name()) {
				f.Add(uint8(i), data)
			}
		}
	}
	f.Add(uint8(0), []byte(`{"spec":{"pytorchReplicaSpecs":{"Worker":null,"":{},"worker":{"replicas":-1}},"elasticPolicy":{"minReplicas":-5}}}`))
	f.Add(uint8(1), []byte(`{"status":{"conditions":[{}],"replicaStatuses":{"x":null},"attempts":[{}],"records":[{}]}}`))
	f.Fuzz(func(t *testing.T, n uint8, data []byte) {
		kind := All[int(n)%len(All)]
		obj := kind.New()
		if json.Unmarshal(data, obj) != nil {
			return
		}
		m := kind.Read(obj)
		for _, role := range m.Job.Roles {
			for i := range min(m.Job.Size(role), 3) {
				m.Pod(job.Replica{Role: role.Name, Index: i}, 0)
			}
		}
		kind.Conditions(obj)
		d := job.Decide(job.Observed{Now: day, Job: m.Job, Status: m.Status, Fresh: true, Live: true})
		kind.Write(obj, m, d.Status)
		if again := kind.Read(obj); again.Status.Attempt != d.Status.Attempt || again.Status.Retries != d.Status.Retries {
			t.Fatalf("written %+v, read %+v", d.Status, again.Status)
		}
	})
}
