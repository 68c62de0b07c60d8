package cluster

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// spawnNodes starts the processes of the further nodes. They wait until the API server answers, and are initialized meanwhile.
func (c *process) spawnNodes() error {
	for _, spec := range c.options.nodes()[1:] {
		n := &furtherNode{spec: spec, dataDir: c.options.DataDir, meter: c.meter, prepared: make(chan struct{}, 1)}
		if err := n.spawn(); err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
	}
	return nil
}

// startNodes returns when the kubelets of all nodes run.
func (c *process) startNodes(ctx context.Context, client kubernetes.Interface, admin *rest.Config) error {
	if err := reconcileNodes(ctx, client, c.options); err != nil {
		return err
	}
	var all errgroup.Group
	all.Go(func() error { return c.startFirstNode(ctx, admin) })
	if len(c.nodes) > 0 {
		if err := c.startFurtherNodes(ctx, client, admin, &all); err != nil {
			return err
		}
	}
	return all.Wait()
}

// startFirstNode runs a kubelet in this process.
func (c *process) startFirstNode(ctx context.Context, admin *rest.Config) error {
	spec := c.options.nodes()[0]
	serving, err := issueServing(c.pki, spec)
	if err != nil {
		return err
	}
	n := &node{
		nodeSpec: spec, dns: nodeAddress.AsSlice(), dir: c.dir("kubelet"), caFile: c.pki.path("ca.crt"),
		certFile: serving.certFile, keyFile: serving.keyFile, client: admin,
		runtime: c.refusal, images: c.runtime.Images(), gpus: c.held, machine: newMachine(c.dir("kubelet")),
	}
	return n.start(ctx)
}

// startFurtherNodes has the other nodes start theirs, and watches for requests to make nodes fail.
func (c *process) startFurtherNodes(ctx context.Context, client kubernetes.Interface, admin *rest.Config, all *errgroup.Group) error {
	remote := rest.CopyConfig(admin)
	remote.Host = fmt.Sprintf("https://%s:%d", nodeAddress, insidePort)
	content, err := encodeKubeconfig(remote)
	if err != nil {
		return err
	}
	kubeconfig := c.dir("pki/node.kubeconfig")
	if err := writeFile(kubeconfig, content); err != nil {
		return err
	}
	requests := &nodeRequests{client: client, nodes: map[string]faulty{firstNode: &firstNodeFaults{runtime: c.refusal}}}
	for _, n := range c.nodes {
		serving, err := issueServing(c.pki, n.spec)
		if err != nil {
			return err
		}
		n.config = nodeStart{
			Node: n.spec, Options: c.options, Kubeconfig: kubeconfig, CAFile: c.pki.path("ca.crt"),
			CertFile: serving.certFile, KeyFile: serving.keyFile, GPUs: n.spec.gpus(c.gpus, c.options.Nodes), AllGPUs: c.gpus,
		}
		requests.nodes[n.spec.Name], n.crashed, n.stopping = n, requests.recordCrash, c.reportStopping
		all.Go(n.start)
	}
	return requests.watch(ctx)
}

// shortenGracePeriod kills what still runs of a pod when grace has passed, on whichever node it is.
func (c *process) shortenGracePeriod(pod string, grace time.Duration) {
	c.runtime.ShortenGracePeriod(pod, grace)
	for _, n := range c.nodes {
		n.shortenGracePeriod(pod, grace)
	}
}
