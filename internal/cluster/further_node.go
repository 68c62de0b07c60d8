package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/trainyard/trainyard/internal/enclave"
	"github.com/trainyard/trainyard/internal/procrun"
)

// furtherNode is a node besides the first, seen from the cluster's process.
type furtherNode struct {
	spec    nodeSpec
	dataDir string
	meter   *meter
	config  nodeStart    // complete when the API server answers
	crashed func(string) // called with the node's name when it ends by itself

	stopping func([]procrun.RunningPod) // called with what its stop waits for

	mu      sync.Mutex // guards what follows; held while the node's process starts, stops or changes its state
	state   string
	started bool // the process takes commands
	process *enclave.Process
	control net.Conn
	reports *json.Decoder

	prepared chan struct{} // the process is prepared to be frozen
}

// spawn starts the node's process, which waits for how to run.
func (n *furtherNode) spawn() error {
	dir := n.spec.dir(n.dataDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the folder of node %s: %w", n.spec.Name, err)
	}
	log, err := os.OpenFile(filepath.Join(dir, nodeLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of node %s: %w", n.spec.Name, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own copy
	control, theirs, err := newControl()
	if err != nil {
		return err
	}
	defer theirs.Close() //nolint:errcheck // the process has its own copy
	process, err := enclave.Start(enclave.Config{Args: []string{nodeProcessName}, Env: os.Environ(), Files: []*os.File{theirs}, Output: log})
	if err != nil {
		_ = control.Close()
		return fmt.Errorf("starting node %s: %w", n.spec.Name, err)
	}
	n.process, n.control, n.reports = process, control, json.NewDecoder(control)
	return nil
}

// start runs the node, in the process that waits for it or in a new one, and returns when its kubelet runs.
func (n *furtherNode) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		if err := n.spawn(); err != nil {
			return err
		}
	}
	err := connectNode(n.spec, n.process.Pid())
	if err == nil {
		send(n.control, nodeCommand{Start: &n.config})
		var started nodeReport
		if err = n.reports.Decode(&started); err == nil && started.Error != "" {
			err = errors.New(started.Error)
		}
	}
	if err != nil {
		n.end()
		return fmt.Errorf("starting node %s: %w (see node.log in %s)", n.spec.Name, err, n.spec.dir(n.dataDir))
	}
	n.state, n.started = "", true
	go n.follow(n.process, n.reports)
	return nil
}

// follow takes the reports of the node's process until it ends. If nobody ended it, the node counts as killed.
func (n *furtherNode) follow(process *enclave.Process, reports *json.Decoder) {
	for {
		var r nodeReport
		if err := reports.Decode(&r); err != nil {
			break
		}
		switch {
		case r.Error != "":
			klog.ErrorS(errors.New(r.Error), "A node reports an error", "node", n.spec.Name)
		case r.Prepared:
			select {
			case n.prepared <- struct{}{}:
			default: // nobody waits any more
			}
		case len(r.Stopping) > 0:
			n.stopping(r.Stopping)
		default:
			n.meter.record(n.spec.Name, r.Usage, time.Now())
		}
	}
	<-process.Done()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == process {
		klog.ErrorS(process.Err(), "A node ended by itself", "node", n.spec.Name)
		n.end()
		n.state = NodeKilled
		go n.crashed(n.spec.Name)
	}
}

// end kills the node's process and all its pods, and removes what they leave on the machine.
func (n *furtherNode) end() {
	if n.process == nil {
		return
	}
	_ = n.process.Signal(syscall.SIGKILL)
	<-n.process.Done()
	_ = n.control.Close()
	n.process, n.control, n.started = nil, nil, false
	n.meter.forget(n.spec.Name)
	procrun.Sweep(n.spec.cgroup(n.dataDir))
}

// stop ends the node in order: its containers get SIGTERM and their grace period.
func (n *furtherNode) stop(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return
	}
	_ = n.process.Signal(syscall.SIGTERM)
	_ = n.process.Signal(syscall.SIGCONT) // a frozen one
	select {
	case <-n.process.Done():
	case <-ctx.Done():
	}
	n.end()
}

// shortenGracePeriod passes on that a pod is to end sooner. A frozen node learns of it when it is restored.
func (n *furtherNode) shortenGracePeriod(pod string, grace time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.command(nodeCommand{ShortenGracePeriod: &shorterGracePeriod{pod, grace}})
}

func (n *furtherNode) command(c nodeCommand) {
	if n.started {
		_ = n.control.SetWriteDeadline(time.Now().Add(time.Second))
		send(n.control, c)
	}
}

// freeze stops the node's process. Its containers can write about 1 MB each before they wait for it.
func (n *furtherNode) freeze() error {
	select {
	case <-n.prepared: // for a request before, which was given up
	default:
	}
	n.command(nodeCommand{PrepareFreeze: true})
	select {
	case <-n.prepared:
	case <-n.process.Done():
	case <-time.After(5 * time.Second):
		return errors.New("it does not answer")
	}
	return n.process.Signal(syscall.SIGSTOP)
}
