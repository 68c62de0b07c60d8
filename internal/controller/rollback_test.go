//go:build prove

package controller_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// Ours is stopped while jobs train, and Training Operator 1.9 itself is installed again with its own definitions and webhook. The jobs
// train on in their pods and end as they would have; a replica that fails is replaced alone, as 1.9 does it; a finished job stays so.
func TestTrainingOperatorTakesRunningJobsBack(t *testing.T) {
	w := worldOn(t, local.Start(t, cluster.Options{}))
	w.operate()
	folder := t.TempDir()
	gate := filepath.Join(folder, "finish")
	wait := fmt.Sprintf("until test -f %s; do sleep 0.1; done", gate)
	trains := w.submit(theirGang("trains", wait))
	fails := w.submit(theirGang("fails", fmt.Sprintf("until test -f %s/fail-$(hostname); do test -f %[1]s/finish && exit; sleep 0.1; done; rm %[1]s/fail-$(hostname); exit 1", folder)))
	done := w.submit(theirGang("done", "true"))
	done.becomes(kubeflowv1.JobSucceeded)
	before := map[*training]map[string]types.UID{}
	for _, j := range []*training{trains, fails} {
		j.becomes(kubeflowv1.JobRunning)
		before[j] = j.uids()
	}
	w.stop()
	w.startTrainingOperator()
	for _, j := range []*training{trains, fails} {
		name := j.name + "-worker-0"
		w.Eventually("Training Operator has made the Service "+name+", which ours does not", func() error {
			if all := j.services(); !slices.Contains(all, name) {
				return fmt.Errorf("the job has %q", all)
			}
			return nil
		})
	}

	open(t, filepath.Join(folder, "fail-fails-master-0"))
	w.Eventually("the failed replica is replaced and trains", func() error {
		pod := fails.pods()["master-0"]
		if pod == nil || pod.UID == before[fails]["master-0"] || pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("the pod is %+v", pod)
		}
		return nil
	})
	if now := fails.uids(); now["worker-0"] != before[fails]["worker-0"] {
		t.Errorf("the worker was restarted: the pods were %v, are %v", before[fails], now)
	}

	open(t, gate)
	for _, j := range []*training{trains, fails} {
		j.becomes(kubeflowv1.JobSucceeded)
	}
	if now := trains.uids(); now["master-0"] != before[trains]["master-0"] || now["worker-0"] != before[trains]["worker-0"] {
		t.Errorf("pods of the job that trained were replaced: they were %v, are %v", before[trains], now)
	}
	if s := done.status(); newest(s).Type != kubeflowv1.JobSucceeded {
		t.Errorf("the finished job has the status\n%s", describe(s))
	}
}

// theirGang is a job of two replicas as 1.9 accepts it: with its name for the container.
func theirGang(name, script string) *kubeflowv1.PyTorchJob {
	return gang(1, script, func(pj *kubeflowv1.PyTorchJob) {
		pj.Name = name
		for _, spec := range pj.Spec.PyTorchReplicaSpecs {
			spec.RestartPolicy = kubeflowv1.RestartPolicyOnFailure
			spec.Template.Spec.Containers[0].Name = "pytorch"
		}
	})
}

// startTrainingOperator installs Training Operator 1.9 as its own manifests do, with the program that is built from its module: local pods
// have no images.
func (w *world) startTrainingOperator() {
	w.Helper()
	program := local.Tool(w, "trainingoperator", "training-operator.v1")
	dir := w.TempDir()
	source := os.DirFS(filepath.Join(local.Source(w, "trainingoperator", "github.com/kubeflow/training-operator"), "manifests"))
	if err := os.CopyFS(filepath.Join(dir, "manifests"), source); err != nil {
		w.Fatal(err)
	}
	overlay := fmt.Appendf(nil, `
resources: [manifests/overlays/standalone]
patches:
  - target: {kind: Deployment, name: training-operator}
    patch: |
      - {op: replace, path: /spec/template/spec/containers/0/command, value: [%q]}
      - {op: replace, path: /spec/template/spec/containers/0/readinessProbe/initialDelaySeconds, value: 1}
      - {op: replace, path: /spec/template/spec/containers/0/readinessProbe/periodSeconds, value: 1}
`, program)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), overlay, 0o600); err != nil {
		w.Fatal(err)
	}
	w.Kubectl("apply", "--server-side", "--force-conflicts", "--namespace=kubeflow", "-k", dir)
	if o := w.Try("", "--namespace=kubeflow", "rollout", "status", "deployment/training-operator", "--timeout="+local.Timeout.String()); o.Code != 0 {
		w.Fatalf("Training Operator does not start: %s\n%s", o.Stderr, w.Try("", "--namespace=kubeflow", "logs", "deployment/training-operator", "--tail=30").Stdout)
	}
}
