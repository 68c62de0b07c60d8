package trainjob

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/torchrun"
	"github.com/trainyard/trainyard/internal/manifest"
)

// torch makes the first node the rendezvous of all, and sets the variables that torchrun reads.
func torch(m *manifest.Manifest, spec *trainer.TrainingRuntimeSpec, tj *trainer.TrainJob) error {
	m.Rendezvous = true
	node := trainingContainer(m)
	openPort(node)
	if e := elasticPolicy(spec.MLPolicy); e != nil {
		if err := elastic(m, e, tj); err != nil {
			return err
		}
	}
	targets := map[string][]string{}
	if injection := spec.MLPolicy.Torch.EnvInjection; injection != nil {
		for _, target := range injection.Targets {
			targets[target.JobName] = target.ContainerNames
		}
	}
	perNode := processes(node, tj)
	m.Env = func(r job.Replica, attempt int32) manifest.Env {
		variables := torchVariables(m, spec.MLPolicy, r, attempt, perNode)
		env := manifest.Env{Named: map[string][]corev1.EnvVar{}}
		if r.Role == m.Leader.Role {
			env.Training = variables
		}
		for _, container := range targets[r.Role] {
			env.Named[container] = variables
		}
		return env
	}
	return nil
}

func torchVariables(m *manifest.Manifest, policy *trainer.MLPolicy, r job.Replica, attempt int32, perNode string) []corev1.EnvVar {
	host, port := m.Job.PodName(m.Leader), strconv.Itoa(int(trainer.TrainerPort))
	variables := []corev1.EnvVar{{Name: "PET_NPROC_PER_NODE", Value: perNode}}
	add := func(name, value string) { variables = append(variables, corev1.EnvVar{Name: name, Value: value}) }
	if e := m.Job.Elastic; e != nil {
		// The bounds, never the present number: scaling must not change the environment of running nodes.
		add("PET_NNODES", e.Bounds())
		add("PET_RDZV_BACKEND", "c10d")
		add("PET_RDZV_ENDPOINT", host+":"+port)
		add("PET_RDZV_ID", torchrun.RendezvousID(m.Job, attempt))
		add("PET_RDZV_CONF", fmt.Sprintf("last_call_timeout=%d", torchrun.LastCallTimeout))
		add("PET_MAX_RESTARTS", strconv.Itoa(int(*first(maxRestarts(policy), new(int32(torchrun.MaxRestarts))))))
		return variables
	}
	add("PET_NNODES", strconv.Itoa(int(m.Size(m.Leader.Role))))
	add("PET_NODE_RANK", strconv.Itoa(int(r.Index)))
	add("PET_MASTER_ADDR", host)
	add("PET_MASTER_PORT", port)
	return variables
}

// elastic lets the number of nodes change between its bounds. The job ends when the nodes do, so no step may wait for them.
func elastic(m *manifest.Manifest, e *trainer.TorchElasticPolicy, tj *trainer.TrainJob) error {
	for _, role := range m.Job.Roles {
		if slices.ContainsFunc(role.After, func(d job.Dependency) bool { return d.Role == m.Leader.Role }) {
			return invalid(tj, "has a step %s that waits for %s, with whose elastic nodes the job ends: remove the step or mlPolicy.torch.elasticPolicy", role.Name, m.Leader.Role)
		}
	}
	if ends := m.Job.Success.Role; ends != "" && ends != m.Leader.Role {
		return invalid(tj, "has a successPolicy of step %s, but the job ends with the elastic nodes of %s: name that step there, or remove mlPolicy.torch.elasticPolicy", ends, m.Leader.Role)
	}
	one := int32(1)
	low := *first(e.MinNodes, &one)
	high := max(*first(e.MaxNodes, &low), low)
	m.Job.Elastic = &job.Elastic{Role: m.Leader.Role, Min: low, Max: high, Anchored: true}
	m.Job.Scope = job.ScopeReplica
	m.Job.Success = job.Success{Role: m.Leader.Role, Rule: job.SuccessAny}
	m.Metrics = e.Metrics
	unsized := tj.Spec.Trainer == nil || tj.Spec.Trainer.NumNodes == nil
	m.Job.Unsized = m.Autoscaled() && unsized
	m.Job.Misstated = unsized || *tj.Spec.Trainer.NumNodes != m.ElasticSize()
	return nil
}

func elasticPolicy(policy *trainer.MLPolicy) *trainer.TorchElasticPolicy {
	if policy == nil || policy.Torch == nil {
		return nil
	}
	return policy.Torch.ElasticPolicy
}

// processes is how many processes torchrun starts in each pod: as many as the job says, else one per GPU, else one per CPU that the
// pod asks for.
func processes(node *corev1.Container, tj *trainer.TrainJob) string {
	if t := tj.Spec.Trainer; t != nil && t.NumProcPerNode != nil {
		return strconv.Itoa(int(*t.NumProcPerNode))
	}
	if gpus(node.Resources) > 0 {
		return "auto"
	}
	for _, list := range []corev1.ResourceList{node.Resources.Requests, node.Resources.Limits} {
		if cpu, ok := list[corev1.ResourceCPU]; ok {
			return strconv.FormatInt(max(cpu.Value(), 1), 10)
		}
	}
	return "1"
}

// openPort adds the port of the rendezvous to the container, so that the Services have it.
func openPort(node *corev1.Container) {
	for _, p := range node.Ports {
		if p.ContainerPort == trainer.TrainerPort {
			return
		}
	}
	node.Ports = append(node.Ports, corev1.ContainerPort{ContainerPort: trainer.TrainerPort, Protocol: corev1.ProtocolTCP})
}

// trainingContainer is the container that trains, in the template of the step that trains.
func trainingContainer(m *manifest.Manifest) *corev1.Container {
	containers := m.Templates[m.Leader.Role].Spec.Containers
	for i := range containers {
		if containers[i].Name == trainer.ContainerNode {
			return &containers[i]
		}
	}
	return nil
}
