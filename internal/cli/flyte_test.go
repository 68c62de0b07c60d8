package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// typed runs a command line and gives what it prints and its exit code.
func typed(stdin string, args ...string) (stdout, stderr string, code int) {
	var out, errOut bytes.Buffer
	code = run("trainyard", args, strings.NewReader(stdin), &out, &errOut)
	return out.String(), errOut.String(), code
}

// The custom of Elastic(nnodes=2, nproc_per_node=2, run_policy=RunPolicy("all", backoff 4, ttl 100, deadline 200)).
const elasticTask = `{"type":"pytorch","taskTypeVersion":1,"container":{"image":"example.com/train","args":["pyflyte-execute"]},
"custom":{"workerReplicas":{"replicas":2},"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL","ttlSecondsAfterFinished":100,
"activeDeadlineSeconds":200,"backoffLimit":4},"elasticConfig":{"rdzvBackend":"c10d","minReplicas":2,"maxReplicas":2,"nprocPerNode":2,"maxRestarts":3}}}`

func TestFlyteRenderPrintsTheJobOfATask(t *testing.T) {
	out, _, code := typed(elasticTask, "flyte", "render", "-f", "-", "--name", "a1", "-n", "flytesnacks-development")
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, line := range []string{
		"kind: PyTorchJob", "name: a1", "namespace: flytesnacks-development", "cleanPodPolicy: All", "ttlSecondsAfterFinished: 100",
		"activeDeadlineSeconds: 200", "backoffLimit: 4", "minReplicas: 2", "image: example.com/train",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("the manifest lacks %q:\n%s", line, out)
		}
	}
	if strings.Contains(out, "status:") || strings.Contains(out, "creationTimestamp") {
		t.Errorf("the manifest has what only a cluster fills in:\n%s", out)
	}
}

func TestFlyteLintWarns(t *testing.T) {
	patient := strings.Replace(elasticTask, `"activeDeadlineSeconds":200`, `"activeDeadlineSeconds":2000`, 1)
	for task, says := range map[string]string{elasticTask: "task -: 2 warnings\n", patient: "task -: 1 warning\n"} {
		out, stderr, code := typed(task, "flyte", "lint", "-f", "-")
		if code != exitFailed || !strings.Contains(out, "backoffLimit") || !strings.HasSuffix(stderr, says) {
			t.Errorf("exit code %d, printed %q and %q", code, out, stderr)
		}
	}
}

func TestFlyteStatusReadsADump(t *testing.T) {
	dump := `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a1, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {pytorchReplicaSpecs: {}}
status:
  startTime: "2026-01-01T00:00:00Z"
  completionTime: "2026-01-01T00:10:00Z"
  conditions:
  - {type: Created, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: Running, status: "False", lastTransitionTime: "2026-01-01T00:00:01Z"}
  - {type: Succeeded, status: "True", lastTransitionTime: "2026-01-01T00:10:00Z"}
`
	mpi := strings.NewReplacer("PyTorchJob", "MPIJob", "pytorchReplicaSpecs", "mpiReplicaSpecs").Replace(dump)
	for _, text := range []string{dump, mpi} {
		out, stderr, code := typed(text, "flyte", "status", "-f", "-")
		if code != 0 || !strings.Contains(out, "Flyte 1: Success") || !strings.Contains(out, "Flyte 2: Success") || !strings.Contains(out, "why:") {
			t.Errorf("exit code %d, printed:\n%s%s", code, out, stderr)
		}
	}
}

func TestFlyteRefusesBadInputInOneSentence(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.json")
	unknown := filepath.Join(t.TempDir(), "unknown.json")
	if err := os.WriteFile(unknown, []byte(`{"type":"pytorch","taskTypeVersion":1,"custom":{"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_SOME"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no file", []string{"flyte", "render"}, "no task is named"},
		{"a file that is not there", []string{"flyte", "render", "-f", missing}, "no such file"},
		{"an unknown policy", []string{"flyte", "render", "-f", unknown}, "CLEANPOD_POLICY_SOME"},
		{"an unknown dialect", []string{"flyte", "lint", "-f", unknown, "--dialect", "v3"}, `no dialect "v3"`},
		{"a job and a file", []string{"flyte", "status", "a1", "-f", unknown}, "name one job, or a file"},
		{"a dump without a job", []string{"flyte", "status", "-f", unknown}, "no PyTorchJob, no TFJob and no MPIJob"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, stderr, code := typed("", c.args...)
			if code != exitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, said %q", code, stderr)
			}
		})
	}
}
