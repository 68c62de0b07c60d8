//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/definition"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/text"
	"github.com/trainyard/trainyard/internal/yard"
)

// cluster is the cluster where the job will run. release is called when the run ends.
func (r *running) cluster(ctx context.Context) (_ *rest.Config, release func(*follower), _ error) {
	if err := r.checkFlags(); err != nil {
		return nil, nil, err
	}
	if r.named() {
		config, err := r.config()
		return config, func(*follower) {}, err
	}
	if r.namespace == "" {
		r.namespace = metav1.NamespaceDefault
	}
	r.local, r.defaultNamespace = true, metav1.NamespaceDefault
	if err := r.chooseDir(); err != nil {
		return nil, nil, err
	}
	defer r.screen.clearLive()
	r.began = time.Now()
	c, err := r.start(ctx)
	if errors.Is(err, cluster.ErrRunning) {
		guest, visitErr := cluster.Visit(ctx, r.dir)
		if visitErr != nil {
			return nil, nil, startError(visitErr)
		}
		if c, err = r.start(ctx); errors.Is(err, cluster.ErrRunning) {
			r.clusterDone, r.clusterErr = guest.Done(), errClusterStopped
			r.screen.setLive("Joining the local cluster, which another process has started …")
			config, err := join(ctx, r.dir)
			return config, func(*follower) { guest.Leave() }, startError(err)
		}
		guest.Leave() // the other cluster has just ended, and this run has started its own
	}
	if err != nil {
		return nil, nil, startError(err)
	}
	r.own, r.clusterDone, r.clusterErr = true, c.Done(), errClusterEnded
	r.screen.clearLive()
	if r.output != "json" {
		r.screen.say("The local cluster is ready (%.1f s).", time.Since(r.began).Seconds())
	}
	for _, note := range c.Notes() {
		r.screen.say("%s%s", notePrefix, note)
	}
	return c.RESTConfig(), func(f *follower) { r.stopCluster(c, f) }, nil
}

// chooseDir sets the data directory. If KUBECONFIG or ~/.kube/config names another cluster, commands without flags use that one, at the
// latest when the local cluster has stopped. So hints name the directory.
func (r *running) chooseDir() (err error) {
	if r.dir = r.dataDir; r.dir != "" {
		return nil
	}
	if r.dir, err = defaultDataDir(); err != nil {
		return err
	}
	local, named := filepath.Join(r.dir, "kubeconfig"), configured()
	another, env := namesAnother(named, local), os.Getenv("KUBECONFIG")
	if another || env != "" && env != local {
		r.dataDir = r.dir
	}
	if another && env != "" && r.output != "json" {
		r.screen.say("The job runs on the local cluster. --context %s selects the cluster of KUBECONFIG.", named.CurrentContext)
	}
	return nil
}

func (r *running) start(ctx context.Context) (*cluster.Cluster, error) {
	return cluster.Start(ctx, cluster.Options{
		DataDir: r.dir, Progress: func(step string) { r.screen.setLive("Starting the local cluster: " + step + " …") },
		Waiting: func(pods []string, gracePeriod time.Duration) { r.screen.say("» %s", waitingText(pods, gracePeriod)) },
	})
}

// startError says what to do if the local cluster does not start.
func startError(err error) error {
	var path *fs.PathError
	switch {
	case errors.Is(err, context.Canceled):
		return outcome(exitInterrupted)
	case errors.As(err, &path) && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EROFS)):
		return usageError{fmt.Errorf("%w; name another directory with --data-dir", err)}
	}
	return err
}

// reportUnfinished lists jobs of an earlier run that had not ended when its cluster stopped.
func (r *running) reportUnfinished(ctx context.Context, y *yard.Yard) {
	if !r.own || r.output == "json" {
		return
	}
	jobs, err := y.Jobs(ctx, "")
	if err != nil {
		return // submitting fails in the same way, and reports it
	}
	for _, j := range jobs {
		if !j.Status.Finished() && !j.Job.Deleting && j.Object.GetCreationTimestamp().Time.Before(r.began.Truncate(time.Second)) {
			r.screen.say("» %s had not ended when the local cluster stopped: %s says how it goes on, %s deletes it.", j.Job.Name, hint(y, j, "why"), hint(y, j, "delete"))
		}
	}
}

// reportUnusedGPUs says that a command trains on the CPU although the machine has GPUs: a container sees only those that it asks for.
func (r *running) reportUnusedGPUs(ctx context.Context, y *yard.Yard) {
	says := func(pair string) bool { return strings.HasPrefix(pair, "CUDA_VISIBLE_DEVICES=") }
	if r.screen == nil || r.file != "" || r.gpus > 0 || slices.ContainsFunc(r.env, says) {
		return
	}
	var nodes corev1.NodeList
	if y.List(ctx, &nodes) != nil {
		return // submitting fails in the same way, and reports it
	}
	var gpus int64
	for _, n := range nodes.Items {
		count := n.Status.Capacity["nvidia.com/gpu"]
		gpus += count.Value()
	}
	if gpus > 0 {
		r.screen.say("%sthis machine has %s, and the job asks for none, so it trains on the CPU. --gpus 1 gives each replica one.", notePrefix, text.Count(int(gpus), "GPU", "GPUs"))
	}
}

// stopCluster stops the cluster that was started for this run, when no other run uses it or it must end now.
func (r *running) stopCluster(c *cluster.Cluster, f *follower) {
	if !f.clusterEnded() && !f.endsNow {
		r.awaitGuests(c, f.signals)
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	if f.killed {
		end() // the stop then kills it
	}
	if err := stopCluster(ctx, c, f.signals); err != nil && !errors.Is(err, context.Canceled) {
		r.screen.say("trainyard: %v", err)
	}
	if f.job != nil && f.job.Status.Is(job.Failed) && !f.json {
		r.screen.say("\n%s says more, and %s shows its log again.", hint(f.yard, f.job, "why"), hint(f.yard, f.job, "logs"))
	}
}

// awaitGuests returns when no other run uses the cluster, or Ctrl-C was pressed twice.
func (r *running) awaitGuests(c *cluster.Cluster, signals <-chan os.Signal) {
	waiting, cancel := context.WithCancel(context.Background())
	defer cancel()
	_ = c.AwaitGuests(waiting, func() {
		for len(signals) > 0 {
			if endsNow(<-signals) { // all others were meant for the job
				cancel()
				return
			}
		}
		r.screen.say("» the local cluster stays while another run uses it; Ctrl-C twice ends both.")
		go func() {
			defer cancel()
			for _, warning := range []string{"» another run still trains on this cluster; Ctrl-C again ends it, too.", ""} {
				select {
				case s := <-signals:
					if isHangup(s) || endsNow(s) {
						return // nobody is left to ask
					}
					if warning != "" {
						r.screen.say("%s", warning)
					}
				case <-c.Done():
					return
				case <-waiting.Done():
					return
				}
			}
		}()
	})
}

// join waits until the local cluster of another process is ready.
func join(ctx context.Context, dataDir string) (*rest.Config, error) {
	var config *rest.Config
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if config, last = currentAccess(dataDir); errors.Is(last, errNoOperator) {
			return false, last
		} else if last != nil {
			return false, nil
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second) // the file may have been replaced
		defer cancel()
		last = definition.Await(ctx, config)
		return last == nil, nil
	})
	switch {
	case err == nil:
		return config, nil
	case errors.Is(last, errNoOperator):
		return nil, last
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("joining the local cluster that another process has started: it is not ready after a minute: %w", last)
}

// errNoOperator says that the local cluster runs no operator.
var errNoOperator = errors.New("the local cluster runs without the operator: stop it, and `trainyard up` starts it with one")

// errStarting says that the kubeconfig of a data directory is not the running cluster's.
var errStarting = errors.New("it is still starting")

// currentAccess is the access to the cluster that runs in a data directory. The kubeconfig of an earlier start is older than the lock.
func currentAccess(dataDir string) (*rest.Config, error) {
	file := filepath.Join(dataDir, "kubeconfig")
	written, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	locked, err := os.Stat(filepath.Join(dataDir, "lock"))
	if err != nil {
		return nil, err
	}
	if written.ModTime().Before(locked.ModTime()) {
		return nil, errStarting
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, err
	}
	for _, c := range config.Clusters {
		if _, without := c.Extensions[withoutOperator]; without {
			return nil, errNoOperator
		}
	}
	return clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
}

// defaultDataDir is the local cluster's directory, unless --data-dir names another. Where machines share a home directory, each has its
// own.
func defaultDataDir() (string, error) {
	if dir := os.Getenv("TRAINYARD_DATA_DIR"); dir != "" {
		return dir, nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return cluster.DirOfThisHost(filepath.Join(dir, "trainyard")), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usageError{fmt.Errorf("finding the local cluster's directory: %w; name one with --data-dir", err)}
	}
	return cluster.DirOfThisHost(filepath.Join(home, ".local", "share", "trainyard")), nil
}
