// Command trainingoperator runs the PyTorchJob controller of Kubeflow's Training Operator, for the bench. It has the flags and
// defaults of the real command, and none of its webhooks: the bench submits only jobs that are valid.
package main

import (
	"flag"
	"fmt"
	"os"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	controllerv1 "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kubeflow/training-operator/pkg/config"
)

func main() {
	probes := flag.String("health-probe-bind-address", ":8081", "where the probes are answered")
	namespace := flag.String("namespace", "", "the namespace to serve")
	threads := flag.Int("controller-threads", 1, "how many jobs are reconciled at the same time")
	qps := flag.Int("kube-api-qps", 20, "requests a second")
	burst := flag.Int("kube-api-burst", 30, "requests at once")
	flag.Parse()
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	ctrl.SetLogger(zap.New())
	if err := run(*probes, *namespace, *threads, *qps, *burst); err != nil {
		fmt.Fprintln(os.Stderr, "trainingoperator:", err)
		os.Exit(1)
	}
}

func run(probes, namespace string, threads, qps, burst int) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := kubeflowv1.AddToScheme(scheme); err != nil {
		return err
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(qps), burst)
	m, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: probes,
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return err
	}
	if err := m.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	setup := controllerv1.SupportedSchemeReconciler[kubeflowv1.PyTorchJobKind]
	if err := setup(m, common.GenNonGangSchedulerSetupFunc(), threads); err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}
