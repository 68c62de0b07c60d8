package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trainyard/trainyard/api/crds"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/localoperator"
	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	if os.Getenv("TRAINYARD_TEST_LOG") != "" {
		ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	}
	if os.Args[0] == operatorName {
		os.Exit(operateUntilDeath(os.Args[1], os.Args[2]))
	}
	local.Main(m)
}

// world is a namespace in which an operator runs jobs.
type world struct {
	*local.World
	t       *testing.T
	client  client.Client
	numbers *prometheus.Registry
	stop    func()
}

// newWorld is a namespace with an operator in this process.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := withoutOperator(t)
	w.operate()
	return w
}

// withoutOperator is a namespace in which no operator runs yet.
func withoutOperator(t *testing.T) *world {
	t.Helper()
	return worldOn(t, local.Shared(t))
}

// worldOn is a namespace of a cluster in which no operator runs yet.
func worldOn(t *testing.T, c *cluster.Cluster) *world {
	t.Helper()
	w := &world{World: local.On(t, c), t: t, stop: func() {}}
	scheme, err := controller.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w.install(scheme)
	if w.client, err = client.New(w.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.stop() })
	return w
}

// row runs one row of a table in the same namespace, at the same time as the others.
func (w *world) row(sentence string, f func(w *world)) {
	w.t.Run(sentence, func(t *testing.T) {
		t.Parallel()
		inner, base := *w, *w.World
		base.TB = t
		inner.World, inner.t = &base, t
		f(&inner)
	})
}

// install makes the kinds known. A client made before would not know them.
func (w *world) install(scheme *runtime.Scheme) {
	w.Helper()
	installer, err := client.New(w.Config, client.Options{Scheme: scheme})
	if err != nil {
		w.Fatal(err)
	}
	all, err := crds.All()
	if err != nil {
		w.Fatal(err)
	}
	for _, crd := range all {
		if err := installer.Create(context.Background(), crd); client.IgnoreAlreadyExists(err) != nil {
			w.Fatal(err)
		}
		w.Eventually(crd.Name+" is served", func() error {
			served, err := w.Client.Discovery().ServerResourcesForGroupVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
			if err == nil && !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == crd.Spec.Names.Plural }) {
				err = fmt.Errorf("only %v are", served.APIResources)
			}
			return err
		})
		jobs := &unstructured.UnstructuredList{}
		jobs.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.ListKind})
		fromCache := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}} // a watch goes back to when the cache began
		if err := installer.List(context.Background(), jobs, fromCache, client.InNamespace(w.Namespace)); err != nil {
			w.Fatal(err)
		}
	}
}

// operate starts an operator for the namespace in this process, with the rights of an installation. Stopping it is as sudden as can be from within.
func (w *world) operate(changes ...func(*ctrl.Options)) ctrl.Manager {
	w.Helper()
	w.numbers = prometheus.NewRegistry()
	mgr, err := newOperator(w.asInstalled(), w.Namespace, w.numbers, changes...)
	if err != nil {
		w.Fatal(err)
	}
	w.start(mgr)
	return mgr
}

// operateWith starts an operator with other options.
func (w *world) operateWith(change func(*controller.Options)) {
	w.Helper()
	w.numbers = prometheus.NewRegistry()
	mgr, err := newOperatorWith(w.asInstalled(), w.Namespace, w.numbers, change)
	if err != nil {
		w.Fatal(err)
	}
	w.start(mgr)
}

// start runs the manager until the world stops.
func (w *world) start(mgr ctrl.Manager) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.Errorf("the operator ended with %v", err)
		}
	}
}

// newOperator is an operator for the jobs of one namespace.
func newOperator(cfg *rest.Config, namespace string, numbers prometheus.Registerer, changes ...func(*ctrl.Options)) (ctrl.Manager, error) {
	return newOperatorWith(cfg, namespace, numbers, func(*controller.Options) {}, changes...)
}

// newOperatorWith is an operator with other options of the controller.
func newOperatorWith(
	cfg *rest.Config, namespace string, numbers prometheus.Registerer, change func(*controller.Options), changes ...func(*ctrl.Options),
) (ctrl.Manager, error) {
	scheme, err := controller.Scheme()
	if err != nil {
		return nil, err
	}
	caches, err := controller.Cache(namespace)
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.UserAgent = -1, operatorOf(namespace)
	yes := true
	options := ctrl.Options{
		Scheme: scheme, Cache: caches, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &yes},
	}
	for _, change := range changes {
		change(&options)
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, err
	}
	setup := controller.Options{Workers: 4, Metrics: numbers, Namespace: namespace, Agent: localoperator.Agent}
	change(&setup)
	return mgr, controller.Setup(mgr, setup)
}

// operatorOf is the user agent of a namespace's operator.
func operatorOf(namespace string) string { return "operator-of-" + namespace }
