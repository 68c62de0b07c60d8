package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The flags of run that describe pods take effect on the real cluster.
func TestRunGivesThePodsWhatItsFlagsSay(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	data, out := t.TempDir(), t.TempDir()
	write(t, filepath.Join(data, "set"), "content\n")
	d.expect(finish(d, d.run(
		"df -k --output=size /dev/shm | tail -1; cat /given/set; touch /given/x 2>/dev/null || echo read only; echo model > /out/model",
		"--name=big", "--cpus=0.5", "--memory=200Mi", "--shm=64Mi", "--volume="+data+":/given:ro", "--volume="+out+":/out",
		"--label=team=vision", "--annotation=owner=ann", "--node-selector=kubernetes.io/os=linux", "--priority=system-node-critical", "--queue=gpus",
	)), 0, `^worker-0 \| +65536$`, `^worker-0 \| content$`, `^worker-0 \| read only$`)
	if model, err := os.ReadFile(filepath.Join(out, "model")); err != nil || string(model) != "model\n" {
		t.Errorf("the volume has %q (%v)", model, err)
	}
	d.expect(d.types("get", "-l", "team=vision"), 0, `^big +PyTorchJob +Succeeded `)
	d.expect(d.types("get", "big", "-o", "yaml"), 0, `^    kueue.x-k8s.io/queue-name: gpus$`, `^    owner: ann$`)
	got := d.Kubectl("get", "pod", "big-worker-0", "-o",
		"jsonpath={.spec.containers[0].resources.requests.cpu} {.spec.containers[0].resources.limits.memory} {.metadata.labels.team} {.metadata.annotations.owner} {.spec.nodeSelector} {.spec.priorityClassName}")
	if want := `500m 200Mi vision ann {"kubernetes.io/os":"linux"} system-node-critical`; got != want {
		t.Errorf("the pod has\n%s, want\n%s", got, want)
	}
	d.refuses(finish(d, d.run("true", "--name=low", "--priority=low")), 2, "--priority low: there is no such PriorityClass")
}

// The kernel ends a replica that takes more memory than it may.
func TestRunLimitsMemory(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.expect(finish(d, d.run("exec python3 -c 'x = bytearray(200 << 20)'", "--name=greedy", "--memory=64Mi")), 1, `Worker 0 .* ran out of memory \(OOMKilled`)
}

// A program of MPI needs no manifest: mpirun starts it on each Worker.
func TestRunStartsAProgramByMPIRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	program := filepath.Join(t.TempDir(), "ring")
	if out, err := exec.CommandContext(t.Context(), "mpicc.openmpi", "-o", program, "../../examples/mpijob/ring.c").CombinedOutput(); err != nil {
		t.Fatalf("compiling the ring (make setup installs what it needs): %v: %s", err, out)
	}
	d.expect(d.types("run", "--image=none", "--name=ring", "--mpi", "--nodes=2", "--nproc=2", "--", program, "2"), 0,
		`rank \d of 4 on ring-worker-0`, `rank \d of 4 on ring-worker-1`, `lap 1: the token is 6$`, `done: 2 laps of 4$`)
	d.expect(d.types("get", "ring"), 0, `^ring +MPIJob +Succeeded `)
}
