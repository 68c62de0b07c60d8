package archive

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/recorder"
)

const (
	// lastUpload is how long the recorder uploads when it is stopped. Kubernetes gives a pod 30 s.
	lastUpload = 20 * time.Second
	// startRetry is how long it waits when the object store does not answer at first.
	startRetry = 5 * time.Second
	// namespaceTimeout limits the request for the UID of a namespace.
	namespaceTimeout = 5 * time.Second
)

// options are the flags of the recorder.
type options struct {
	place
	limits         record.Limits
	namespace      string
	streams        int
	metricsAddress string
	probeAddress   string
	leaderElect    bool
	leaseNamespace string
}

func (o *options) register(flags *flag.FlagSet) {
	config.RegisterFlags(flags)
	o.place.register(flags)
	o.limits = record.DefaultLimits
	flags.StringVar(&o.namespace, "namespace", "", "The namespace whose jobs are recorded; empty for all.")
	flags.IntVar(&o.streams, "max-log-streams", recorder.DefaultStreams, "How many logs are followed at once. The others are read every 15 s.")
	flags.DurationVar(&o.limits.Age, "keep", o.limits.Age, "How long a job is kept after its end.")
	flags.Var(bytesFlag{&o.limits.Size}, "max-size", "How much all records may take. Then the jobs that ended first are removed.")
	flags.Var(bytesFlag{&o.limits.Log}, "max-log-size", "How much of the log of one run of a container is kept: half from its beginning, half from its end.")
	flags.Var(bytesFlag{&o.limits.Held}, "max-held", "How much of the logs waits on disk while the bucket does not answer.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "0", "The address of the metrics server; 0 disables it.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "The address of the health probes; 0 disables them.")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "Record only while holding the lease trainyard-recorder: two recorders must not write to one store.")
	flags.StringVar(&o.leaseNamespace, "leader-election-namespace", "", "The namespace of that lease; empty for the recorder's own.")
}

// recordJobs records until it is told to stop.
func recordJobs(args []string) error {
	var o options
	flags := flag.NewFlagSet("trainyard-recorder", flag.ExitOnError)
	o.register(flags)
	_ = flags.Parse(args) // it exits
	if flags.NArg() > 0 {
		return fmt.Errorf("%s is not a flag: use --help", strings.Join(flags.Args(), " "))
	}
	store, err := o.open()
	if err != nil {
		return err
	}
	store.Limits = o.limits
	mgr, err := o.manager()
	if err != nil {
		return err
	}
	s := &session{options: o, store: store, mgr: mgr}
	if s.core, err = kubernetes.NewForConfig(mgr.GetConfig()); err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", s.check), mgr.Add(s)); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// manager has the caches of jobs, pods and events.
func (o options) manager() (ctrl.Manager, error) {
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	cluster.QPS, cluster.UserAgent = -1, "trainyard-recorder"
	controller.Quiet(cluster)
	scheme, err := controller.Scheme()
	if err != nil {
		return nil, err
	}
	caches, err := controller.Cache(o.namespace)
	if err != nil {
		return nil, err
	}
	caches.ByObject[&corev1.Event{}] = cache.ByObject{Transform: slimEvent}
	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme: scheme, Cache: caches, Metrics: metricsserver.Options{BindAddress: o.metricsAddress}, HealthProbeBindAddress: o.probeAddress,
		LeaderElection: o.leaderElect, LeaderElectionID: "trainyard-recorder", LeaderElectionNamespace: o.leaseNamespace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("starting the recorder: %w", err)
	}
	return mgr, nil
}

// slimEvent leaves only the identity of events that are not about jobs: most of a cluster's are not.
func slimEvent(obj any) (any, error) {
	e, ok := obj.(*corev1.Event)
	if !ok {
		return obj, nil
	}
	e.ManagedFields = nil
	kind := e.InvolvedObject.Kind
	if kind == "Pod" || kind == "HorizontalPodAutoscaler" {
		return e, nil
	}
	for _, k := range kinds.All {
		if k.Name() == kind {
			return e, nil
		}
	}
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: e.Name, Namespace: e.Namespace, UID: e.UID, ResourceVersion: e.ResourceVersion}}, nil
}

// session records while this process may.
type session struct {
	options
	store *record.Store
	mgr   ctrl.Manager
	core  kubernetes.Interface
	ready atomic.Bool
}

// check answers /readyz: the recorder has found where to continue.
func (s *session) check(*http.Request) error {
	if !s.ready.Load() {
		return errors.New("the recorder does not record yet")
	}
	return nil
}

// Start records until ctx ends. What was read by then is uploaded.
func (s *session) Start(ctx context.Context) error {
	for {
		err := s.store.Fetch(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		klog.ErrorS(err, "The object store does not answer. Nothing is recorded until it does")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(startRetry):
		}
	}
	r, err := recorder.New(s.store, recorder.Sources{Pods: s.core.CoreV1(), Streams: s.streams, NamespaceUID: s.namespaceUID})
	if err != nil {
		return err
	}
	if err := errors.Join(r.Watch(ctx, s.mgr.GetCache()), metrics.Registry.Register(r)); err != nil {
		return fmt.Errorf("starting to record jobs: %w", err)
	}
	uploaded := make(chan struct{})
	go func() {
		defer close(uploaded)
		s.store.KeepUploading(ctx, reporter("Uploading of records fails and is retried", "Uploading of records works again"))
	}()
	s.ready.Store(true)
	err = r.Start(ctx)
	r.Drain()
	<-uploaded
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastUpload)
	defer cancel()
	return errors.Join(err, s.store.UploadAll(limited, time.Now()))
}

// reporter logs an error once, until there is none.
func reporter(fails, works string) func(error) {
	failing := false
	return func(err error) {
		switch {
		case err != nil && !failing:
			klog.ErrorS(err, fails)
		case err == nil && failing:
			klog.InfoS(works)
		}
		failing = err != nil
	}
}

// namespaceUID asks for the UID of a namespace, once for each job.
func (s *session) namespaceUID(name string) types.UID {
	ctx, cancel := context.WithTimeout(context.Background(), namespaceTimeout)
	defer cancel()
	namespace, err := s.core.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		klog.ErrorS(err, "The namespace of a job is not known, so only those who may read all namespaces see its record", "namespace", name)
		return ""
	}
	return namespace.UID
}
