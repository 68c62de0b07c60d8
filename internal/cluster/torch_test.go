package cluster_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// Two pods run Debian's torchrun: they meet by c10d in the first of them, whose store they find by its bare name, and gloo
// adds up across the bridge.
func TestTorchRunsAcrossPods(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Apply(`
apiVersion: v1
kind: Service
metadata: {name: train-0}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {name: train-0}, ports: [{port: 29400}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: program}
data:
  train.py: |
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    sum = torch.tensor([10.0 ** dist.get_rank()])
    dist.all_reduce(sum)
    print(f"the sum over {dist.get_world_size()} ranks is {sum.item():.0f}", flush=True)
    dist.destroy_process_group()
`)
	names := []string{"train-0", "train-1"}
	for _, name := range names {
		// The flags --redirects and --tee avoid a fault of torch 1.13 with Python 3.11.
		pod := local.Pod(name, `exec /usr/bin/python3 -m torch.distributed.run --redirects 1 --tee 1 --nnodes 2 --nproc_per_node 2 \
			--rdzv_backend c10d --rdzv_endpoint train-0:29400 --rdzv_id test /program/train.py`)
		pod.Labels = map[string]string{"name": name}
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OMP_NUM_THREADS", Value: "1"}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "program", MountPath: "/program"}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "program", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "program"}},
		}}}
		w.Create(pod)
	}
	for _, name := range names {
		w.UntilPhase(name, corev1.PodSucceeded)
		for rank := range 2 {
			w.Await(fmt.Sprintf("[default%d]:the sum over 4 ranks is 1111", rank), "logs", name)
		}
	}
}
