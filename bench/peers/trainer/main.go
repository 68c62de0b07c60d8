// Command trainer runs the controllers of Kubeflow Trainer and of JobSet, for the bench: two managers, as in their own commands, with
// the rates and the threads that these have unless flags say otherwise. It has none of their webhooks. The bench submits only jobs that are
// valid, and its runtime names what JobSet's webhook would add.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	configapi "github.com/kubeflow/trainer/v2/pkg/apis/config/v1alpha1"
	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/controller"
	runtimecore "github.com/kubeflow/trainer/v2/pkg/runtime/core"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	ctrlpkg "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/controllers"
	schedulerplugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

type options struct {
	probes, namespace string
	trainer, jobset   rate
}

// rate is how much one of the two managers may do at the same time.
type rate struct {
	qps, threads int
}

func main() {
	var o options
	flag.StringVar(&o.probes, "health-probe-bind-address", ":8081", "where the probes are answered")
	flag.StringVar(&o.namespace, "namespace", "", "the namespace to serve")
	flag.IntVar(&o.trainer.qps, "trainer-qps", 50, "requests a second of Trainer; a burst may have twice as many")
	flag.IntVar(&o.trainer.threads, "trainer-threads", 5, "how many TrainJobs are reconciled at the same time")
	flag.IntVar(&o.jobset.qps, "jobset-qps", 500, "requests a second of JobSet; a burst may have twice as many")
	flag.IntVar(&o.jobset.threads, "jobset-threads", 1, "how many JobSets are reconciled at the same time")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "trainer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, trainer.AddToScheme, configapi.AddToScheme, jobset.AddToScheme, schedulerplugins.AddToScheme, volcano.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	jobsets, err := newManager(scheme, o.namespace, "0", o.jobset)
	if err != nil {
		return err
	}
	if err := addJobSet(ctx, jobsets); err != nil {
		return err
	}
	trainjobs, err := newManager(scheme, o.namespace, o.probes, o.trainer)
	if err != nil {
		return err
	}
	if err := addTrainer(ctx, trainjobs); err != nil {
		return err
	}
	ended := make(chan error, 2)
	for _, m := range []ctrl.Manager{jobsets, trainjobs} {
		go func() { ended <- m.Start(ctx) }()
	}
	return <-ended
}

func newManager(scheme *runtime.Scheme, namespace, probes string, r rate) (ctrl.Manager, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = float32(r.qps), 2*r.qps
	return ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: probes,
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller: controllerconfig.Controller{MaxConcurrentReconciles: r.threads},
	})
}

func addJobSet(ctx context.Context, m ctrl.Manager) error {
	if err := controllers.SetupJobSetIndexes(ctx, m.GetFieldIndexer()); err != nil {
		return err
	}
	if err := controllers.SetupPodIndexes(ctx, m.GetFieldIndexer()); err != nil {
		return err
	}
	if err := controllers.NewJobSetReconciler(m.GetClient(), m.GetScheme(), m.GetEventRecorder("jobset")).SetupWithManager(m); err != nil {
		return err
	}
	return controllers.NewPodReconciler(m.GetClient(), m.GetScheme(), m.GetEventRecorder("pod")).SetupWithManager(m)
}

func addTrainer(ctx context.Context, m ctrl.Manager) error {
	runtimes, err := runtimecore.New(ctx, m.GetClient(), m.GetFieldIndexer(), &configapi.Configuration{})
	if err != nil {
		return err
	}
	if failed, err := controller.SetupControllers(m, runtimes, ctrlpkg.Options{}); err != nil {
		return fmt.Errorf("controller of %s: %w", failed, err)
	}
	return m.AddReadyzCheck("readyz", healthz.Ping)
}
