package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/trainyard/trainyard/internal/enclave"
	"github.com/trainyard/trainyard/internal/procrun"
)

// Addon is something more that runs in the cluster's process, once the API server answers. Its Run returns when ctx ends.
type Addon struct {
	Name string
	Run  func(ctx context.Context, inside Inside) error
}

// Inside is what the cluster gives to an addon.
type Inside struct {
	// Admin is an administrator's access to the API server.
	Admin *rest.Config
	// Ready must be called once: the cluster is ready when all addons are.
	Ready func()
	// DataDir is where the cluster keeps everything.
	DataDir string
	// LogDir is kubelet's directory of logs on a node.
	LogDir func(node string) string
	// Usage is what each pod uses now, on all nodes.
	Usage func() map[types.NamespacedName]Use
	// OnStop has a function called when the cluster stops: all containers have ended, and the process ends when the function returns.
	OnStop func(func())
}

// Use is what a pod uses: processors that are busy, and bytes of memory; GPUs of it that are busy, and bytes of their memory.
type Use struct {
	Cores     float64
	Memory    int64
	GPU       float64
	GPUMemory int64
}

// processName is the name (argv[0]) under which the executable is a cluster's process.
const processName = "trainyard-cluster"

// The files that the parent hands over.
const (
	controlFD = 3 + iota
	portFD
	uplinkFD
	lockFD
)

// Main is the cluster's process, or that of one of its nodes. It returns at once in any other.
func Main(addons ...Addon) {
	runAsNode()
	if os.Args[0] != processName {
		return
	}
	control, err := fileConn(controlFD)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := runProcess(ctx, control, addons); err != nil {
		klog.ErrorS(err, "The local cluster ended")
		send(control, message{Error: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

// runProcess runs the cluster from its start to its end.
func runProcess(ctx context.Context, control net.Conn, addons []Addon) error {
	syscall.CloseOnExec(lockFD)
	syscall.CloseOnExec(uplinkFD)
	if err := enclave.Enter(); err != nil {
		return err
	}
	c := &process{control: control, meter: newMeter(machineUse)}
	if err := json.NewDecoder(control).Decode(&c.options); err != nil {
		return fmt.Errorf("reading the options: %w", err)
	}
	for _, addon := range addons {
		if !slices.Contains(c.options.Without, addon.Name) {
			c.addons = append(c.addons, addon)
		}
	}
	logTo(&logFile{path: c.dir("cluster.log"), limit: maxLogFile})
	if err := prepareProcess(); err != nil {
		return err
	}
	return c.run(ctx)
}

// process is the cluster's process: what its parts share.
type process struct {
	options Options
	control net.Conn
	addons  []Addon

	outside net.Addr // where the API server is reached from outside the enclave
	pki     *pki
	runtime *procrun.Runtime
	refusal *refusingRuntime // the runtime as kubelet sees it
	nodes   []*furtherNode
	meter   *meter
	gpus    []string    // the machine's
	held    *gpuManager // those of the first node
	notes   []string
	failed  chan error // why a part has ended that must not

	stopping sync.Mutex // guards what follows
	onStop   []func()
}

// run starts the parts, says when they are ready, and stops them when ctx ends.
func (c *process) run(ctx context.Context) error {
	c.failed = make(chan error, 16)
	parts := context.WithoutCancel(ctx) // they end after the pods
	if err := c.spawnNodes(); err != nil {
		return err
	}
	etcd, stopEtcd, err := c.startStores(ctx)
	if err != nil {
		return err
	}
	defer stopEtcd()

	c.step("API server")
	api, err := c.startAPIServer(parts, etcd)
	if err != nil {
		return err
	}
	c.step("controllers, scheduler and kubelet")
	if err := c.startParts(parts, api); err != nil {
		return err
	}
	kubeconfig, err := encodeKubeconfig(c.clientConfig(api.admin))
	if err != nil {
		return err
	}
	send(c.control, message{Kubeconfig: kubeconfig, Notes: c.notes})
	go freeMemoryWhenIdle(parts)

	select {
	case <-ctx.Done():
	case err = <-c.failed:
	}
	// The pods stop first, while all else still works. The rest needs no shutdown, as the store is safe at any moment.
	var pods sync.WaitGroup
	pods.Go(func() { c.stopNodes(context.Background()) })
	pods.Go(func() { err = errors.Join(err, closeRuntime(c.runtime, c.reportStopping)) })
	pods.Wait()
	c.stopping.Lock()
	defer c.stopping.Unlock()
	for _, stop := range c.onStop {
		stop()
	}
	return err
}

// stoppingDelay is how long pods may take to end before a person is told that the stop waits for them.
const stoppingDelay = 2 * time.Second

// closeRuntime ends all pods of a node. It reports those that do not end at once.
func closeRuntime(r *procrun.Runtime, report func([]procrun.RunningPod)) error {
	late := time.AfterFunc(stoppingDelay, func() {
		if pods := r.RunningPods(); len(pods) > 0 {
			report(pods)
		}
	})
	defer late.Stop()
	return r.Close(context.Background())
}

func (c *process) reportStopping(pods []procrun.RunningPod) { send(c.control, message{Stopping: pods}) }

func (c *process) step(name string) { send(c.control, message{Step: name}) }

func (c *process) dir(name string) string { return filepath.Join(c.options.DataDir, name) }

// startStores starts what needs no API server: the certificate authority, the store, the runtime with its network.
func (c *process) startStores(ctx context.Context) (etcd string, stopEtcd func(), err error) {
	c.step("store and network")
	var all errgroup.Group
	all.Go(func() (err error) {
		etcd, stopEtcd, err = startEtcd(ctx, c.dir("etcd"), etcdLog())
		return err
	})
	all.Go(func() (err error) {
		c.pki, err = openPKI(c.dir("pki"), time.Now())
		return err
	})
	all.Go(func() error { return c.startRuntime(ctx) })
	err = all.Wait()
	return etcd, stopEtcd, err
}

// startRuntime starts the container runtime with the pods' network.
func (c *process) startRuntime(ctx context.Context) (err error) {
	var gpuNote string
	c.gpus, gpuNote = findGPUs(ctx, gpuTimeout)
	first := c.options.nodes()[0]
	c.held = newGPUManager(first.gpus(c.gpus, c.options.Nodes))
	if c.runtime, err = procrun.New(runtimeConfig(c.options, first, c.gpus)); err != nil {
		return fmt.Errorf("starting the container runtime: %w", err)
	}
	c.refusal = &refusingRuntime{RuntimeService: c.runtime}
	c.notes = c.runtime.Notes()
	for _, note := range []string{gpuNote, inotifyNote(openInotify)} {
		if note != "" {
			c.notes = append(c.notes, note)
		}
	}
	if err := serveServices(); err != nil {
		return err
	}
	if err := attachUplink(uplinkFD); err != nil {
		c.notes = append(c.notes, fmt.Sprintf("pods do not reach the machine's network: %v", err))
		return nil
	}
	return defaultRoute()
}

// runtimeConfig is that of a node's container runtime.
func runtimeConfig(o Options, node nodeSpec, gpus []string) procrun.Config {
	config := procrun.Config{
		Root:           filepath.Join(node.dir(o.DataDir), "runtime"),
		WorkDir:        o.WorkDir,
		Env:            o.Env,
		Bridge:         bridgeName,
		Pods:           podRange,
		Own:            node.pods(),
		Node:           node.address(),
		Gateway:        gateway,
		Services:       serviceRange,
		ServiceGateway: nodeAddress,
		Cgroup:         node.cgroup(o.DataDir),
		GPUs:           gpus,
		LogLimit:       2 * logSize,
		GraceLimit:     o.GraceLimit,
	}
	if uid, gid, ok := enclave.Outside(); ok { // root in a user namespace, too: it can be nobody else
		config.User = &procrun.User{UID: uint32(uid), GID: uint32(gid)}
	}
	return config
}

// startAPIServer serves inside the enclave, where pods and the other parts reach it, and on the port that the parent opened.
func (c *process) startAPIServer(ctx context.Context, etcd string) (*runningAPI, error) {
	outside, err := net.FileListener(os.NewFile(portFD, "port"))
	if err != nil {
		return nil, fmt.Errorf("taking over the API server's port: %w", err)
	}
	c.outside = outside.Addr()
	inside, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", insidePort))
	if err != nil {
		return nil, fmt.Errorf("opening the API server's port: %w", err)
	}
	pods := &podMetadata{}
	c.meter.read = func(ctx context.Context) ([]containerUsage, error) { return usageOf(ctx, c.runtime, c.held) }
	server := &apiServer{
		etcd: etcd, pki: c.pki, listener: newJointListener(inside, outside),
		advertise: nodeAddress.AsSlice(), services: serviceRange.String(), auditLog: c.options.AuditLog,
		install: []installAPI{metricsAPI(c.meter, pods.of)},
	}
	api, err := server.start(ctx)
	if err != nil {
		return nil, err
	}
	if err := api.awaitAnswers(ctx); err != nil {
		return nil, err
	}
	return api, pods.watch(ctx, api.admin, onShorterGracePeriod(c.shortenGracePeriod))
}
