package controller

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trainyard/trainyard/api/crds"
	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	local.Main(m)
}

// world is a namespace in which an operator runs jobs.
type world struct {
	*local.World
	client  client.Client
	numbers *prometheus.Registry
	stop    func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: local.New(t)}
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if w.client, err = client.New(w.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	w.install()
	w.operate()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) install() {
	w.Helper()
	all, err := crds.All()
	if err != nil {
		w.Fatal(err)
	}
	for _, crd := range all {
		if err := w.client.Create(context.Background(), crd); client.IgnoreAlreadyExists(err) != nil {
			w.Fatal(err)
		}
		w.Eventually(crd.Name+" is served", func() error {
			return w.Client.Discovery().RESTClient().Get().AbsPath("/apis/kubeflow.org/v1/" + crd.Spec.Names.Plural).Do(context.Background()).Error()
		})
	}
}

// operate starts an operator for the namespace. Stopping it is as sudden as a process can be stopped from within.
func (w *world) operate() {
	w.Helper()
	scheme, err := Scheme()
	if err != nil {
		w.Fatal(err)
	}
	caches, err := Cache(w.Namespace)
	if err != nil {
		w.Fatal(err)
	}
	cfg := rest.CopyConfig(w.Config)
	cfg.QPS, cfg.UserAgent = -1, "operator-of-"+w.Namespace
	yes := true
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Cache: caches, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		w.Fatal(err)
	}
	w.numbers = prometheus.NewRegistry()
	if err := Setup(mgr, Options{Workers: 4, Metrics: w.numbers}); err != nil {
		w.Fatal(err)
	}
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
