// Command trainyard-operator runs training jobs on a Kubernetes cluster.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trainyard/trainyard/internal/controller"
)

// options are the flags, named as Training Operator 1.9 names them.
type options struct {
	metricsAddress, probeAddress string
	profileAddress               string
	leaderElect                  bool
	leaderElectionID             string
	lease                        leaseTimes
	namespace, agentImage        string
	workers                      int
	qps                          float64
	burst                        int
	clusterDomain                string
	gangScheduler                string
	traceContext                 bool
}

func (o *options) register(flags *flag.FlagSet) {
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "The address of the metrics server; 0 disables it.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "The address of the health probes; 0 disables them.")
	flags.StringVar(&o.profileAddress, "pprof-bind-address", "0", "The address of Go's profiles, below /debug/pprof; 0 disables them.")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "Work only while holding a lease, so that one of several operators is active and the others wait.")
	flags.StringVar(&o.leaderElectionID, "leader-election-id", "trainyard-operator", "The name of that lease.")
	o.lease.register(flags)
	flags.StringVar(&o.namespace, "namespace", os.Getenv("KUBEFLOW_NAMESPACE"), "The namespace whose jobs to run; empty for all.")
	flags.StringVar(&o.agentImage, "agent-image", "", "The image with the agent of MPI jobs; empty for the operator's own.")
	flags.IntVar(&o.workers, "controller-threads", 10, "How many jobs of a kind are reconciled in parallel.")
	flags.Float64Var(&o.qps, "kube-api-qps", 0, "The limit of requests a second to the API server; 0 means that only the API server limits them.")
	flags.StringVar(&o.clusterDomain, "cluster-domain", "", "The DNS domain of the cluster; empty for the one in the operator's /etc/resolv.conf, or else cluster.local.")
	flags.StringVar(&o.gangScheduler, "gang-scheduler-name", "", "Who places the replicas of every job together: kubernetes, volcano, or the name of a scheduler with the coscheduling plugin. Empty: jobs with a schedulingPolicy are placed by the first of these that the cluster has. none: no job is.")
	flags.BoolVar(&o.traceContext, "trace-context", false, "Set TRACEPARENT in the containers of all jobs, so that what they trace is part of the trace of their job. Without it only jobs with the annotation traceparent get it.")
	flags.IntVar(&o.burst, "kube-api-burst", 0, "How many requests may exceed kube-api-qps in a burst, if kube-api-qps is set.")
}

func main() {
	var o options
	o.register(flag.CommandLine) // controller-runtime adds --kubeconfig
	flag.Parse()
	logger := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger) // the client's lines
	ctx := ctrl.SetupSignalHandler()
	err := run(ctx, o)
	if err != nil && temporary(err) {
		logger.Error(err, "the operator starts again")
		err = startAgain(ctx)
	}
	if err != nil {
		logger.Error(err, "the operator ends")
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
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
		Metrics: metricsserver.Options{BindAddress: o.metricsAddress}, HealthProbeBindAddress: o.probeAddress, PprofBindAddress: o.profileAddress,
		LeaderElection: o.leaderElect, LeaderElectionID: o.leaderElectionID, LeaderElectionReleaseOnCancel: true,
		LeaderElectionNamespace: leaseNamespace(o),
		LeaseDuration:           &o.lease.duration, RenewDeadline: &o.lease.renewDeadline, RetryPeriod: &o.lease.retryPeriod,
		// A standby keeps its caches synced, so that it can work as soon as it leads.
		Controller: controllerconfig.Controller{EnableWarmup: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("starting the operator: %w", err)
	}
	setup := controller.Options{
		Workers: o.workers, Metrics: metrics.Registry, Namespace: o.namespace, GangScheduler: o.gangScheduler, ClusterDomain: clusterDomain(o), Agent: agent(ctx, config, o),
		TraceContext: o.traceContext,
	}
	if err := controller.Setup(mgr, setup); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("readyz", newReadiness(mgr, o).check); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// limit sets the rate of requests. Without one only the API server's priority and fairness limits them.
func limit(config *rest.Config, o options) {
	config.QPS, config.Burst = -1, o.burst
	if o.qps > 0 {
		config.QPS = float32(o.qps)
	}
	config.UserAgent = "trainyard-operator"
	controller.Quiet(config)
}
