// Package cluster is a whole Kubernetes in one process: etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
// kubelet, DNS and metrics, all of them the real ones, with pods that run as processes of this machine.
//
// Start runs it in an enclave (see package enclave): the calling process stays outside and holds three things for it, the
// port on 127.0.0.1 where the API server answers, the uplink through which pods reach the machine's network, and the lock
// of the data directory. The program's main function must call Main first: it is how the copy of the program that Start
// runs in the enclave becomes the cluster.
//
// StartAPI runs etcd and the API server alone, in the calling process: enough for tests of controllers.
//
// The package knows nothing of training jobs; what else should run in the cluster's process is handed to Main as an Addon.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/enclave"
	"github.com/trainyard/trainyard/internal/procrun"
)

// Options say where and how a local cluster runs. The zero value of each is its default.
type Options struct {
	DataDir    string              // where everything is kept; required
	Kubeconfig string              // file to write for clients; default "kubeconfig" in DataDir
	WorkDir    string              // working directory of containers that name none; default the caller's
	Env        []string            // what containers inherit of the caller's environment; default Inherited(os.Environ())
	Without    []string            // names of addons not to run
	AuditLog   string              // file that gets one line for each request to the API server; default none
	Nodes      int                 // how many nodes it has; default 1
	NodeLabels map[string][]string // labels of the nodes by key; the values go to the nodes in turn
	GraceLimit time.Duration       // limits the grace period of running pods when the cluster stops; default none
	Progress   func(step string)   `json:"-"` // called with what is being started
	// Waiting is called when a stop has to wait: with the pods that still run, and the longest of their grace periods.
	Waiting func(pods []string, gracePeriod time.Duration) `json:"-"`
}

// Cluster is a running local cluster, seen from outside.
type Cluster struct {
	process    *enclave.Process
	kubeconfig string
	config     *rest.Config
	notes      []string
	guests     *os.File
	release    func()
	waiting    func(pods []string, gracePeriod time.Duration)
	stopping   chan []procrun.RunningPod // from the cluster's process, and from each further node by it
}

// Start starts a cluster, or continues the one whose data directory it is, and returns when pods can be created and will run.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	if err := procrun.CheckKernel(); err != nil {
		return nil, err
	}
	home, err := openHome(options.DataDir)
	if err != nil {
		return nil, err
	}
	c, err := start(ctx, options, home)
	if err != nil {
		home.close()
		return nil, err
	}
	return c, nil
}

func start(ctx context.Context, options Options, home *home) (*Cluster, error) {
	process, control, uplink, err := runEnclave(home)
	if err != nil {
		return nil, err
	}
	serving, stopServing := context.WithCancel(context.Background())
	go serveUplink(serving, uplink) //nolint:errcheck // ends with the enclave; pods then have no network because they are gone
	c := &Cluster{process: process, kubeconfig: options.Kubeconfig, guests: home.guests, waiting: options.Waiting, release: sync.OnceFunc(func() {
		stopServing()
		_ = control.Close()
		sweepCgroups(options.DataDir) // where it was killed
		home.close()
	})}
	c.stopping = make(chan []procrun.RunningPod, options.Nodes)
	messages := json.NewDecoder(control)
	if err := c.await(ctx, control, messages, options); err != nil {
		c.kill()
		return nil, fmt.Errorf("%w (see %s)", err, home.log.Name())
	}
	go c.receive(messages)
	go freeMemoryWhenIdle(serving)
	return c, nil
}

// receive takes what a running cluster reports, until it ends.
func (c *Cluster) receive(messages *json.Decoder) {
	for {
		var m message
		if messages.Decode(&m) != nil {
			return
		}
		if len(m.Stopping) > 0 {
			c.stopping <- m.Stopping
		}
	}
}

// runEnclave starts the cluster's process and returns our ends of its sockets. Theirs are closed here by then, so that ours
// report when the enclave is gone.
func runEnclave(home *home) (process *enclave.Process, control, uplink net.Conn, err error) {
	uplink, theirUplink, err := newUplink()
	if err != nil {
		return nil, nil, nil, err
	}
	defer theirUplink.Close() //nolint:errcheck // the enclave has its own copy
	control, theirControl, err := newControl()
	if err != nil {
		_ = uplink.Close()
		return nil, nil, nil, err
	}
	defer theirControl.Close() //nolint:errcheck // the enclave has its own copy
	ours := []net.Conn{uplink, control}
	defer func() {
		if err != nil {
			for _, conn := range ours {
				_ = conn.Close()
			}
		}
	}()
	port, err := home.listener.(*net.TCPListener).File()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("handing over the API server's port: %w", err)
	}
	defer port.Close() //nolint:errcheck // the enclave has its own copy
	process, err = enclave.Start(enclave.Config{
		Args:   []string{processName},
		Env:    withoutProxies(os.Environ()),
		Files:  []*os.File{theirControl, port, theirUplink, home.lock},
		Output: home.log,
	})
	return process, control, uplink, err
}

// await sends the options to the enclave and reads its messages until it is ready.
func (c *Cluster) await(ctx context.Context, control net.Conn, messages *json.Decoder, options Options) error {
	stop := context.AfterFunc(ctx, func() { _ = control.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := json.NewEncoder(control).Encode(options); err != nil {
		return fmt.Errorf("starting the local cluster: %w", err)
	}
	for {
		var m message
		switch err := messages.Decode(&m); {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return errors.New("the local cluster ended while it started")
		case err != nil:
			return fmt.Errorf("starting the local cluster: %w", err)
		case m.Error != "":
			return errors.New(m.Error)
		case m.Step != "" && options.Progress != nil:
			options.Progress(m.Step)
		case len(m.Kubeconfig) > 0:
			c.notes = m.Notes
			return c.accept(m.Kubeconfig)
		}
	}
}

// accept takes the cluster's kubeconfig and leaves it where clients look for it.
func (c *Cluster) accept(kubeconfig []byte) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	config.QPS = -1 // the API server limits its load itself
	c.config = config
	return writeFile(c.kubeconfig, kubeconfig)
}

// Kubeconfig is the file that clients use.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// RESTConfig is an administrator's access to the API server.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Notes are sentences on what this machine does not let the cluster do.
func (c *Cluster) Notes() []string { return c.notes }

// Pid is the process that is the cluster.
func (c *Cluster) Pid() int { return c.process.Pid() }

// Done is closed when the cluster has ended, by Stop or by itself.
func (c *Cluster) Done() <-chan struct{} { return c.process.Done() }

// stopLimit is how long a stop may take besides the grace periods of pods. Then everything is killed.
const stopLimit = 30 * time.Second

// Stop ends the cluster in order: containers get SIGTERM and their grace period, the store is closed. When ctx ends first, all is
// killed.
func (c *Cluster) Stop(ctx context.Context) error {
	defer c.release()
	if err := c.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping the local cluster: %w", err)
	}
	var pods []string
	var longest time.Duration
	for limit := time.NewTimer(stopLimit); ; {
		select {
		case <-c.process.Done():
			return c.process.Err()
		case running := <-c.stopping:
			for _, p := range running {
				pods, longest = append(pods, p.Name), max(longest, p.GracePeriod)
			}
			limit.Reset(stopLimit + longest)
			if c.waiting != nil {
				c.waiting(pods, longest)
			}
		case <-limit.C:
			c.kill()
			return errors.New("the local cluster did not stop and was killed")
		case <-ctx.Done():
			c.kill()
			return fmt.Errorf("stopping the local cluster: %w", ctx.Err())
		}
	}
}

func (c *Cluster) kill() {
	_ = c.process.Signal(syscall.SIGKILL)
	<-c.process.Done()
	c.release()
}

func (o Options) complete() (Options, error) {
	if o.DataDir == "" {
		return o, errors.New("a local cluster needs a data directory")
	}
	var err error
	if o.DataDir, err = filepath.Abs(o.DataDir); err != nil {
		return o, err
	}
	if o.WorkDir == "" {
		if o.WorkDir, err = os.Getwd(); err != nil {
			return o, fmt.Errorf("finding the working directory: %w", err)
		}
	}
	if o.Kubeconfig == "" {
		o.Kubeconfig = filepath.Join(o.DataDir, "kubeconfig")
	}
	if o.Env == nil {
		o.Env = Inherited(os.Environ())
	}
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	if o.Nodes < 1 || o.Nodes > MaxNodes {
		return o, fmt.Errorf("a local cluster has 1 to %d nodes, not %d", MaxNodes, o.Nodes)
	}
	if err := checkNodeLabels(o.NodeLabels); err != nil {
		return o, err
	}
	return o, nil
}
