package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/trainyard/trainyard/internal/enclave"
	"github.com/trainyard/trainyard/internal/procrun"
)

// A node besides the first is a process of its own: kubelet and the container runtime, in an enclave inside the cluster's. So its
// end is the end of its pods, as on a machine that loses power. The cluster's process sends commands, and gets reports.

// nodeProcessName is the name (argv[0]) under which the executable is a further node.
const nodeProcessName = "trainyard-node"

// nodeLog is the log of a further node, in its folder.
const nodeLog = "node.log"

// nodeControlFD is the socket that the cluster's process hands over.
const nodeControlFD = 3

// nodeStart says how to run a further node.
type nodeStart struct {
	Node       nodeSpec
	Options    Options
	Kubeconfig string // how it reaches the API server
	CAFile     string
	CertFile   string // what kubelet serves with
	KeyFile    string
	GPUs       []string // of the node, among those of the machine
	AllGPUs    []string
}

// nodeCommand is what the cluster's process sends to a further node: one of these.
type nodeCommand struct {
	Start              *nodeStart          `json:",omitempty"`
	ShortenGracePeriod *shorterGracePeriod `json:",omitempty"`
	Refuse             *bool               `json:",omitempty"` // whether the runtime refuses everything
	PrepareFreeze      bool                `json:",omitempty"` // the process is about to be stopped
}

type shorterGracePeriod struct {
	Pod   string
	Grace time.Duration
}

// nodeReport is what a further node sends: first that it has started or why it has not, then what its containers use, that it
// is prepared to be frozen, and which pods its stop waits for.
type nodeReport struct {
	Error    string
	Usage    []containerUsage
	Prepared bool
	Stopping []procrun.RunningPod // what its stop waits for
}

// runAsNode is the process of a further node. It returns at once in any other.
func runAsNode() {
	if os.Args[0] != nodeProcessName {
		return
	}
	control, err := fileConn(nodeControlFD)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := runNode(ctx, control); err != nil {
		klog.ErrorS(err, "The node ended")
		send(control, nodeReport{Error: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

// runNode runs a further node until ctx ends.
func runNode(ctx context.Context, control net.Conn) error {
	if err := enclave.Enter(); err != nil {
		return err
	}
	logTo(os.Stderr)
	if err := prepareProcess(); err != nil {
		return err
	}
	commands := json.NewDecoder(control)
	var first nodeCommand
	if err := commands.Decode(&first); err != nil || first.Start == nil {
		return fmt.Errorf("reading how to run the node: %w", err)
	}
	logTo(&logFile{path: filepath.Join(first.Start.Node.dir(first.Start.Options.DataDir), nodeLog), limit: maxLogFile})
	if err := detachMounts(first.Start.Options.DataDir); err != nil {
		return err
	}
	parts := context.WithoutCancel(ctx) // they end after the pods
	n, err := startFurtherNode(parts, *first.Start)
	if err != nil {
		return err
	}
	send(control, nodeReport{})
	go n.obey(commands, control)
	go n.reportUsage(parts, control)
	go freeMemoryWhenIdle(parts)
	<-ctx.Done()
	return closeRuntime(n.runtime, func(pods []procrun.RunningPod) { send(control, nodeReport{Stopping: pods}) })
}

// nodeProcess is what the parts of a further node share.
type nodeProcess struct {
	runtime *procrun.Runtime
	refusal *refusingRuntime
	gpus    *gpuManager
}

func startFurtherNode(ctx context.Context, s nodeStart) (*nodeProcess, error) {
	dir := s.Node.dir(s.Options.DataDir)
	runtime, err := procrun.New(runtimeConfig(s.Options, s.Node, s.AllGPUs))
	if err != nil {
		return nil, fmt.Errorf("starting the container runtime: %w", err)
	}
	if err := joinFirstNode(); err != nil {
		return nil, err
	}
	client, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the node: %w", err)
	}
	client.QPS = -1
	n := &nodeProcess{runtime: runtime, refusal: &refusingRuntime{RuntimeService: runtime}, gpus: newGPUManager(s.GPUs)}
	kubelet := &node{
		nodeSpec: s.Node, dns: nodeAddress.AsSlice(), dir: filepath.Join(dir, "kubelet"), caFile: s.CAFile, certFile: s.CertFile, keyFile: s.KeyFile,
		client: client, runtime: n.refusal, images: runtime.Images(), gpus: n.gpus, machine: newVirtualMachine(dir, s.Node.Name),
	}
	return n, kubelet.start(ctx)
}

// obey carries out commands until the cluster's process is gone.
func (n *nodeProcess) obey(commands *json.Decoder, control net.Conn) {
	for {
		var c nodeCommand
		if err := commands.Decode(&c); err != nil {
			return
		}
		switch {
		case c.ShortenGracePeriod != nil:
			n.runtime.ShortenGracePeriod(c.ShortenGracePeriod.Pod, c.ShortenGracePeriod.Grace)
		case c.Refuse != nil:
			n.refusal.refuse.Store(*c.Refuse)
		case c.PrepareFreeze:
			n.runtime.EnlargePipes()
			send(control, nodeReport{Prepared: true})
		}
	}
}

// reportUsage sends what the node's containers use, at the pace at which the meter reads.
func (n *nodeProcess) reportUsage(ctx context.Context, control net.Conn) {
	for tick := time.NewTicker(meterPeriod); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if usage, err := usageOf(ctx, n.runtime, n.gpus); err == nil {
			send(control, nodeReport{Usage: usage})
		}
	}
}
