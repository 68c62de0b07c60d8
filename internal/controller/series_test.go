package controller_test

import (
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/testing/promtool"
)

// late is a job that ends at its deadline: it waits for a GPU, and there is none.
func late(name string) *kubeflowv1.PyTorchJob {
	return pytorch(roles{"Master": running(1, "true")}, func(pj *kubeflowv1.PyTorchJob) {
		pj.Name, pj.Spec.RunPolicy.ActiveDeadlineSeconds = name, new(int64(1))
		container := &pj.Spec.PyTorchReplicaSpecs["Master"].Template.Spec.Containers[0]
		container.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	})
}

// exportsWhatIsRead checks that this operator exports every series that the alerts read, and that every query of the dashboard has an answer. The
// operator must have seen a restart, a lost node, a deadline and GPUs.
func (w *world) exportsWhatIsRead() {
	w.Helper()
	var series map[string]float64
	w.Eventually("every series of the alerts is exported", func() error {
		own, err := w.numbers.Gather()
		if err != nil {
			return err
		}
		queues, err := controllermetrics.Registry.Gather()
		if err != nil {
			return err
		}
		series = promtool.Series(append(own, queues...))
		shapes := map[string]bool{}
		for s := range series {
			shapes[promtool.Shape(w, s)] = true
		}
		for _, s := range promtool.Tested(w, "../../config/testdata/alerts.yaml") {
			shape := promtool.Shape(w, strings.Replace(s, `job="trainyard-operator", `, "", 1)) // which Prometheus adds
			foreign := strings.HasPrefix(s, "up{") || strings.HasPrefix(s, "DCGM_") || ofRecorder(s)
			if !shapes[shape] && !foreign {
				return fmt.Errorf("there is no %s", shape)
			}
		}
		return nil
	})
	dashboard, err := os.ReadFile("../../charts/trainyard/dashboards/trainyard.json")
	if err != nil {
		w.Fatal(err)
	}
	promtool.Answers(w, series, slices.DeleteFunc(promtool.Expressions(w, dashboard), ofRecorder))
}

// ofRecorder reports whether a text is about the recorder, which is another process and has a test of its own.
func ofRecorder(text string) bool { return strings.Contains(text, "trainyard_recorder_") }
