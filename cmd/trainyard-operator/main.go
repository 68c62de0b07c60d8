// Command trainyard-operator runs training jobs on a Kubernetes cluster.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trainyard/trainyard/internal/controller"
)

// options are the flags, named as Training Operator 1.9 names them.
type options struct {
	metricsAddress, probeAddress string
	leaderElect                  bool
	leaderElectionID             string
	namespace                    string
	workers                      int
	qps                          float64
	burst                        int
}

func (o *options) register(flags *flag.FlagSet) {
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "Where to serve metrics; 0 serves none.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "Where to answer health probes; 0 answers none.")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "Work only while holding a lease, so that several operators can stand by.")
	flags.StringVar(&o.leaderElectionID, "leader-election-id", "trainyard-operator", "The name of that lease.")
	flags.StringVar(&o.namespace, "namespace", os.Getenv("KUBEFLOW_NAMESPACE"), "The namespace whose jobs to run; empty for all.")
	flags.IntVar(&o.workers, "controller-threads", 10, "How many jobs of a kind to look at at the same time.")
	flags.Float64Var(&o.qps, "kube-api-qps", 0, "Requests a second to the API server; 0 leaves the limit to the API server.")
	flags.IntVar(&o.burst, "kube-api-burst", 0, "Requests at once to the API server, where kube-api-qps is set.")
}

func main() {
	var o options
	o.register(flag.CommandLine) // controller-runtime adds --kubeconfig
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(o options) error {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	limit(config, o)
	scheme, err := controller.Scheme()
	if err != nil {
		return err
	}
	caches, err := controller.Cache(o.namespace)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: caches,
		Metrics: metricsserver.Options{BindAddress: o.metricsAddress}, HealthProbeBindAddress: o.probeAddress,
		LeaderElection: o.leaderElect, LeaderElectionID: o.leaderElectionID, LeaderElectionReleaseOnCancel: true,
		LeaderElectionNamespace: leaseNamespace(o),
	})
	if err != nil {
		return fmt.Errorf("starting the operator: %w", err)
	}
	if err := controller.Setup(mgr, controller.Options{Workers: o.workers, Metrics: metrics.Registry}); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// leaseNamespace is where the lease is kept: beside the operator in a cluster, which it finds out by itself, and elsewhere in the
// namespace whose jobs it runs.
func leaseNamespace(o options) string {
	if _, err := os.Stat("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return ""
	}
	return cmp.Or(o.namespace, "default")
}

// limit sets the rate of requests. Without one the API server's priority and fairness is the limit.
func limit(config *rest.Config, o options) {
	config.QPS, config.Burst = -1, o.burst
	if o.qps > 0 {
		config.QPS = float32(o.qps)
	}
	config.UserAgent = "trainyard-operator"
}
