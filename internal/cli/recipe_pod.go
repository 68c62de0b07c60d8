package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// podRecipe is the part of a recipe that describes the pods: what they need, where they run, and what they are called.
type podRecipe struct {
	cpus, memory, shm, queue, priority              string
	volumes, labels, annotations, nodeSelector, env []string
	gpus                                            int32
}

func (r *podRecipe) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&r.env, "env", nil, "a variable for the training, as in --env LR=0.1; may be repeated")
	flags.Int32Var(&r.gpus, "gpus", 0, "GPUs for each replica")
	flags.StringVar(&r.cpus, "cpus", "", "CPUs for each replica, as in 4 or 0.5 (default: what is free)")
	flags.StringVar(&r.memory, "memory", "", "memory for each replica, as in 16Gi; more than this ends it (default: what is free)")
	flags.StringVar(&r.shm, "shm", "", "size of /dev/shm, as in 8Gi; it counts as memory (default: the cluster's, often 64Mi)")
	flags.StringArrayVar(&r.volumes, "volume", nil, "a claim or a directory of the node to mount, as in data:/data or /nfs/data:/data:ro; may be repeated")
	flags.StringArrayVar(&r.labels, "label", nil, "a label of the job and its pods, as in team=vision; may be repeated")
	flags.StringArrayVar(&r.annotations, "annotation", nil, "an annotation of the job and its pods, as in owner=ann; may be repeated")
	flags.StringArrayVar(&r.nodeSelector, "node-selector", nil, "only nodes with this label, as in gpu=a100; may be repeated")
	flags.StringVar(&r.queue, "queue", "", "the queue of Kueue or Volcano that the job waits in")
	flags.StringVar(&r.priority, "priority", "", "the PriorityClass of the pods")
}

// queueLabel is how Kueue finds the queue of a job.
const queueLabel = "kueue.x-k8s.io/queue-name"

// apply puts what the flags say into a job and the template of one of its roles.
func (r *podRecipe) apply(meta *metav1.ObjectMeta, policy *kubeflowv1.RunPolicy, template *corev1.PodTemplateSpec, c *corev1.Container) error {
	for _, step := range []func() error{
		func() error { return r.setResources(c) },
		func() error { return r.setEnv(c) },
		func() error { return r.setShm(&template.Spec, c) },
		func() error { return r.setVolumes(&template.Spec, c) },
		func() error { return r.setMetadata(meta, &template.ObjectMeta) },
		func() error { return r.setPlacement(meta, policy, &template.Spec) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (r *podRecipe) setResources(c *corev1.Container) error {
	limits := corev1.ResourceList{}
	if r.gpus > 0 {
		limits["nvidia.com/gpu"] = *resource.NewQuantity(int64(r.gpus), resource.DecimalSI)
	}
	if r.cpus != "" {
		q, err := resource.ParseQuantity(r.cpus)
		if err != nil || q.Sign() <= 0 {
			return fmt.Errorf("--cpus %s: use a number above 0, as in 4 or 0.5", r.cpus)
		}
		limits[corev1.ResourceCPU] = q
	}
	if r.memory != "" {
		q, err := size("memory", r.memory)
		if err != nil {
			return err
		}
		limits[corev1.ResourceMemory] = q
	}
	if len(limits) > 0 {
		c.Resources.Limits = limits // without requests these are the requests, too
	}
	return nil
}

// leastSize refuses sizes whose unit was forgotten: 16 is sixteen bytes.
const leastSize = 1 << 20

func size(flag, value string) (resource.Quantity, error) {
	q, err := resource.ParseQuantity(value)
	switch {
	case err != nil && regexp.MustCompile(`(?i)^\d+(\.\d+)?[kmgt]i?b?$`).MatchString(value):
		return q, fmt.Errorf("--%s %s: write %sGi, %[3]sG, %[3]sMi or %[3]sM", flag, value, strings.TrimRight(value, "kmgtibKMGTIB"))
	case err != nil || q.Sign() <= 0:
		return q, fmt.Errorf("--%s %s: use a size with its unit, as in 16Gi or 512Mi", flag, value)
	case q.Value() < leastSize:
		return q, fmt.Errorf("--%s %s is less than a megabyte: add the unit, as in 16Gi", flag, value)
	}
	return q, nil
}

func (r *podRecipe) setEnv(c *corev1.Container) error {
	for _, pair := range r.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return fmt.Errorf("--env %s: use NAME=value", pair)
		}
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	}
	return nil
}

// setShm mounts a directory in memory at /dev/shm, which container runtimes make too small for the workers of a data loader.
func (r *podRecipe) setShm(pod *corev1.PodSpec, c *corev1.Container) error {
	if r.shm == "" {
		return nil
	}
	q, err := size("shm", r.shm)
	if err != nil {
		return err
	}
	mount(pod, c, "shm", "/dev/shm", false, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &q}})
	return nil
}

func (r *podRecipe) setVolumes(pod *corev1.PodSpec, c *corev1.Container) error {
	for i, volume := range r.volumes {
		parts := strings.Split(volume, ":")
		wrong := func(why string) error { return fmt.Errorf("--volume %s: %s", volume, why) }
		readOnly := len(parts) == 3 && parts[2] == "ro"
		if len(parts) < 2 || len(parts) == 3 && !readOnly && parts[2] != "rw" || len(parts) > 3 {
			return wrong("use CLAIM:/path or /directory:/path, with :ro at the end if it is only read")
		}
		from, to := parts[0], parts[1]
		if !strings.HasPrefix(to, "/") {
			return wrong("the second part is the absolute path in the container, as in data:/data")
		}
		source, err := volumeSource(from, readOnly)
		if err != nil {
			return wrong(err.Error())
		}
		for _, m := range c.VolumeMounts {
			if filepath.Clean(m.MountPath) == filepath.Clean(to) {
				return wrong(to + " is mounted twice")
			}
		}
		mount(pod, c, fmt.Sprintf("volume-%d", i), to, readOnly, source)
	}
	return nil
}

// volumeSource is a directory of the node if it is written as a path, else a PersistentVolumeClaim.
func volumeSource(from string, readOnly bool) (corev1.VolumeSource, error) {
	if strings.HasPrefix(from, ".") || strings.HasPrefix(from, "~") || strings.HasPrefix(from, "/") {
		if strings.HasPrefix(from, "~") {
			return corev1.VolumeSource{}, errors.New("write the whole path, or $HOME in place of ~")
		}
		path, err := filepath.Abs(from)
		return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: new(corev1.HostPathDirectory)}}, err
	}
	if problems := validation.IsDNS1123Subdomain(from); len(problems) > 0 {
		return corev1.VolumeSource{}, fmt.Errorf("%q is neither the name of a claim nor a path, which begins with / or a dot", from)
	}
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: from, ReadOnly: readOnly}}, nil
}

func mount(pod *corev1.PodSpec, c *corev1.Container, name, path string, readOnly bool, source corev1.VolumeSource) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
}

func (r *podRecipe) setMetadata(job, pod *metav1.ObjectMeta) error {
	for _, pair := range r.labels {
		key, value, err := label("label", pair)
		if err != nil {
			return err
		}
		set(&job.Labels, key, value)
		set(&pod.Labels, key, value)
	}
	for _, pair := range r.annotations {
		key, value, ok := strings.Cut(pair, "=")
		if problems := validation.IsQualifiedName(strings.ToLower(key)); !ok || len(problems) > 0 {
			return fmt.Errorf("--annotation %s: use NAME=value, as in owner=ann or example.com/owner=ann", pair)
		}
		set(&job.Annotations, key, value)
		set(&pod.Annotations, key, value)
	}
	return nil
}

// ownDomain are labels by which the operator finds the pods of a job.
const ownDomain = "training.kubeflow.org/"

func label(flag, pair string) (key, value string, err error) {
	key, value, ok := strings.Cut(pair, "=")
	switch {
	case !ok || len(validation.IsQualifiedName(key)) > 0:
		return "", "", fmt.Errorf("--%s %s: use NAME=value, as in team=vision or example.com/team=vision", flag, pair)
	case len(validation.IsValidLabelValue(value)) > 0:
		return "", "", fmt.Errorf("--%s %s: a value has at most 63 letters, digits, dashes, underscores and dots, and begins and ends with a letter or digit", flag, pair)
	case flag == "label" && strings.HasPrefix(key, ownDomain):
		return "", "", fmt.Errorf("--%s %s: the operator sets the labels of %s itself", flag, pair, strings.TrimSuffix(ownDomain, "/"))
	}
	return key, value, nil
}

func set(pairs *map[string]string, key, value string) {
	if *pairs == nil {
		*pairs = map[string]string{}
	}
	(*pairs)[key] = value
}

// setPlacement says where the pods run and in which order. Kueue reads its queue from a label, Volcano from the scheduling policy.
func (r *podRecipe) setPlacement(meta *metav1.ObjectMeta, policy *kubeflowv1.RunPolicy, pod *corev1.PodSpec) error {
	for _, pair := range r.nodeSelector {
		key, value, err := label("node-selector", pair)
		if err != nil {
			return err
		}
		set(&pod.NodeSelector, key, value)
	}
	for flag, name := range map[string]string{"queue": r.queue, "priority": r.priority} {
		if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("--%s %s: a name has lower-case letters, digits, dashes and dots", flag, name)
		}
	}
	if r.queue == "" && r.priority == "" {
		return nil
	}
	pod.PriorityClassName = r.priority
	policy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{Queue: r.queue, PriorityClass: r.priority}
	if r.queue != "" {
		set(&meta.Labels, queueLabel, r.queue)
	}
	return nil
}
