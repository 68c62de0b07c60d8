package pytorch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/kinds/torchrun"
	"github.com/trainyard/trainyard/internal/manifest"
)

// environment says where the replicas meet, how many they are and which one this is, in the variables that torch.distributed reads
// and in those that torchrun reads (PET_*).
func environment(m *manifest.Manifest, pj *kubeflowv1.PyTorchJob, r job.Replica, attempt int32) manifest.Env {
	var v kubeflow.Variables
	v.Set("1", "PYTHONUNBUFFERED")
	if pj.Spec.ElasticPolicy == nil || m.Has(master) {
		static(&v, m, pj, r)
	}
	if n := pj.Spec.NprocPerNode; n != nil {
		v.Set(*n, "PET_NPROC_PER_NODE")
	}
	if pj.Spec.ElasticPolicy == nil {
		v.SetNumber(m.Total(), "PET_NNODES")
	} else {
		rendezvous(&v, m, pj, attempt)
	}
	return manifest.Env{Everywhere: v}
}

// static is the environment of a replica that has a fixed rank: that of its node, the leader's being 0.
func static(v *kubeflow.Variables, m *manifest.Manifest, pj *kubeflowv1.PyTorchJob, r job.Replica) {
	rank := r.Index
	if r.Role != m.Leader.Role {
		rank++
	}
	world := m.Total()
	if n := pj.Spec.NprocPerNode; n != nil {
		if perNode, err := strconv.ParseInt(*n, 10, 32); err == nil && perNode > 0 {
			world *= int32(perNode)
		}
	}
	v.SetNumber(kubeflow.LeaderPort(m, pj), "MASTER_PORT", "PET_MASTER_PORT")
	v.Set(m.Job.PodName(m.Leader), "MASTER_ADDR", "PET_MASTER_ADDR")
	v.SetNumber(world, "WORLD_SIZE")
	v.SetNumber(rank, "RANK", "PET_NODE_RANK")
}

// rendezvous is the environment of an elastic Worker. It has the bounds, never the present number: scaling must not change the
// environment of running Workers.
func rendezvous(v *kubeflow.Variables, m *manifest.Manifest, pj *kubeflowv1.PyTorchJob, attempt int32) {
	e := pj.Spec.ElasticPolicy
	host, at, backend, id := m.Job.PodName(job.Replica{Role: worker}), kubeflow.Port(m, kubeflowv1.PyTorchLayout, worker), kubeflowv1.RDZVBackendC10D, torchrun.RendezvousID(m.Job, attempt)
	if e.RDZVHost != nil && *e.RDZVHost != "" {
		host = *e.RDZVHost
	}
	if e.RDZVPort != nil {
		at = *e.RDZVPort
	}
	if e.RDZVBackend != nil && *e.RDZVBackend != "" {
		backend = *e.RDZVBackend
	}
	if e.RDZVID != nil && *e.RDZVID != "" {
		id = *e.RDZVID
	}
	v.Set(fmt.Sprintf("%s:%d", host, at), "PET_RDZV_ENDPOINT")
	v.Set(string(backend), "PET_RDZV_BACKEND")
	v.Set(m.Job.Elastic.Bounds(), "PET_NNODES")
	restarts := int32(torchrun.MaxRestarts)
	if e.MaxRestarts != nil {
		restarts = *e.MaxRestarts
	}
	v.SetNumber(restarts, "PET_MAX_RESTARTS")
	if n := e.NProcPerNode; n != nil && *n > 0 {
		v.SetNumber(*n, "PET_NPROC_PER_NODE")
	}
	v.Set(id, "PET_RDZV_ID")
	if conf := rendezvousConf(e, backend); conf != "" {
		v.Set(conf, "PET_RDZV_CONF")
	}
	if e.Standalone != nil && *e.Standalone {
		v.Set("", "PET_STANDALONE")
	}
}

// rendezvousConf is the configuration of the rendezvous as torchrun reads it.
func rendezvousConf(e *kubeflowv1.ElasticPolicy, backend kubeflowv1.RDZVBackend) string {
	const lastCall = "last_call_timeout"
	var pairs []string
	for _, c := range e.RDZVConf {
		pairs = append(pairs, c.Key+"="+c.Value)
	}
	isSet := slices.ContainsFunc(e.RDZVConf, func(c kubeflowv1.RDZVConf) bool { return c.Key == lastCall })
	if backend == kubeflowv1.RDZVBackendC10D && !isSet {
		pairs = append(pairs, fmt.Sprintf("%s=%d", lastCall, torchrun.LastCallTimeout))
	}
	return strings.Join(pairs, ",")
}
