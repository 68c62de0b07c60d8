package controller_test

import (
	"fmt"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// A job of every kind that trains as one gang grows, is suspended and resumed: each time all replicas start again, and no retry is charged.
// PyTorchJobs and TFJobs have tests of their own.
func TestJobsOfEveryKindAreScaledAndSuspended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gates := t.TempDir()
	role := func(name string) *kubeflowv1.ReplicaSpec { // it says what it was told, and runs until its gate is open
		return running(1, fmt.Sprintf("cat /etc/mpi/hostfile; env; echo begun; until test -f %s; do sleep 0.2; done", filepath.Join(gates, name)))
	}
	server := running(1, "")
	server.Template.Spec.Containers[0].Command = nil // it serves mpirun
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	for _, row := range []struct {
		job client.Object
		// scalable says that the kind has a scale subresource.
		scalable bool
		// first is the pod that says how many there are, says what it says of two Workers.
		first, says string
	}{
		{&kubeflowv1.JAXJob{ObjectMeta: meta("jax"), Spec: kubeflowv1.JAXJobSpec{JAXReplicaSpecs: roles{"Worker": role("jax")}}},
			true, "worker-0", "NUM_PROCESSES=2"},
		{&kubeflowv1.PaddleJob{ObjectMeta: meta("paddle"), Spec: kubeflowv1.PaddleJobSpec{PaddleReplicaSpecs: roles{"Worker": role("paddle")}}},
			true, "worker-0", "PADDLE_NNODES=2"},
		{&kubeflowv1.XGBoostJob{ObjectMeta: meta("xgboost"), Spec: kubeflowv1.XGBoostJobSpec{XGBReplicaSpecs: roles{"Master": role("xgboost"), "Worker": role("xgboost")}}},
			false, "master-0", "WORLD_SIZE=3"},
		{&kubeflowv1.MPIJob{ObjectMeta: meta("mpi"), Spec: kubeflowv1.MPIJobSpec{MPIReplicaSpecs: roles{"Launcher": role("mpi"), "Worker": server}}},
			false, "launcher", "mpi-worker-1 slots=1"},
	} {
		name := row.job.GetName()
		w.row(name, func(w *world) {
			j := w.submit(row.job)
			runs := func(after string) kubeflowv1.JobStatus {
				w.Await("begun", "logs", name+"-"+row.first, "-c", "train")
				return j.until("runs "+after, func(s kubeflowv1.JobStatus) bool { return newest(s).Type == kubeflowv1.JobRunning })
			}
			runs("first")
			if row.scalable {
				w.Kubectl("scale", name+"job/"+name, "--replicas=2")
			} else {
				j.edit(func(obj client.Object) { specsOf(obj)["Worker"].Replicas = new(int32(2)) })
			}
			s := j.until("runs with two Workers", func(s kubeflowv1.JobStatus) bool {
				return s.Attempt == 1 && newest(s).Type == kubeflowv1.JobRunning && s.ReplicaStatuses["Worker"].Active == 2
			})
			w.Await(row.says, "logs", name+"-"+row.first, "-c", "train")
			j.edit(suspended(true))
			j.becomes(kubeflowv1.JobSuspended)
			w.Eventually("everything is gone", func() error {
				if pods, services := j.pods(), j.services(); len(pods)+len(services) > 0 {
					return fmt.Errorf("%d pods and services %q", len(pods), services)
				}
				return nil
			})
			j.edit(suspended(false))
			resumed := runs("again")
			if s.Retries+s.Disruptions+resumed.Retries+resumed.Disruptions != 0 || !resumed.StartTime.After(s.StartTime.Time) {
				w.Errorf("the status is\n%s\nand after it was resumed\n%s", describe(s), describe(resumed))
			}
			open(w.t, filepath.Join(gates, name))
			j.becomes(kubeflowv1.JobSucceeded)
		})
	}
}
