package flyte

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Pod is the pod of every replica, before a role's own image and resources.
type Pod struct {
	// Template is the pod as the task has it.
	Template corev1.PodTemplateSpec
	// Primary names the training container; it may be empty if there is only one.
	Primary string
}

// container finds the training container in the pod.
func (p *Pod) container() (*corev1.Container, error) {
	containers := p.Template.Spec.Containers
	switch {
	case len(containers) == 0:
		return nil, fmt.Errorf("the task has no container and no pod: give it a pod template")
	case p.Primary == "" && len(containers) == 1:
		return &containers[0], nil
	case p.Primary == "":
		return nil, fmt.Errorf("the pod has %d containers: say which one trains", len(containers))
	}
	for i := range containers {
		if containers[i].Name == p.Primary {
			return &containers[i], nil
		}
	}
	return nil, fmt.Errorf("the pod has no container %q", p.Primary)
}

// IncreaseSharedMemory mounts memory at /dev/shm, limited only by the pod's memory, as flytekit's increase_shared_mem does.
func (p *Pod) IncreaseSharedMemory() error {
	return p.mountMemory("shm", "/dev/shm", "")
}

func (p *Pod) mountMemory(name, path, limit string) error {
	if name == "" || path == "" {
		return fmt.Errorf("mount name %q and path %q must both be given", name, path)
	}
	container, err := p.container()
	if err != nil {
		return err
	}
	memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
	if limit != "" {
		size, err := resource.ParseQuantity(limit)
		if err != nil {
			return fmt.Errorf("size limit %q: %w", limit, err)
		}
		memory.SizeLimit = &size
	}
	spec := &p.Template.Spec
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: memory}})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
	return nil
}

// render is the pod template of one role: the training container gets the name that operators expect, and the role's image and
// resources.
func (p Pod) render(role replicaSpec, name string, e Execution) (corev1.PodTemplateSpec, error) {
	pod := Pod{Template: *p.Template.DeepCopy(), Primary: p.Primary}
	container, err := pod.container()
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	container.Name = name
	if role.image != "" {
		container.Image = role.image
	}
	// Flyte 1 checks whether any resource is set; Flyte 2 treats an empty message as set too.
	var own *corev1.ResourceRequirements
	if role.hasResources() || (role.resources != nil && e.Dialect != Flyte1) {
		set, err := requirements(role.resources)
		if err != nil {
			return corev1.PodTemplateSpec{}, fmt.Errorf("resources: %w", err)
		}
		own = &set
	}
	container.Resources = resourcesFor(container.Resources, own)
	pod.finish(e)
	if e.Dialect == Flyte1 {
		pod.finish1(own, container)
	}
	return pod.Template, nil
}

// finish adds what Flyte adds to every pod.
func (p *Pod) finish(e Execution) {
	template, spec := &p.Template, &p.Template.Spec
	template.Labels = union(template.Labels, e.Labels)
	template.Annotations = union(e.Dialect.annotations(), template.Annotations, e.Annotations)
	if spec.RestartPolicy == "" {
		spec.RestartPolicy = corev1.RestartPolicyNever
	}
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = e.ServiceAccount
	}
	if e.Dialect != Flyte1 && spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = new(false)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if e.Dialect == Flyte1 { // it never checks what is there
				containers[i].Env = append(containers[i].Env, e.Env...)
				continue
			}
			addEnv(&containers[i], e.Env...)
			addEnv(&containers[i], podNameEnv(envPodName))
		}
	}
}

// finish1 adds what only Flyte 1 does: an affinity, also an empty one, and resources of the other containers. Init containers get those
// of the role or the defaults, sidecars CPU and memory in any case, of which 0 means no limit.
func (p *Pod) finish1(own *corev1.ResourceRequirements, training *corev1.Container) {
	spec := &p.Template.Spec
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	for i := range spec.InitContainers {
		spec.InitContainers[i].Resources = resourcesFor(spec.InitContainers[i].Resources, own)
	}
	for i := range spec.Containers {
		if c := &spec.Containers[i]; c.Name != training.Name {
			c.Resources = inRange(c.Resources)
		}
	}
}

// annotations are those that Flyte adds to jobs and pods if its administrator does not say otherwise.
func (d Dialect) annotations() map[string]string {
	if d == Flyte1 {
		return map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
	}
	return nil
}

// The variables with which Flyte gives a container the name of its pod. Only Flyte 1 sets the second, for workers of a PyTorchJob.
const (
	envPodName    = "_F_PN"
	envWorkerName = "_F_WN"
)

func dropFlyteEnv(c *corev1.Container) {
	c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == envPodName || v.Name == envWorkerName })
	if len(c.Env) == 0 {
		c.Env = nil
	}
}

func podNameEnv(name string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
	}}
}

func addEnv(c *corev1.Container, env ...corev1.EnvVar) {
	for _, v := range env {
		if !slices.ContainsFunc(c.Env, func(had corev1.EnvVar) bool { return had.Name == v.Name }) {
			c.Env = append(c.Env, v)
		}
	}
}
