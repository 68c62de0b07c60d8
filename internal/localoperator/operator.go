// Package localoperator runs the operator and the recorder of jobs inside the local cluster's process. It installs the definitions itself,
// so that a cluster needs nothing but this to run training jobs.
package localoperator

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/definition"
	"github.com/trainyard/trainyard/internal/manifest"
)

// workers is how many jobs of a kind are reconciled at the same time.
const workers = 4

// Run installs the definitions and the shipped runtimes, and runs and records jobs until ctx ends. The cluster is ready when jobs can be
// created.
func Run(ctx context.Context, inside cluster.Inside) error { return run(ctx, inside, recordJobs) }

// RunUnrecorded is Run without the recorder, by which a benchmark measures what the recorder costs.
func RunUnrecorded(ctx context.Context, inside cluster.Inside) error {
	return run(ctx, inside, func(context.Context, ctrl.Manager, cluster.Inside) error { return nil })
}

func run(ctx context.Context, inside cluster.Inside, record func(context.Context, ctrl.Manager, cluster.Inside) error) error {
	ctrl.SetLogger(klog.Background())
	config := rest.CopyConfig(inside.Admin)
	config.QPS, config.UserAgent = -1, "trainyard-operator"
	controller.Quiet(config)
	scheme, err := controller.Scheme()
	if err != nil {
		return err
	}
	if err := definition.Install(ctx, config, scheme); err != nil {
		return err
	}
	inside.Ready()
	caches, err := controller.Cache("")
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: caches, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return fmt.Errorf("starting the operator: %w", err)
	}
	if err := controller.Setup(mgr, controller.Options{Workers: workers, Metrics: prometheus.NewRegistry(), Agent: Agent, GangScheduler: manifest.GangKubernetes}); err != nil {
		return err
	}
	// Only jobs that use a runtime wait for the runtimes.
	err = errors.Join(
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return InstallRuntimes(ctx, config) })),
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return offerJobSetToKueue(ctx, config) })),
	)
	if err != nil {
		return fmt.Errorf("starting the operator: %w", err)
	}
	if err := record(ctx, mgr, inside); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
