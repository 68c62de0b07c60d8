//go:build prove

package controller_test

import (
	"testing"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// Hydra, the mpirun of MPICH, starts its proxies through the agent, too. They call the launcher back by its name. On a machine
// of two cores the processes of MPICH 4.0 wait for each other for ever in MPI_Init now and then; why is not known yet.
func TestAnMPICHRing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Apply(mpiJob("v2beta1", "mpiImplementation: MPICH", 3, "mpirun.mpich", ringProgram(t, "mpich"), "3"))
	j := &training{world: w, name: "demo", empty: &kubeflowv1.MPIJob{}}
	if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries+s.Disruptions != 0 {
		t.Errorf("the status is\n%s", describe(s))
	}
	w.says("demo-launcher", "of 3 on demo-worker-0", "of 3 on demo-worker-2", "done: 3 laps of 3")
}
