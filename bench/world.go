package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainerv1 "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/definition"
)

// inFlight is how many requests the driver has under way at the same time.
const inFlight = 16

// world is an API server, and a driver's way to it.
type world struct {
	dir    string
	api    *cluster.API
	client client.WithWatch
}

func newWorld(ctx context.Context) (*world, error) {
	dir, err := os.MkdirTemp(inMemory(), "trainyard-bench-")
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir}
	if w.api, err = cluster.StartAPI(ctx, cluster.APIOptions{Dir: dir, AuditLog: w.auditLog()}); err != nil {
		return nil, err
	}
	scheme, err := controller.Scheme()
	if err != nil {
		return nil, err
	}
	if err := definition.Install(ctx, w.api.RESTConfig(), scheme); err != nil {
		return nil, err
	}
	config := w.api.RESTConfig()
	config.UserAgent = driver
	if w.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	return w, w.writeKubeconfig()
}

// inMemory is a folder in memory with room for a run, or empty: etcd waits for the disk at each write, which would hide what we measure.
func inMemory() string {
	const folder, room = "/dev/shm", 4 << 30
	var there syscall.Statfs_t
	if syscall.Statfs(folder, &there) != nil || there.Bavail*uint64(there.Bsize) < room {
		return ""
	}
	return folder
}

func (w *world) auditLog() string   { return filepath.Join(w.dir, "audit.log") }
func (w *world) kubeconfig() string { return filepath.Join(w.dir, "kubeconfig") }

func (w *world) writeKubeconfig() error {
	config := w.api.RESTConfig()
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"bench": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"bench": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"bench": {Cluster: "bench", AuthInfo: "bench"}},
		CurrentContext: "bench",
	}, w.kubeconfig())
}

func (w *world) config(agent string) *rest.Config {
	config := w.api.RESTConfig()
	config.UserAgent = agent
	return config
}

func (w *world) stop() {
	w.api.Stop()
	_ = os.RemoveAll(w.dir)
}

// contender is what runs the jobs.
type contender interface {
	name() string
	// agent is the user agent of its requests.
	agent() string
	// workload is the kind of its jobs.
	workload() workload
	// isSlow says that it runs only the first shape, and once.
	isSlow() bool
	// recovers says that it replaces pods that failed.
	recovers() bool
	// start begins to run the jobs of a namespace. What it returns ends it, and says what it used.
	start(ctx context.Context, w *world, namespace string, s shape) (stop func() usage, err error)
}

// usage is what a contender's process used.
type usage struct {
	cpu     time.Duration
	peakRSS int64 // bytes
}

// measurement is one run of one contender.
type measurement struct {
	pods, running time.Duration // from the first submit until all are there
	succeeded     time.Duration // from the end of all pods until all jobs have succeeded
	latency       latencies     // of each job, from its creation until it is Running
	recovery      latencies     // of each job, from the failure of one Worker until all its pods run again
	usage
	serverCPU time.Duration // of this process, which has the API server, etcd, the driver and the kubelets, until all jobs run
	// requests are those until all jobs run, those of their end, and those of the failures between.
	starting, ending, recovering requests
}

// measure lets a contender run the jobs of a shape in a namespace of its own: they start, a Worker of each fails, they succeed.
func (w *world) measure(ctx context.Context, c contender, s shape, round int) (m measurement, err error) {
	namespace := strings.ToLower(strings.ReplaceAll(fmt.Sprintf("%s-%d-%d-%d", c.name(), s.jobs, s.total(), round), " ", "-"))
	if err := w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return m, err
	}
	watching, end := context.WithCancel(ctx)
	defer end()
	stop, err := c.start(ctx, w, namespace, s)
	if err != nil {
		return m, err
	}
	defer func() { m.usage = stop() }()
	p, err := w.followProgress(watching, namespace, s, c.workload())
	if err != nil {
		return m, err
	}
	k, err := startKubelet(watching, w, namespace)
	if err != nil {
		return m, err
	}
	asked := func() requests { return w.settledRequests(c.agent(), namespace) }
	began, cpu := time.Now(), ownCPU()
	if err := inParallel(s.jobs, func(n int) error { return w.client.Create(ctx, c.workload().job(s, namespace, n)) }); err != nil {
		return m, err
	}
	if m.pods, err = p.allPods.after(began); err != nil {
		return m, err
	}
	if m.running, err = p.allRunning.after(began); err != nil {
		return m, err
	}
	m.serverCPU = ownCPU() - cpu
	m.latency, m.starting = p.latencies(), asked()
	if c.recovers() {
		if m.recovery, err = p.recovery(k.fail); err != nil {
			return m, err
		}
	}
	beforeEnd := asked()
	m.recovering = beforeEnd.since(m.starting)
	ended := time.Now()
	k.succeed()
	if m.succeeded, err = p.allSucceeded.after(ended); err != nil {
		return m, err
	}
	m.ending = asked().since(beforeEnd)
	return m, w.clear(ctx, namespace)
}

// ownCPU is what this process has used so far.
func ownCPU() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// clear removes what a run left behind.
func (w *world) clear(ctx context.Context, namespace string) error {
	jobSet := &unstructured.Unstructured{}
	jobSet.SetAPIVersion("jobset.x-k8s.io/v1alpha2")
	jobSet.SetKind("JobSet")
	for _, obj := range []client.Object{&kubeflowv1.PyTorchJob{}, &trainerv1.TrainJob{}, jobSet, &batchv1.Job{}, &corev1.Pod{}, &corev1.Service{}} {
		if err := w.client.DeleteAllOf(ctx, obj, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil && !meta.IsNoMatchError(err) {
			return err
		}
	}
	return nil
}

// inParallel does n things, inFlight at a time.
func inParallel(n int, do func(int) error) error {
	var group sync.WaitGroup
	next, failed := make(chan int), make(chan error, inFlight)
	for range min(n, inFlight) {
		group.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
