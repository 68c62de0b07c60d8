package flyte

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
)

// FromManifest converts a job to the configuration and the pod of a Flyte task: the inverse of Task.Render. The pod is the
// worker's; if the image or resources of another role differ, the configuration has them. The warnings name what Flyte has no
// field for. The job that Flyte 1 creates from the configuration and the pod differs from this one in nothing else. (Flyte 2 also
// resets the resources of roles that set none: ResourcesReset.)
func FromManifest(m Manifest) (Config, Pod, []Warning, error) {
	var r manifestReader
	var config Config
	switch job := m.(type) {
	case *kubeflowv1.PyTorchJob:
		config = r.pytorch(job)
	case *kubeflowv1.TFJob:
		config = r.tensorflow(job)
	default:
		return nil, Pod{}, nil, fmt.Errorf("%T is neither a PyTorchJob nor a TFJob", m)
	}
	if r.err != nil {
		return nil, Pod{}, nil, fmt.Errorf("read %s: %w", m.GetName(), r.err)
	}
	custom, err := config.CustomConfig()
	if err != nil {
		return nil, Pod{}, nil, fmt.Errorf("read %s: %w", m.GetName(), err)
	}
	return config, r.base, append(r.lost, custom.Warnings...), nil
}

// manifestReader collects what is lost, and the first error.
type manifestReader struct {
	// path is the field of the roles in the job.
	path  string
	specs map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec
	// container is the name that the operator expects for the training container.
	container string
	base      Pod
	lost      []Warning
	err       error
}

func (r *manifestReader) lose(path, format string, args ...any) {
	r.lost = append(r.lost, warn(NotCarried, path, format, args...))
}

func (r *manifestReader) loseIf(set bool, path string) {
	if set {
		r.lose(path, "Flyte has no field for it")
	}
}

func (r *manifestReader) pytorch(job *kubeflowv1.PyTorchJob) Config {
	full := job.DeepCopy()
	full.SetDefaults()
	r.path = "spec.pytorchReplicaSpecs."
	r.start(job.Spec.PyTorchReplicaSpecs, full.Spec.PyTorchReplicaSpecs, kubeflowv1.PyTorchContainer, kubeflowv1.PyTorchWorker)
	policy := r.runPolicy(job.Spec.RunPolicy, job.Spec.LifecyclePolicy)
	if job.Spec.ElasticPolicy != nil {
		return r.elastic(full, job.Spec.NprocPerNode, policy)
	}
	r.loseIf(job.Spec.NprocPerNode != nil, "spec.nprocPerNode")
	if r.replicas(kubeflowv1.PyTorchMaster) == 0 {
		r.lose(r.path+"Master", "there is none, but Flyte adds one to every job that is not elastic")
	}
	return PyTorch{
		Master:    r.group(kubeflowv1.PyTorchMaster).Replica,
		Worker:    r.group(kubeflowv1.PyTorchWorker),
		RunPolicy: policy,
	}
}

func (r *manifestReader) elastic(full *kubeflowv1.PyTorchJob, nprocPerNode *string, policy *RunPolicy) Config {
	const path = "spec.elasticPolicy."
	p := full.Spec.ElasticPolicy
	r.loseIf(p.RDZVHost != nil, path+"rdzvHost")
	r.loseIf(p.RDZVPort != nil, path+"rdzvPort")
	r.loseIf(p.RDZVID != nil, path+"rdzvId")
	r.loseIf(len(p.RDZVConf) > 0, path+"rdzvConf")
	r.loseIf(p.Standalone != nil, path+"standalone")
	r.loseIf(len(p.Metrics) > 0, path+"metrics")
	r.loseIf(r.replicas(kubeflowv1.PyTorchMaster) > 0, r.path+"Master")

	worker := r.group(kubeflowv1.PyTorchWorker)
	if worker.Replicas == 0 {
		r.fail("%sWorker: an elastic job needs workers", r.path)
		return Elastic{}
	}
	if worker.RestartPolicy != RestartNever {
		r.lose(r.path+"Worker.restartPolicy", "%s, but Flyte's elastic workers are never restarted", worker.RestartPolicy)
	}
	if worker.Replicas != *p.MaxReplicas {
		r.lose(r.path+"Worker.replicas", "%d, but Flyte starts as many workers as the maximum, %d", worker.Replicas, *p.MaxReplicas)
	}
	nnodes := NNodes{Min: *p.MinReplicas, Max: *p.MaxReplicas}
	nnodes.Text = nnodes.Min != nnodes.Max || nnodes.Max == 1
	e := NewElastic(nnodes, r.nproc(p.NProcPerNode, nprocPerNode))
	e.MaxRestarts, e.RunPolicy = 0, policy
	if p.MaxRestarts != nil {
		e.MaxRestarts = *p.MaxRestarts
	}
	if p.RDZVBackend != nil {
		e.RdzvBackend = string(*p.RDZVBackend)
	}
	return e
}

// nproc reads the number of processes from either of its fields. Flyte cannot express torchrun's own choice, auto.
func (r *manifestReader) nproc(deprecated *int32, current *string) int32 {
	if deprecated != nil && *deprecated > 0 {
		return *deprecated
	}
	if current != nil {
		if n, err := strconv.ParseInt(*current, 10, 32); err == nil && n > 0 {
			return int32(n)
		}
	}
	r.lose("spec.nprocPerNode", "it is not a number, but Flyte needs one: 1 is used")
	return 1
}

func (r *manifestReader) tensorflow(job *kubeflowv1.TFJob) Config {
	full := job.DeepCopy()
	full.SetDefaults()
	r.path = "spec.tfReplicaSpecs."
	r.start(job.Spec.TFReplicaSpecs, full.Spec.TFReplicaSpecs, kubeflowv1.TFContainer,
		kubeflowv1.TFWorker, kubeflowv1.TFChief, kubeflowv1.TFPS, kubeflowv1.TFEvaluator)
	r.loseIf(*full.Spec.SuccessPolicy != kubeflowv1.SuccessPolicyDefault, "spec.successPolicy")
	r.loseIf(job.Spec.EnableDynamicWorker, "spec.enableDynamicWorker")
	r.loseIf(r.replicas(kubeflowv1.TFMaster) > 0, r.path+"Master")
	return TensorFlow{
		Chief:     r.group(kubeflowv1.TFChief),
		PS:        r.group(kubeflowv1.TFPS),
		Worker:    r.group(kubeflowv1.TFWorker),
		Evaluator: r.group(kubeflowv1.TFEvaluator),
		RunPolicy: r.runPolicy(job.Spec.RunPolicy, job.Spec.LifecyclePolicy),
	}
}

// start finds the roles, with their defaulted numbers but their pods as written, and takes the pod of the first role that exists, in
// that order.
func (r *manifestReader) start(written, full map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec, container string, order ...kubeflowv1.ReplicaType) {
	r.specs, r.container = full, container
	for name, spec := range written {
		for canonical := range full {
			if spec != nil && strings.EqualFold(string(name), string(canonical)) {
				full[canonical].Template = spec.Template
			}
		}
	}
	for _, name := range append(order, slices.Sorted(maps.Keys(full))...) {
		if r.replicas(name) > 0 {
			r.base = r.podOf(name)
			return
		}
	}
	r.fail("there are no replicas")
}

func (r *manifestReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *manifestReader) replicas(name kubeflowv1.ReplicaType) int32 {
	if spec := r.specs[name]; spec != nil {
		return *spec.Replicas
	}
	return 0
}

// podOf is the pod of a role without what Flyte adds.
func (r *manifestReader) podOf(name kubeflowv1.ReplicaType) Pod {
	template := *r.specs[name].Template.DeepCopy()
	for i := range template.Spec.Containers {
		dropFlyteEnv(&template.Spec.Containers[i])
	}
	for i := range template.Spec.InitContainers {
		dropFlyteEnv(&template.Spec.InitContainers[i])
	}
	for key := range Flyte1.annotations() {
		delete(template.Annotations, key)
	}
	if affinity := template.Spec.Affinity; affinity != nil && *affinity == (corev1.Affinity{}) {
		template.Spec.Affinity = nil
	}
	pod := Pod{Template: template}
	if container := naming.TrainingContainer(&template.Spec, r.container); container != nil {
		pod.Primary = container.Name
	}
	return pod
}

// runPolicy sets the effective clean pod policy explicitly if there is any policy. Otherwise Flyte would send None.
func (r *manifestReader) runPolicy(p kubeflowv1.RunPolicy, flat kubeflowv1.LifecyclePolicy) *RunPolicy {
	r.loseIf(p.Suspend != nil && *p.Suspend, "spec.runPolicy.suspend")
	r.loseIf(p.SchedulingPolicy != nil, "spec.runPolicy.schedulingPolicy")
	r.loseIf(p.ManagedBy != nil, "spec.runPolicy.managedBy")
	if p.LifecyclePolicy == (kubeflowv1.LifecyclePolicy{}) && flat == (kubeflowv1.LifecyclePolicy{}) {
		return nil
	}
	effective := kubeflowv1.EffectivePolicy(p.LifecyclePolicy, flat)
	policy := &RunPolicy{TTLSecondsAfterFinished: effective.TTLSecondsAfterFinished, BackoffLimit: effective.BackoffLimit}
	var err error
	if policy.CleanPodPolicy, err = ParseCleanPodPolicy(string(*effective.CleanPodPolicy)); err != nil {
		r.fail("spec.runPolicy.cleanPodPolicy: %w", err)
	}
	if seconds := effective.ActiveDeadlineSeconds; seconds != nil {
		if *seconds > math.MaxInt32 {
			r.lose("spec.runPolicy.activeDeadlineSeconds", "%d is too large: at most %d", *seconds, math.MaxInt32)
		} else {
			policy.ActiveDeadlineSeconds = new(int32(*seconds))
		}
	}
	return policy
}

// group reads a role as its difference from the base pod, and reports a difference that Flyte cannot express.
func (r *manifestReader) group(name kubeflowv1.ReplicaType) Group {
	if r.err != nil || r.replicas(name) == 0 {
		return Group{}
	}
	g := Group{Replicas: r.replicas(name), Replica: Replica{RestartPolicy: r.restartPolicy(name)}}
	own, err := r.podOf(name).render(replicaSpec{}, r.container, Execution{})
	if err != nil {
		r.fail("%s: %w", name, err)
		return Group{}
	}
	base, err := r.base.render(replicaSpec{}, r.container, Execution{})
	if err != nil {
		r.fail("%s: %w", name, err)
		return Group{}
	}
	mine, theirs := naming.TrainingContainer(&own.Spec, r.container), naming.TrainingContainer(&base.Spec, r.container)
	if mine.Image != theirs.Image {
		g.Image = mine.Image
	}
	if !equality.Semantic.DeepEqual(mine.Resources, theirs.Resources) {
		g.Requests, g.Limits = resourcesIn(mine.Resources.Requests), resourcesIn(mine.Resources.Limits)
	}
	r.compare(name, g, own)
	return g
}

func (r *manifestReader) compare(name kubeflowv1.ReplicaType, g Group, want corev1.PodTemplateSpec) {
	fields, err := g.fields(string(name))
	if err != nil {
		r.fail("%w", err)
		return
	}
	spec := replicaSpec{image: fields.image, resources: fields.resources}
	if !spec.hasResources() {
		spec.resources = nil // an empty message is for Flyte 2 not the same as none
	}
	got, err := r.base.render(spec, r.container, Execution{})
	if err != nil {
		r.fail("%s: %w", name, err)
		return
	}
	if !equality.Semantic.DeepEqual(got, want) {
		r.lose(r.path+string(name)+".template", "it differs from the others in more than image, CPU, memory, GPUs and storage")
	}
}

func (r *manifestReader) restartPolicy(name kubeflowv1.ReplicaType) RestartPolicy {
	policy := RestartPolicy(r.specs[name].RestartPolicy)
	if _, err := policy.message(); err != nil {
		r.lose(r.path+string(name)+".restartPolicy", "Flyte does not know %s: OnFailure is used", policy)
		return RestartOnFailure
	}
	return policy
}

func resourcesIn(list corev1.ResourceList) Resources {
	text := func(name corev1.ResourceName) string {
		if q, ok := list[name]; ok {
			return q.String()
		}
		return ""
	}
	return Resources{
		CPU:              text(corev1.ResourceCPU),
		Memory:           text(corev1.ResourceMemory),
		GPU:              text(gpuResource),
		EphemeralStorage: text(corev1.ResourceEphemeralStorage),
	}
}
