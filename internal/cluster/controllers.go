package cluster

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// controllers are those of kube-controller-manager that have work on one machine without a cloud or disks to attach.
var controllers = []string{
	names.GarbageCollectorController,
	names.NamespaceController,
	names.ServiceAccountController,
	names.ServiceAccountTokenController,
	names.RootCACertificatePublisherController,
	names.ClusterRoleAggregationController,
	names.NodeLifecycleController,
	names.TaintEvictionController,
	names.PodGarbageCollectorController,
	names.PodGroupProtectionController,
	names.TTLController,
	names.TTLAfterFinishedController,
	names.EndpointsController,
	names.EndpointSliceController,
	names.EndpointSliceMirroringController,
	names.HorizontalPodAutoscalerController,
	names.DeploymentController,
	names.ReplicaSetController,
	names.ReplicationControllerController,
	names.StatefulSetController,
	names.DaemonSetController,
	names.JobController,
	names.CronJobController,
	names.DisruptionController,
	names.ResourceQuotaController,
	names.ServiceCIDRController,
	names.ValidatingAdmissionPolicyStatusController,
}

// runControllers runs kube-controller-manager's controllers until ctx ends.
func runControllers(ctx context.Context, kubeconfig string, p *pki) error {
	s, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("setting up the controllers: %w", err)
	}
	known, off, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	err = parse(s.Flags(known, off, aliases), []string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--controller-start-interval=0s",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--root-ca-file=" + p.path("ca.crt"),
		"--service-account-private-key-file=" + p.path("service-accounts.key"),
		// The nodes and the API server share a machine, so short periods are safe, and a person is waiting.
		"--horizontal-pod-autoscaler-sync-period=5s",
		"--horizontal-pod-autoscaler-downscale-stabilization=60s",
		"--horizontal-pod-autoscaler-cpu-initialization-period=15s",
		"--horizontal-pod-autoscaler-initial-readiness-delay=5s",
	})
	if err != nil {
		return err
	}
	config, err := s.Config(ctx, known, off, aliases)
	if err != nil {
		return fmt.Errorf("setting up the controllers: %w", err)
	}
	return app.Run(ctx, config.Complete())
}
