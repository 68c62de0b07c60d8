package kinds

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/manifest/traceid"
	"github.com/trainyard/trainyard/internal/testing/golden"
)

// day is any moment.
var day = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

// TestChildren shows, for each manifest in testdata, everything that is made for it: <name>.yaml becomes
// <name>.children.yaml.
func TestChildren(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".children.yaml") {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			golden.Check(t, strings.TrimSuffix(file, ".yaml")+".children.yaml", string(children(t, read(t, file))))
		})
	}
}

// read takes the job out of a file. What it is made from stands before it.
func read(t *testing.T, file string) *manifest.Manifest {
	t.Helper()
	kind, obj := object(t, file)
	before := obj.DeepCopyObject()
	m := kind.Read(obj)
	if diff := cmp.Diff(before, obj.DeepCopyObject()); diff != "" {
		t.Errorf("reading the object changed it:\n%s", diff)
	}
	return m
}

func object(t *testing.T, file string) (Kind, manifest.Object) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	last := documents[len(documents)-1]
	for _, kind := range All {
		if !strings.Contains(last, "kind: "+kind.Name()+"\n") {
			continue
		}
		obj := kind.New()
		parse(t, last, obj)
		if based, ok := kind.(Based); ok && len(documents) > 1 {
			base := based.Wants(obj)
			parse(t, documents[0], base)
			if err := based.Take(obj, base); err != nil {
				t.Fatal(err)
			}
		}
		return kind, obj
	}
	t.Fatalf("%s has no job at its end", file)
	return nil, nil
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func children(t *testing.T, m *manifest.Manifest) []byte {
	t.Helper()
	var objects []any
	for _, c := range m.Job.Children {
		if c.Required {
			objects = append(objects, c.Object)
		}
	}
	for _, role := range m.Job.Roles {
		for i := range m.Job.Size(role) {
			objects = append(objects, m.Pod(job.Replica{Role: role.Name, Index: i}, 2))
		}
	}
	for _, c := range m.Job.Children {
		if !c.Required {
			objects = append(objects, c.Object)
		}
	}
	var out bytes.Buffer
	for _, obj := range objects {
		text, err := yaml.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes()
}

// manifests are the files in testdata with jobs of a kind that have roles.
func manifests(t *testing.T, kind Kind) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(file string) bool {
		if strings.HasSuffix(file, ".children.yaml") {
			return true
		}
		of, _ := object(t, file)
		return of.Name() != kind.Name() || len(read(t, file).Job.Roles) == 0
	})
	if len(files) == 0 {
		t.Fatalf("testdata has no %s", kind.Name())
	}
	return files
}

// A template that sets such a variable would give all replicas of its role one value; lint warns of it.
func TestVariablesThatEachReplicaHasItsOwnOf(t *testing.T) {
	for _, kind := range All {
		kind, ok := kind.(kubeflow.Kind)
		if !ok {
			continue
		}
		t.Run(kind.Name(), func(t *testing.T) {
			found := map[string]bool{}
			for _, file := range manifests(t, kind) {
				m := read(t, file)
				for _, role := range m.Job.Roles {
					first := map[string]string{}
					for i := range m.Job.Size(role) {
						env := m.Env(job.Replica{Role: role.Name, Index: i}, 0)
						for _, e := range slices.Concat(env.Everywhere, env.Training) {
							if value, known := first[e.Name]; known && value != e.Value {
								found[e.Name] = true
							}
							first[e.Name] = e.Value
						}
					}
				}
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(kind.PerReplica)), slices.Sorted(maps.Keys(found))); diff != "" {
				t.Errorf("variables that differ from replica to replica (-named +found):\n%s", diff)
			}
		})
	}
}

// Containers of a job that names a span are told which span of the job is theirs, unless their template says another. Those of other jobs are told
// nothing, as testdata shows.
func TestTraceContext(t *testing.T) {
	const own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, kind := range All {
		for _, file := range manifests(t, kind) {
			t.Run(filepath.Base(file), func(t *testing.T) {
				_, obj := object(t, file)
				obj.SetUID("j1")
				obj.SetAnnotations(map[string]string{traceid.Annotation: "00-11111111111111111111111111111111-2222222222222222-01"})
				m := kind.Read(obj)
				trace := traceid.Of("j1", obj.GetAnnotations())
				for _, role := range m.Job.Roles {
					told := func() string {
						pod := m.Pod(job.Replica{Role: role.Name, Index: 0}, 2)
						for _, e := range naming.TrainingContainer(&pod.Spec, role.Container).Env {
							if e.Name == traceid.Variable {
								return e.Value
							}
						}
						return ""
					}
					if got, want := told(), trace.Context(trace.Replica(2, strings.ToLower(role.Name)+"-0")); got != want {
						t.Errorf("%s 0 is told %s, want %s", role.Name, got, want)
					}
					container := naming.TrainingContainer(&m.Templates[role.Name].Spec, role.Container)
					container.Env = append(container.Env, corev1.EnvVar{Name: traceid.Variable, Value: own})
					if got := told(); got != own {
						t.Errorf("%s 0 is told %s, and its template says %s", role.Name, got, own)
					}
				}
			})
		}
	}
}

// Every status the engine can record comes back from the API object as it was written.
func TestStatusRoundTrip(t *testing.T) {
	for _, kind := range All {
		for _, file := range manifests(t, kind) {
			t.Run(filepath.Base(file), func(t *testing.T) { roundTrip(t, kind, file) })
		}
	}
}

func roundTrip(t *testing.T, kind Kind, file string) {
	t.Helper()
	m := read(t, file)
	last := m.Job.Roles[len(m.Job.Roles)-1].Name
	want := job.Decide(job.Observed{Now: day, Job: m.Job, Status: m.Status}).Status
	want.LastFailure = &job.Failure{
		Replica: job.Replica{Role: last, Index: 1}, Pod: "demo-1", Node: "n1", ExitCode: 137, Signal: 9,
		Reason: "Error", Message: "last words", Time: day, Class: job.Application,
	}
	want.Roles[0].Started, want.Roles[0].Done = []int32{0, 1, 2, 5, 7, 8}, []int32{3}
	want.NotBefore, want.Finishing, want.CompletionTime = day, day, day
	want.Records = []job.Record{{Replica: job.Replica{Role: last, Index: 1}, Pod: "u1", Failures: 2, Handled: true, InARow: 1, NotBefore: day, Lost: true}}
	want.InARow, want.AvoidNodes = 2, []job.AvoidedNode{{Node: "n1", Until: day, Strikes: 1, Why: "OutOfcpu (Refusal)", OnlyPreferred: true}}
	_, obj := object(t, file)
	kind.Write(obj, m, want)
	stored, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	again := kind.New()
	if err := yaml.Unmarshal(stored, again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, kind.Read(again).Status); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}
