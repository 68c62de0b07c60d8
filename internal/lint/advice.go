package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/document"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/manifest"
)

// subject is a kubeflow.org job, whatever its kind.
type subject struct {
	kubeflow.Kind
	kubeflowv1.Parts
}

// rolesAt is the path of the roles.
func (j subject) rolesAt() string { return "spec." + j.Kind.Layout.ReplicaSpecs }

// advise warns of what the API server accepts and the user may not have meant, and reports what it would refuse of the children.
func (c *checker) advise() error {
	kind := kinds.Of(c.object.GroupVersionKind())
	if kind == nil {
		return c.adviseJobsOf()
	}
	c.adviseAnnotations()
	obj := kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.object.Object, obj); err != nil {
		if len(c.problems) == 0 {
			c.add(Error, "", "it cannot be read: %v", err)
		}
		return nil
	}
	if tj, isTrainJob := obj.(*trainer.TrainJob); isTrainJob {
		return c.adviseRuntime(kind, tj)
	}
	j := subject{kind.(kubeflow.Kind), obj.(kubeflowv1.Job).Parts()}
	if !slices.ContainsFunc(c.dropped, func(path string) bool { return !strings.Contains(path, ".template") }) {
		defaulted := obj.DeepCopyObject().(kubeflowv1.Job)
		defaulted.SetDefaults()
		c.adviseRetries(subject{j.Kind, defaulted.Parts()})
	}
	c.adviseEnd(j)
	c.adviseLayout(j)
	c.advisePort(j)
	c.adviseElasticPaddle(obj, kind)
	for _, name := range slices.Sorted(maps.Keys(*j.ReplicaSpecs)) {
		if role := (*j.ReplicaSpecs)[name]; role != nil {
			c.adviseTemplate(j, fmt.Sprintf("%s.%s.template.spec", j.rolesAt(), name), &role.Template.Spec)
		}
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	return c.checkChildren(kind.Read(obj), func(role, path string, _ *corev1.Pod) (*document.Document, string) {
		for written := range *j.ReplicaSpecs {
			if strings.EqualFold(string(written), role) {
				role = string(written)
			}
		}
		return c.doc, fmt.Sprintf("%s.%s.template.%s", j.rolesAt(), role, path)
	})
}

// adviseElasticPaddle warns of an elasticPolicy that Paddle's launcher cannot follow.
func (c *checker) adviseElasticPaddle(obj manifest.Object, kind kinds.Adapter) {
	pj, isPaddle := obj.(*kubeflowv1.PaddleJob)
	if isPaddle && pj.Spec.ElasticPolicy != nil && kind.Read(obj).Job.Elastic == nil {
		c.warn("spec.elasticPolicy", "it has no effect: Paddle is elastic only without Masters and with an etcd as its master: set PADDLE_MASTER to etcd://… in the Workers' template")
	}
}

// at is the path of a policy, where it is set.
func (c *checker) at(policy string) string {
	path := "spec.runPolicy." + policy
	if spec, _ := c.object.Object["spec"].(map[string]any); spec != nil && spec[policy] != nil {
		path = "spec." + policy
	}
	return path
}

func (c *checker) adviseRetries(j subject) {
	retries, always := false, true
	for _, role := range *j.ReplicaSpecs {
		policy := role.RestartPolicy
		if all := manifest.RestartPolicy(c.object.GetAnnotations()); all != "" {
			policy = kubeflowv1.RestartPolicy(all)
		}
		retries = retries || policy != kubeflowv1.RestartPolicyNever
		always = always && policy != kubeflowv1.RestartPolicyNever && policy != kubeflowv1.RestartPolicyExitCode
	}
	switch limit := j.Policy().BackoffLimit; {
	case limit == nil && always && j.Policy().ActiveDeadlineSeconds == nil:
		c.warn("spec.runPolicy.backoffLimit", "there is neither a backoffLimit nor a deadline, so a training that always fails is restarted for ever")
	case limit != nil && *limit > 0 && !retries:
		c.warn(c.at("backoffLimit"), "it has no effect: every role has restartPolicy Never, so the first failure ends the job")
	}
}

func (c *checker) adviseEnd(j subject) {
	if j.Policy().CleanPodPolicy != nil && *j.Policy().CleanPodPolicy == kubeflowv1.CleanPodPolicyNone {
		c.warn(c.at("cleanPodPolicy"), "None lets pods that still run go on after the job's end, with the GPUs they hold: Running stops them and keeps the logs of the others")
	}
	if ttl := j.Policy().TTLSecondsAfterFinished; ttl != nil && *ttl < 60 {
		c.warn(c.at("ttlSecondsAfterFinished"), "the job and its logs are deleted %d s after its end, before somebody can look at them", *ttl)
	}
}

// adviseLayout warns of fields in the places that older versions had for them.
func (c *checker) adviseLayout(j subject) {
	var flat []string
	for name, set := range map[string]bool{
		"cleanPodPolicy": j.FlatPolicy.CleanPodPolicy != nil, "ttlSecondsAfterFinished": j.FlatPolicy.TTLSecondsAfterFinished != nil,
		"activeDeadlineSeconds": j.FlatPolicy.ActiveDeadlineSeconds != nil, "backoffLimit": j.FlatPolicy.BackoffLimit != nil,
	} {
		if set {
			flat = append(flat, name)
		}
	}
	slices.SortFunc(flat, func(a, b string) int { return c.doc.Line("spec."+a) - c.doc.Line("spec."+b) })
	if len(flat) > 0 {
		c.warn("spec."+flat[0], "today's place of %s is spec.runPolicy: `trainyard convert` moves %s there", strings.Join(flat, ", "), it(flat))
	}
	gvk := c.object.GroupVersionKind()
	isMPIOperators := gvk.Kind == kubeflowv1.MPIJobKind && gvk.Version == kubeflowv1.MPIVersion // not old, but another
	if version := c.object.GetAPIVersion(); version != kubeflowv1.GroupVersion.String() && !isMPIOperators {
		c.warn("apiVersion", "%s is an old version of %s: `trainyard convert` rewrites it", version, kubeflowv1.GroupVersion)
	}
}

func it(names []string) string {
	if len(names) == 1 {
		return "it"
	}
	return "them"
}

func (c *checker) adviseTemplate(j subject, path string, pod *corev1.PodSpec) {
	if pod.RestartPolicy != "" {
		c.warn(path+".restartPolicy", "it has no effect: the role's restartPolicy counts, next to template")
	}
	named := slices.ContainsFunc(pod.Containers, func(container corev1.Container) bool { return container.Name == j.Kind.Layout.Container })
	if len(pod.Containers) > 1 && !named {
		c.warn(path+".containers", "none is named %s, so %s is taken for the one that trains", j.Kind.Layout.Container, pod.Containers[0].Name)
	}
	for i, container := range pod.Containers {
		at := fmt.Sprintf("%s.containers[%d]", path, i)
		for n, e := range container.Env {
			if slices.Contains(j.PerReplica, e.Name) && !strings.HasPrefix(e.Value, "etcd://") { // elastic Paddle's, for all
				c.warn(fmt.Sprintf("%s.env[%d]", at, n), "every replica of the role gets this %s: leave it out, and each gets its own", e.Name)
			}
		}
	}
}
