package conversion

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
	trainerv1alpha1 "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/document"
	"github.com/trainyard/trainyard/internal/manifest"
)

// ToTrainJob makes a TrainingRuntime and a TrainJob of a PyTorchJob of any layout, and notes what could not be carried over. The
// runtime has what several jobs may share, the pods and the policies; the job has what is its own. Objects that are no training jobs
// are left as they are.
func ToTrainJob(doc *document.Document) ([]*document.Document, []Note, error) {
	c := &converter{doc: doc}
	switch {
	case !Converts(doc):
		return []*document.Document{doc}, c.leave(), nil
	case doc.Object.GetKind() != kubeflowv1.PyTorchJobKind:
		return nil, nil, c.refuse("kind", "a %s has no counterpart among TrainJobs: only a PyTorchJob has", doc.Object.GetKind())
	}
	old, err := c.readPyTorchJob()
	if err != nil {
		return nil, nil, err
	}
	m := c.move(old)
	docs, err := documents(doc.File, m.runtime, m.job)
	slices.SortStableFunc(c.notes, func(a, b Note) int { return a.Line - b.Line })
	return docs, c.notes, err
}

// readPyTorchJob reads the job, in whatever layout it is written.
func (c *converter) readPyTorchJob() (*kubeflowv1.PyTorchJob, error) {
	if _, err := ToV1(c.doc); err != nil { // its notes are on a layout that the user will not see
		return nil, err
	}
	old := &kubeflowv1.PyTorchJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(c.doc.Object.Object, old, true); err != nil {
		return nil, c.refuse("", "%w; `trainyard lint -f %s` says where", err, c.doc.File)
	}
	if len(old.Spec.PyTorchReplicaSpecs) == 0 {
		return nil, c.refuse("spec", "the job has no replicas: add spec.pytorchReplicaSpecs")
	}
	return old, nil
}

// mover fills a runtime and a job from a PyTorchJob.
type mover struct {
	*converter
	old, defaulted *kubeflowv1.PyTorchJob
	runtime        *trainerv1alpha1.TrainingRuntime
	job            *trainerv1alpha1.TrainJob
}

func (c *converter) move(old *kubeflowv1.PyTorchJob) *mover {
	m := &mover{converter: c, old: old, defaulted: old.DeepCopy(), runtime: &trainerv1alpha1.TrainingRuntime{}, job: &trainerv1alpha1.TrainJob{}}
	m.defaulted.SetDefaults()
	m.names()
	m.policies()
	node := m.template()
	m.nodes()
	m.container(node)
	return m
}

// names gives the runtime the job's name, and keeps labels and annotations, except those without effect. Finalizers are left out.
func (m *mover) names() {
	if len(m.old.Finalizers) > 0 {
		m.note("metadata.finalizers", "finalizers are left out: the controller that removes them from a PyTorchJob may not do so for a TrainJob, which would then never be deleted")
	}
	if _, marked := m.old.Annotations[kubeflowv1.AnnotationRestartPolicy]; marked {
		m.note("metadata.annotations."+kubeflowv1.AnnotationRestartPolicy, "the annotation %s is left out: it has no effect on a TrainJob", kubeflowv1.AnnotationRestartPolicy)
	}
	annotations := maps.Clone(m.old.Annotations)
	delete(annotations, kubeflowv1.AnnotationRestartPolicy)
	m.job.SetGroupVersionKind(trainerv1alpha1.GroupVersion.WithKind(trainerv1alpha1.TrainJobKind))
	m.job.ObjectMeta = metav1.ObjectMeta{
		Name: m.old.Name, GenerateName: m.old.GenerateName, Namespace: m.old.Namespace, Labels: m.old.Labels, Annotations: annotations,
	}
	m.runtime.SetGroupVersionKind(trainerv1alpha1.GroupVersion.WithKind(trainerv1alpha1.TrainingRuntimeKind))
	m.runtime.Name, m.runtime.Namespace = m.old.Name, m.old.Namespace
	if m.runtime.Name == "" {
		m.runtime.Name = strings.TrimRight(m.old.GenerateName, "-")
	}
	m.runtime.Labels = map[string]string{trainerv1alpha1.LabelFramework: "torch"}
	m.job.Spec.RuntimeRef = trainerv1alpha1.RuntimeRef{Name: m.runtime.Name, Kind: new(trainerv1alpha1.TrainingRuntimeKind)}
}

// policies moves each policy to its place in a TrainJob or its runtime.
func (m *mover) policies() {
	policy := m.old.Spec.RunPolicy
	m.job.Spec.Suspend = policy.Suspend
	m.job.Spec.ActiveDeadlineSeconds, m.job.Spec.TTLSecondsAfterFinished = policy.ActiveDeadlineSeconds, policy.TTLSecondsAfterFinished
	if policy.CleanPodPolicy != nil || policy.BackoffLimit != nil {
		m.runtime.Spec.RunPolicy = &trainerv1alpha1.RuntimeRunPolicy{CleanPodPolicy: policy.CleanPodPolicy, BackoffLimit: policy.BackoffLimit}
	}
	if policy.CleanPodPolicy != nil {
		m.note("spec.runPolicy.cleanPodPolicy", "cleanPodPolicy is now in the runtime's runPolicy")
	}
	if policy.BackoffLimit != nil {
		m.note("spec.runPolicy.backoffLimit", "backoffLimit is now in the runtime's runPolicy")
	}
	if policy.SchedulingPolicy != nil {
		m.runtime.Spec.PodGroupPolicy = &trainerv1alpha1.PodGroupPolicy{}
		m.note("spec.runPolicy.schedulingPolicy", "schedulingPolicy is now the runtime's podGroupPolicy, which places all nodes together: its fields are left out")
	}
	switch by := policy.ManagedBy; {
	case by != nil && *by == kubeflowv1.ManagedByMultiKueue:
		m.job.Spec.ManagedBy = by
	case by != nil:
		m.note("spec.runPolicy.managedBy", "managedBy is left out: a TrainJob's operator has another name")
	}
}

// template is the pod template of all nodes; it becomes the runtime's one step. It returns the container that trains.
func (m *mover) template() *corev1.Container {
	master, worker := m.old.Spec.PyTorchReplicaSpecs[kubeflowv1.PyTorchMaster], m.old.Spec.PyTorchReplicaSpecs[kubeflowv1.PyTorchWorker]
	role, at := worker, "spec.pytorchReplicaSpecs.Worker"
	if role == nil {
		role, at = master, "spec.pytorchReplicaSpecs.Master"
	}
	if worker != nil && master != nil && !reflect.DeepEqual(master.Template, worker.Template) {
		m.note("spec.pytorchReplicaSpecs.Master.template", "the Master's template is left out, because it differs from the Worker's: all nodes of a TrainJob have the same")
	}
	if worker != nil && master != nil {
		ends := "a TrainJob when all nodes have"
		if m.old.Spec.ElasticPolicy != nil {
			ends = "an elastic TrainJob when one of its nodes has and none runs"
		}
		m.note("spec.pytorchReplicaSpecs.Master", "a PyTorchJob has succeeded when its Master has, %s", ends)
	}
	pod := role.Template.DeepCopy()
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever // it has no effect: all nodes restart together
	m.restarts(m.restartPolicy(at + ".restartPolicy"))
	step := jobsetv1alpha2.ReplicatedJob{Name: trainerv1alpha1.ContainerNode}
	step.Template.Labels = map[string]string{trainerv1alpha1.LabelAncestorStep: trainerv1alpha1.StepTrainer}
	step.Template.Spec = batchv1.JobSpec{Template: *pod}
	m.runtime.Spec.Template.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{step}
	return naming.TrainingContainer(&pod.Spec, kubeflowv1.PyTorchContainer)
}

// restartPolicy is that of the nodes, and where it is written: the annotation's, which is for all roles, or that of the role at a
// path.
func (m *mover) restartPolicy(at string) (policy kubeflowv1.RestartPolicy, where string) {
	if all := manifest.RestartPolicy(m.old.Annotations); all != "" {
		return kubeflowv1.RestartPolicy(all), "metadata.annotations." + kubeflowv1.AnnotationRestartPolicy
	}
	master, worker := m.defaulted.Spec.PyTorchReplicaSpecs[kubeflowv1.PyTorchMaster], m.defaulted.Spec.PyTorchReplicaSpecs[kubeflowv1.PyTorchWorker]
	if worker == nil {
		return master.RestartPolicy, at
	}
	if master != nil && master.RestartPolicy != worker.RestartPolicy {
		m.note("spec.pytorchReplicaSpecs.Master.restartPolicy", "the Master's restartPolicy %s is left out, because the Worker's is %s: all nodes of a TrainJob have the same",
			master.RestartPolicy, worker.RestartPolicy)
	}
	return worker.RestartPolicy, at
}

// restarts sets what a failure does in a TrainJob.
func (m *mover) restarts(policy kubeflowv1.RestartPolicy, at string) {
	limit := m.old.Spec.RunPolicy.BackoffLimit
	switch {
	case policy == kubeflowv1.RestartPolicyNever:
		m.note(at, "restartPolicy Never is now backoffLimit 0 in the runtime's runPolicy; a disruption is restarted nevertheless")
		if m.runtime.Spec.RunPolicy == nil {
			m.runtime.Spec.RunPolicy = &trainerv1alpha1.RuntimeRunPolicy{}
		}
		m.runtime.Spec.RunPolicy.BackoffLimit = new(int32(0))
		return
	case policy == kubeflowv1.RestartPolicyExitCode:
		m.note(at, "restartPolicy ExitCode has no counterpart: exit codes 1 to 127 are retried like any other")
	}
	if limit == nil && m.maxRestarts() == nil {
		m.note("spec", "backoffLimit is not set: a PyTorchJob is then retried without limit, a TrainJob 6 times")
	}
}

// maxRestarts is torchrun's limit. In a TrainJob it is also the limit of retries, and overrides any backoffLimit.
func (m *mover) maxRestarts() *int32 {
	if e := m.old.Spec.ElasticPolicy; e != nil {
		return e.MaxRestarts
	}
	return nil
}

// limits notes which of two limits has effect.
func (m *mover) limits() {
	most := m.maxRestarts()
	if most == nil {
		return
	}
	switch policy := m.runtime.Spec.RunPolicy; {
	case policy == nil || policy.BackoffLimit == nil:
		m.note("spec.elasticPolicy.maxRestarts", "maxRestarts is also how often a TrainJob is retried, %d times; a PyTorchJob without backoffLimit is retried without limit", *most)
	case *policy.BackoffLimit != *most:
		m.note("spec.elasticPolicy.maxRestarts", "maxRestarts is also how often a TrainJob is retried, %d times: backoffLimit %d has no effect beside it", *most, *policy.BackoffLimit)
	}
}

// nodes sets how many nodes there are, and torch as their framework.
func (m *mover) nodes() {
	n := int32(0)
	for _, role := range m.defaulted.Spec.PyTorchReplicaSpecs {
		n += *role.Replicas
	}
	torch := &trainerv1alpha1.TorchMLPolicySource{}
	m.job.Spec.Trainer = &trainerv1alpha1.Trainer{NumNodes: &n}
	m.runtime.Spec.MLPolicy = &trainerv1alpha1.MLPolicy{MLPolicySource: trainerv1alpha1.MLPolicySource{Torch: torch}}
	if e := m.defaulted.Spec.ElasticPolicy; e != nil {
		torch.ElasticPolicy = &trainerv1alpha1.TorchElasticPolicy{MinNodes: e.MinReplicas, MaxNodes: e.MaxReplicas, MaxRestarts: e.MaxRestarts, Metrics: e.Metrics}
		m.note("spec.elasticPolicy", "elasticPolicy is now in the runtime's mlPolicy.torch")
		m.countMaster(torch.ElasticPolicy)
		m.limits()
		m.rendezvous(m.old.Spec.ElasticPolicy)
	}
	switch processes := m.old.Spec.NprocPerNode; {
	case processes == nil || *processes == "auto":
	default:
		if count, err := strconv.ParseInt(*processes, 10, 32); err == nil {
			m.job.Spec.Trainer.NumProcPerNode = new(int32(count))
		} else {
			m.note("spec.nprocPerNode", "nprocPerNode %s is left out: a TrainJob has one process per GPU, or per CPU that is asked for", *processes)
		}
	}
}

// countMaster adds the Master to the bounds of the nodes: a PyTorchJob's bounds are those of its Workers.
func (m *mover) countMaster(e *trainerv1alpha1.TorchElasticPolicy) {
	master := m.defaulted.Spec.PyTorchReplicaSpecs[kubeflowv1.PyTorchMaster]
	if master == nil || *master.Replicas == 0 || e.MinNodes == nil {
		return
	}
	e.MinNodes, e.MaxNodes = new(*e.MinNodes+*master.Replicas), new(*e.MaxNodes+*master.Replicas)
	m.note("spec.elasticPolicy", "minNodes %d and maxNodes %d count the Master, which is a node like any other; minReplicas and maxReplicas are of Workers alone", *e.MinNodes, *e.MaxNodes)
}

// rendezvous notes the settings that a TrainJob does not have: its nodes always meet by c10d at the first of them.
func (m *mover) rendezvous(e *kubeflowv1.ElasticPolicy) {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"rdzvBackend", e.RDZVBackend != nil && *e.RDZVBackend != kubeflowv1.RDZVBackendC10D},
		{"rdzvHost", e.RDZVHost != nil}, {"rdzvPort", e.RDZVPort != nil}, {"rdzvId", e.RDZVID != nil}, {"rdzvConf", len(e.RDZVConf) > 0},
		{"standalone", e.Standalone != nil && *e.Standalone},
	} {
		if field.set {
			m.note("spec.elasticPolicy."+field.name, "%s is left out: the nodes of a TrainJob always meet by c10d at the first of them", field.name)
		}
	}
}

// container leaves the runtime what the pods need, and gives the job what is its own.
func (m *mover) container(node *corev1.Container) {
	if node == nil {
		return
	}
	node.Name = trainerv1alpha1.ContainerNode
	node.Ports = slices.DeleteFunc(node.Ports, func(p corev1.ContainerPort) bool { return p.Name == kubeflowv1.PyTorchPortName })
	t := m.job.Spec.Trainer
	t.Command, t.Args, t.Env = node.Command, node.Args, node.Env
	if !reflect.DeepEqual(node.Resources, corev1.ResourceRequirements{}) {
		t.ResourcesPerNode = node.Resources.DeepCopy()
	}
	node.Command, node.Args, node.Env, node.Resources = nil, nil, nil, corev1.ResourceRequirements{}
	if words := strings.Join(append(t.Command, t.Args...), " "); words != "" && !strings.Contains(words, "torchrun") && !strings.Contains(words, "torch.distributed") {
		m.note("spec", "the command is not torchrun's: a TrainJob sets only PET_* variables, from which torchrun makes RANK, WORLD_SIZE and MASTER_ADDR")
	}
}

// documents are objects as if they had been read from a file.
func documents(file string, objects ...runtime.Object) ([]*document.Document, error) {
	var text strings.Builder
	for _, obj := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, fmt.Errorf("writing the converted job: %w", err)
		}
		delete(content, "status")
		prune(content)
		one, err := yaml.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("writing the converted job: %w", err)
		}
		fmt.Fprintf(&text, "---\n%s", one)
	}
	return document.Parse(file, text.String())
}

// prune removes the empty values that Go writes.
func prune(content map[string]any) {
	for key, value := range content {
		switch inner := value.(type) {
		case nil:
			delete(content, key) // a creation time
		case map[string]any:
			if prune(inner); len(inner) == 0 && (key == "metadata" || key == "resources") {
				delete(content, key)
			}
		case []any:
			for _, item := range inner {
				if object, ok := item.(map[string]any); ok {
					prune(object)
				}
			}
		}
	}
}
