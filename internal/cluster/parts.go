package cluster

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	insidePort   = 6443
	readyTimeout = time.Minute
)

// startParts starts everything that needs the API server, all at once, and returns when pods can be created and will run.
func (c *process) startParts(ctx context.Context, api *runningAPI) error {
	began, admin := time.Now(), api.admin
	kubeconfig := c.dir("pki/inside.kubeconfig")
	content, err := encodeKubeconfig(admin)
	if err != nil {
		return err
	}
	if err := writeFile(kubeconfig, content); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(admin), "trainyard-cluster"))
	if err != nil {
		return err
	}
	c.keep(ctx, "scheduler", func() error { return runScheduler(ctx, kubeconfig) })
	go c.meter.run(ctx)

	var all errgroup.Group
	for _, addon := range c.addons {
		all.Go(func() error { return c.startAddon(ctx, addon, admin) })
	}
	all.Go(func() error { return c.startControllers(ctx, api, kubeconfig) })
	all.Go(func() error { return c.startServices(ctx, client) })
	all.Go(func() error {
		_, err := startDNS(kubeconfig, nodeAddress.AsSlice(), gateway.AsSlice())
		return err
	})
	all.Go(func() error { return c.startNodes(ctx, client, admin) })
	if err := all.Wait(); err != nil {
		return err
	}
	return c.awaitPods(ctx, client, began)
}

// keep runs a part that lives as long as the cluster. If it ends before, so does the cluster.
func (c *process) keep(ctx context.Context, name string, run func() error) {
	go func() {
		err := run()
		if ctx.Err() == nil {
			c.failed <- fmt.Errorf("%s ended: %w", name, err)
		}
	}()
}

// startAddon returns when what the addon brings can be used.
func (c *process) startAddon(ctx context.Context, addon Addon, admin *rest.Config) error {
	ready := make(chan struct{})
	inside := Inside{
		Admin: rest.CopyConfig(admin), Ready: func() { close(ready) }, DataDir: c.options.DataDir,
		LogDir: func(node string) string { return logsPath(kubeletPath(c.options.DataDir, node)) }, Usage: c.meter.uses,
		OnStop: func(stop func()) {
			c.stopping.Lock()
			defer c.stopping.Unlock()
			c.onStop = append(c.onStop, stop)
		},
	}
	c.keep(ctx, addon.Name, func() error { return addon.Run(ctx, inside) })
	select {
	case <-ready:
		return nil
	case err := <-c.failed:
		return err
	}
}

// startControllers waits for the API server to be ready: the controllers themselves ask for that once a second only, and give up
// after ten.
func (c *process) startControllers(ctx context.Context, api *runningAPI, kubeconfig string) error {
	if err := api.awaitReady(ctx); err != nil {
		return err
	}
	c.keep(ctx, "API server", func() error { return <-api.failed })
	c.keep(ctx, "controllers", func() error { return runControllers(ctx, kubeconfig, c.pki) })
	return nil
}

func (c *process) startServices(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	proxy, err := newServiceProxy(factory, nodeAddress.String())
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go proxy.run(ctx)
	return nil
}

// awaitPods returns when a pod can be created and will run: the nodes are ready as of now, and the default service account,
// without which the API server refuses pods, is there.
func (c *process) awaitPods(ctx context.Context, client kubernetes.Interface, since time.Time) error {
	waitingFor := ""
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-c.failed:
			return false, err
		default:
		}
		for _, spec := range c.options.nodes() {
			waitingFor = "node " + spec.Name
			n, err := client.CoreV1().Nodes().Get(ctx, spec.Name, metav1.GetOptions{})
			if err != nil || !nodeReady(n, since) {
				return false, nil
			}
		}
		waitingFor = "the default service account"
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("waiting for %s: %w", waitingFor, err)
	}
	return err
}

// clientConfig is an administrator's access from outside the enclave.
func (c *process) clientConfig(admin *rest.Config) *rest.Config {
	outside := rest.CopyConfig(admin)
	outside.Host = "https://" + c.outside.String()
	return outside
}
