package code

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Dir is where a pod has the code.
const Dir = "/trainyard/code"

// Names in the pod.
const (
	unpacker   = "trainyard-code"
	codeVolume = "trainyard-code"
	partVolume = "trainyard-code-parts"
	partDir    = "/trainyard/parts"
)

// unpack is what the init container runs. An image for training has Python, if it does not have tar and gzip.
const unpack = `cd ` + Dir + ` && cat ` + partDir + `/part-* | if command -v tar >/dev/null && command -v gzip >/dev/null; then gzip -dc | tar -xof -; else
exec python3 -c 'import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode="r|gz").extractall()'; fi`

// ConfigMaps are the parts of a bundle. Their names begin with a prefix that no other bundle has.
func (b *Bundle) ConfigMaps(prefix string) []*corev1.ConfigMap {
	var maps []*corev1.ConfigMap
	for i, part := range b.Parts {
		maps = append(maps, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: partName(prefix, i)},
			Immutable:  new(true),
			BinaryData: map[string][]byte{fmt.Sprintf("part-%03d", i): part},
		})
	}
	return maps
}

func partName(prefix string, i int) string { return fmt.Sprintf("%s-%d", prefix, i) }

// AddTo lets a container of a pod start in the directory of the code, which an init container with the same image has unpacked.
func (b *Bundle) AddTo(pod *corev1.PodSpec, container *corev1.Container, prefix string) {
	var sources []corev1.VolumeProjection
	for i := range b.Parts {
		sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: partName(prefix, i)}}})
	}
	pod.Volumes = append(pod.Volumes,
		corev1.Volume{Name: partVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}},
		corev1.Volume{Name: codeVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	)
	directory := corev1.VolumeMount{Name: codeVolume, MountPath: Dir}
	init := corev1.Container{
		Name: unpacker, Image: container.Image, Command: []string{"sh", "-c", unpack},
		VolumeMounts: []corev1.VolumeMount{directory, {Name: partVolume, MountPath: partDir, ReadOnly: true}},
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} { // a quota may ask for limits
		if q, ok := container.Resources.Limits[name]; ok {
			if init.Resources.Limits == nil {
				init.Resources.Limits = corev1.ResourceList{}
			}
			init.Resources.Limits[name] = q
		}
	}
	pod.InitContainers = append(pod.InitContainers, init)
	container.VolumeMounts = append(container.VolumeMounts, directory)
	container.WorkingDir = Dir
}
