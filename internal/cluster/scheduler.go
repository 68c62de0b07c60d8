package cluster

import (
	"context"
	"fmt"

	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// runScheduler runs kube-scheduler until ctx ends.
func runScheduler(ctx context.Context, kubeconfig string) error {
	s := options.NewOptions()
	err := parse(*s.Flags, []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	})
	if err != nil {
		return err
	}
	config, scheduler, err := app.Setup(ctx, s)
	if err != nil {
		return fmt.Errorf("setting up the scheduler: %w", err)
	}
	return app.Run(ctx, config, scheduler)
}
