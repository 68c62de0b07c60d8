package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/events"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/metrics"
)

// How long a pass that failed waits for its next try: twice as long each time, from firstRetry to maxRetry. The usual
// limit, 1000 s, would let a deadline pass by a quarter of an hour after the API server is back.
const (
	firstRetry = 5 * time.Millisecond
	maxRetry   = 15 * time.Second
)

// indexJob finds the children of a job in the caches.
const indexJob = "job"

// Scheme knows everything the controller reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kubeflowv1.AddToScheme, trainer.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

// Cache holds jobs, what they are made from, and those of their children that every cluster can have, in one namespace or in all.
func Cache(namespace string) (cache.Options, error) {
	options, err := cacheOfChildren(namespace)
	if err != nil {
		return cache.Options{}, err
	}
	children := cache.ByObject{Label: options.DefaultLabelSelector}
	options.DefaultLabelSelector = nil
	options.ByObject = map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: children.Label, Transform: slimPod}}
	for _, kind := range manifest.ChildKinds {
		if !kind.Optional && !kind.Unseen { // a cache refuses options for a kind that is not served
			options.ByObject[kind.New()] = children
		}
	}
	return options, nil
}

// cacheOfChildren holds only what carries our label, in one namespace or in all, without managed fields.
func cacheOfChildren(namespace string) (cache.Options, error) {
	ours, err := labels.NewRequirement(naming.LabelJobName, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("selecting our children: %w", err)
	}
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields(), DefaultLabelSelector: labels.NewSelector().Add(*ours)}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	return options, nil
}

// slimPod drops what the rules do not read of a pod. Environment, volumes and probes are most of a pod, and a cluster has tens of
// thousands.
func slimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	spec := corev1.PodSpec{NodeName: pod.Spec.NodeName, RestartPolicy: pod.Spec.RestartPolicy, SchedulingGroup: pod.Spec.SchedulingGroup}
	for _, c := range pod.Spec.Containers {
		spec.Containers = append(spec.Containers, corev1.Container{Name: c.Name})
	}
	for _, c := range pod.Spec.InitContainers {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy})
	}
	pod.Spec, pod.ManagedFields = spec, nil
	return pod, nil
}

// Options are what may differ between the places the controller runs in.
type Options struct {
	// Workers is how many jobs of a kind are looked at at the same time.
	Workers int
	// Metrics is where the numbers are registered.
	Metrics prometheus.Registerer
	// Kinds are the kinds of jobs to run, and Children the kinds of children they may have; all where none is named.
	Kinds    []kinds.Kind
	Children []manifest.ChildKind
	// ClusterDomain is the DNS domain of the cluster; empty for manifest.DefaultClusterDomain.
	ClusterDomain string
	// Agent is how pods of MPI jobs get their program.
	Agent manifest.Agent
	// TraceContext gives all containers their place in the trace of their job, not only those of jobs that name a span.
	TraceContext bool
	// Now is the clock, time.Now where none is given. NewQueue makes the queue of the jobs of one kind, controller-runtime's where
	// none is given. Tests that step the time by hand give both.
	Now      func() time.Time
	NewQueue func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]
	// Namespace is the one whose jobs to run; empty for all.
	Namespace string
	// GangScheduler is who places the replicas of every job together, by the name of the operator's flag. Empty lets jobs that ask
	// for it have the first scheduler whose kind of pod groups the cluster serves; None lets none.
	GangScheduler string
}

// None as GangScheduler lets no job be placed together.
const None = "none"

// Setup lets the manager run jobs of all kinds.
func Setup(mgr ctrl.Manager, options Options) error {
	if options.Kinds == nil {
		for _, kind := range kinds.All {
			options.Kinds = append(options.Kinds, kind)
		}
	}
	if options.Children == nil {
		options.Children = manifest.ChildKinds
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, indexJob, indexKey); err != nil {
		return fmt.Errorf("indexing pods: %w", err)
	}
	numbers, err := metrics.New(options.Metrics)
	if err == nil {
		err = options.Metrics.Register(states(mgr, options.Kinds, options.Now))
	}
	if err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	recorder := events.NewRecorder(mgr.GetClient())
	if err := mgr.Add(recorder); err != nil {
		return fmt.Errorf("recording events: %w", err)
	}
	children := &childKinds{mgr: mgr}
	if children.caches, err = cacheOfChildren(options.Namespace); err != nil {
		return err
	}
	children.caches.Scheme, children.caches.Mapper, children.caches.HTTPClient = mgr.GetScheme(), mgr.GetRESTMapper(), mgr.GetHTTPClient()
	for _, kind := range options.Kinds {
		r := &Reconciler{
			kind: kind, client: mgr.GetClient(), live: mgr.GetAPIReader(), metrics: numbers, now: options.Now, childKinds: children,
			recorder: recorder, clusterDomain: options.ClusterDomain, agent: options.Agent, traced: options.TraceContext, gangScheduler: options.GangScheduler,
		}
		if r.controller, err = r.setup(mgr, options); err != nil {
			return fmt.Errorf("setting up %s: %w", kind.Name(), err)
		}
		children.reconcilers = append(children.reconcilers, r)
	}
	return children.setup(context.Background(), options.Children)
}

func indexKey(obj client.Object) []string {
	return []string{obj.GetLabels()[naming.LabelOperatorName] + "/" + obj.GetLabels()[naming.LabelJobName]}
}

// setup watches the jobs of the kind and their pods. Our own writes to a job's status wake nobody.
func (r *Reconciler) setup(mgr ctrl.Manager, options Options) (crcontroller.Controller, error) {
	edited := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	b := ctrl.NewControllerManagedBy(mgr).
		Named(naming.OperatorName(r.kind.Name())).
		For(r.kind.New(), builder.WithPredicates(edited)).
		Watches(&corev1.Pod{}, r.children()).
		WithOptions(crcontroller.Options{
			MaxConcurrentReconciles: options.Workers, NewQueue: options.NewQueue,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, maxRetry),
		})
	if based, ok := r.kind.(kinds.Based); ok {
		for _, base := range based.Bases() {
			b = b.WatchesMetadata(base, handler.EnqueueRequestsFromMapFunc(r.waiting(based, mgr.GetScheme())), builder.WithPredicates(created))
		}
	}
	return b.Build(r)
}

// children wakes the job whose name a child carries, be it this job's or that of a namesake before it.
func (r *Reconciler) children() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(obj client.Object, q queue) {
		if obj.GetLabels()[naming.LabelOperatorName] == naming.OperatorName(r.kind.Name()) {
			q.Add(reconcile.Request{NamespacedName: jobOf(obj)})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { wake(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			r.memories.noteGone(jobOf(e.Object), e.Object.GetUID())
			wake(e.Object, q)
		},
	}
}

func jobOf(child client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: child.GetNamespace(), Name: child.GetLabels()[naming.LabelJobName]}
}
