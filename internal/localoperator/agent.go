package localoperator

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/manifest/mpiplan"
	"github.com/trainyard/trainyard/internal/procrun"
)

// Agent is the agent of MPI jobs where containers are processes of this machine: this program itself, which the runtime shows to them at
// the agent's place.
var Agent = manifest.Agent{Image: "local", Command: []string{mpiplan.Program}, Env: localMPI}

// localMPI lets Open MPI, before and since version 5, run where all pods share the machine's processors: without a policy each pod
// would bind its processes to the same first ones. Root in a container of this machine is an ordinary user outside it, so Open MPI need
// not refuse it.
var localMPI = []corev1.EnvVar{
	{Name: procrun.ProgramAt, Value: mpiplan.Program},
	{Name: "OMPI_ALLOW_RUN_AS_ROOT", Value: "1"}, {Name: "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", Value: "1"},
	{Name: "PRTE_ALLOW_RUN_AS_ROOT", Value: "1"}, {Name: "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", Value: "1"},
	{Name: "OMPI_MCA_hwloc_base_binding_policy", Value: "none"}, {Name: "PRTE_MCA_hwloc_default_binding_policy", Value: "none"},
}
