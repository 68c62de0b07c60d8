package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/kinds/pytorch"
	"github.com/trainyard/trainyard/internal/operator"
	"github.com/trainyard/trainyard/internal/yard"
)

// running is `trainyard run`: from a script to a finished job in one command.
type running struct {
	target
	recipe
	file, dataDir, output string
	dryRun                bool
	screen                *screen
	// began is when this run began to start a cluster, died is closed when that has ended; nil for one that was joined.
	began time.Time
	died  <-chan struct{}
}

func runCommand() *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use:   "run [-f job.yaml | flags -- command …]",
		Short: "Run a training job and follow it to its end",
		Long: `Run a training job and follow it to its end: all replicas' logs, restarts and their cause, and a summary.

It runs on the local cluster of this machine, which is started for the run where it is not up, or on the cluster
that --context or --kubeconfig name. The exit code is the job's: 0 succeeded, 1 failed, 124 deadline passed; 2 is
wrong usage. Ctrl-C once stops the job gracefully (exit code 130), twice at once.`,
		Example: `  trainyard run -- python train.py --epochs 3
  trainyard run --nodes 2 --retries 3 --deadline 2h -- python train.py
  trainyard run --nodes 1:4 -- torchrun train.py
  trainyard run -f job.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args) },
	}
	addFile(cmd, &r.file)
	addCluster(cmd, &r.target, "the kubeconfig of another cluster (default: the local cluster)")
	addNamespace(cmd, &r.target)
	flags := cmd.Flags()
	flags.AddFlagSet(r.flags())
	flags.StringVar(&r.dataDir, "data-dir", "", "the local cluster's directory (default ~/.local/share/trainyard)")
	flags.StringVarP(&r.output, "output", "o", "text", "text, or json: a line for each thing that happens")
	flags.BoolVar(&r.dryRun, "dry-run", false, "print the manifest and do nothing")
	return cmd
}

func (r *running) run(cmd *cobra.Command, command []string) error {
	if err := choice("output", r.output, "text", "json"); err != nil {
		return err
	}
	objects, kind, err := r.objects(cmd, command)
	if err != nil {
		return err
	}
	if r.dryRun {
		return printAll(cmd, objects)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	r.screen = newScreen(cmd.OutOrStdout(), cmd.ErrOrStderr())

	starting, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	go func() {
		select {
		case s := <-signals:
			cancel()
			signals <- s // it is the job's too, if there is one by now
		case <-starting.Done():
		}
	}()
	config, leave, err := r.cluster(starting)
	if err != nil {
		return err
	}
	f := &follower{screen: r.screen, json: r.output == "json", signals: signals, stop: true, died: r.died}
	defer func() { leave(f) }()
	y, err := yard.Open(config, r.namespace)
	if err != nil {
		return r.explain(err)
	}
	r.greet(starting, y)
	job, err := r.submit(starting, y, kind, objects)
	if starting.Err() != nil {
		return outcome(exitInterrupted)
	}
	if err != nil {
		return r.explain(err)
	}
	cancel() // from here on signals are the follower's
	f.yard = y
	return f.follow(context.WithoutCancel(cmd.Context()), job)
}

// objects are what is to be submitted, the job last, and the job's kind.
func (r *running) objects(cmd *cobra.Command, command []string) ([]*unstructured.Unstructured, kinds.Kind, error) {
	switch {
	case r.file == "" && len(command) == 0:
		return nil, nil, usageError{errors.New("nothing to run: use `trainyard run -- python train.py` or `trainyard run -f job.yaml`")}
	case r.file != "" && len(command) > 0:
		return nil, nil, usageError{errors.New("a manifest and a command are two jobs: leave out -f or the command")}
	case r.file == "" && r.named() && r.image == "":
		return nil, nil, usageError{errors.New("a cluster needs an image to run the command in: name one with --image")}
	case r.file == "":
		job, err := r.job(command)
		if err != nil {
			return nil, nil, err
		}
		return []*unstructured.Unstructured{job}, pytorch.Kind{}, acceptable(cmd.Context(), job)
	}
	if flag := r.given(cmd); flag != "" {
		return nil, nil, usageError{fmt.Errorf("--%s is for a command: with -f the manifest says it", flag)}
	}
	return objectsOf(cmd, r.file)
}

// objectsOf are the objects of a file with one job in it, the job last.
func objectsOf(cmd *cobra.Command, file string) ([]*unstructured.Unstructured, kinds.Kind, error) {
	docs, err := readFile(cmd, file)
	if err != nil {
		return nil, nil, err
	}
	job, err := onlyJob(cmd, file, docs)
	if err != nil {
		return nil, nil, err
	}
	var objects []*unstructured.Unstructured
	for _, doc := range docs {
		if doc != job.Document {
			objects = append(objects, doc.Object)
		}
	}
	return append(objects, job.Object), job.kind, nil
}

func printAll(cmd *cobra.Command, objects []*unstructured.Unstructured) error {
	out := &printer{Writer: cmd.OutOrStdout()}
	var all []runtime.Object
	for _, obj := range objects {
		all = append(all, obj)
	}
	if err := printObjects(out, all, "yaml"); err != nil {
		return err
	}
	return out.err
}

// cluster is where the job will run, and how to leave it.
func (r *running) cluster(ctx context.Context) (_ *rest.Config, leave func(*follower), _ error) {
	if r.named() {
		config, err := r.config()
		return config, func(*follower) {}, err
	}
	if r.namespace == "" {
		r.namespace = metav1.NamespaceDefault
	}
	r.local = true
	if r.dataDir == "" {
		var err error
		if r.dataDir, err = defaultDataDir(); err != nil {
			return nil, nil, err
		}
	}
	defer r.screen.end()
	r.began = time.Now()
	c, err := r.start(ctx)
	if errors.Is(err, cluster.ErrRunning) {
		leave, visitErr := cluster.Visit(ctx, r.dataDir)
		if visitErr != nil {
			return nil, nil, startError(visitErr)
		}
		if c, err = r.start(ctx); errors.Is(err, cluster.ErrRunning) {
			config, err := join(ctx, filepath.Join(r.dataDir, "kubeconfig"))
			return config, func(*follower) { leave() }, startError(err)
		}
		leave() // it has just been left: this run has one of its own
	}
	if err != nil {
		return nil, nil, startError(err)
	}
	r.died = c.Done()
	r.screen.end()
	if r.output != "json" {
		r.screen.say("The local cluster is ready (%.1f s).", time.Since(r.began).Seconds())
	}
	return c.RESTConfig(), func(f *follower) { r.leave(c, f) }, nil
}

func (r *running) start(ctx context.Context) (*cluster.Cluster, error) {
	return cluster.Start(ctx, cluster.Options{
		DataDir: r.dataDir, Progress: func(step string) { r.screen.keep("starting the local cluster: " + step + " …") },
	})
}

// startError says what to do about a local cluster that does not start.
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

// greet tells of jobs that go on where the cluster of this run is one that ended before they did.
func (r *running) greet(ctx context.Context, y *yard.Yard) {
	if r.died == nil || r.output == "json" {
		return
	}
	jobs, err := y.Jobs(ctx, "")
	if err != nil {
		return // the job that follows meets the same trouble, and tells it
	}
	for _, j := range jobs {
		if !j.Status.Finished() && !j.Job.Deleting && j.Object.GetCreationTimestamp().Time.Before(r.began.Truncate(time.Second)) {
			r.screen.say("» %s, which had not ended when this cluster did, goes on: `trainyard delete %[1]s` removes it.", j.Job.Name)
		}
	}
}

// leave stops the cluster that was started for this run, when no other uses it.
func (r *running) leave(c *cluster.Cluster, f *follower) {
	if !f.dead() {
		r.awaitGuests(c, f.signals)
	}
	limited, end := context.WithTimeout(context.Background(), stopLimit)
	defer end()
	if f.killed {
		end() // which kills it
	}
	if err := c.Stop(limited); err != nil && !f.killed {
		r.screen.say("trainyard: %v", err)
	}
	if f.job != nil && f.job.Status.Is(job.Failed) && !f.json {
		r.screen.say("\n`trainyard up` starts this cluster again, to look at %s.", f.job.Job.Name)
	}
}

// awaitGuests returns when no other run uses the cluster, or a person does not want to wait for that.
func (r *running) awaitGuests(c *cluster.Cluster, signals <-chan os.Signal) {
	waiting, cancel := context.WithCancel(context.Background())
	defer cancel()
	_ = c.AwaitGuests(waiting, func() {
		for len(signals) > 0 {
			<-signals // which was for the job
		}
		r.screen.say("» the local cluster stays while another run uses it; Ctrl-C stops it now.")
		go func() {
			select {
			case <-signals:
			case <-c.Done():
			case <-waiting.Done():
			}
			cancel()
		}()
	})
}

// join is access to the local cluster that another process runs, once it is ready.
func join(ctx context.Context, kubeconfig string) (*rest.Config, error) {
	var config *rest.Config
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
			return false, nil
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second) // then the file may be another
		defer cancel()
		return operator.AwaitDefinitions(ctx, config) == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("joining the local cluster that is running: %w", err)
	}
	return config, nil
}

// submit gives the objects to the cluster. A finished job of the same name makes room.
func (r *running) submit(ctx context.Context, y *yard.Yard, kind kinds.Kind, objects []*unstructured.Unstructured) (*yard.Job, error) {
	job := objects[len(objects)-1]
	if r.local {
		if err := localize(job); err != nil {
			return nil, err
		}
	}
	for _, obj := range objects {
		if namespaced, err := y.IsObjectNamespaced(obj); obj.GetNamespace() == "" && (namespaced || err != nil) {
			obj.SetNamespace(y.Namespace)
		}
	}
	y.Namespace = job.GetNamespace()
	for _, obj := range objects[:len(objects)-1] {
		if err := y.Apply(ctx, obj); err != nil {
			return nil, err
		}
	}
	submitted, err := y.Submit(ctx, kind, job.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		if err := makeRoom(ctx, y, job.GetName()); err != nil {
			return nil, err
		}
		if r.screen != nil && r.output != "json" {
			r.screen.say("» the finished job %s made room.", job.GetName())
		}
		submitted, err = y.Submit(ctx, kind, job.DeepCopy())
	}
	if err != nil && !apierrors.IsInvalid(err) {
		return nil, fmt.Errorf("submitting the job: %w", err)
	}
	return submitted, refusedJob(err)
}

// makeRoom deletes a finished job and waits until it is gone.
func makeRoom(ctx context.Context, y *yard.Yard, name string) error {
	old, err := y.Find(ctx, name)
	if errors.Is(err, yard.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !old.Status.Finished() {
		return fmt.Errorf("job %s exists and is not finished: follow it with `trainyard logs -f %[1]s`, or delete it with `trainyard delete %[1]s`", name)
	}
	uid := old.Job.UID
	if err := y.Delete(ctx, old.Object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the finished job %s: %w", name, err)
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := y.Find(ctx, name)
		return errors.Is(err, yard.ErrNotFound), nil
	})
}

// refusedJob is the API server's word on a manifest it does not accept, which is the person's mistake.
func refusedJob(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}
