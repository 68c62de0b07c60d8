package proof

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/kinds"
)

// process is one life of the controller: everything it knows is lost with it.
type process struct {
	history *history
	wire    *wire
	queue   *queue
	caches  *caches
	cancel  func()
	ended   chan struct{}
}

// newProcess starts the controller. Its caches begin with what the API server had at a point of the chronicle.
func newProcess(h *history, at int) *process {
	p := &process{history: h, ended: make(chan struct{})}
	p.wire = &wire{process: p}
	made := make(chan struct{})
	caching, err := controller.Cache(h.job.Namespace)
	h.must(err)
	access := h.server.config(func(next http.RoundTripper) http.RoundTripper {
		p.wire.next = next
		return p.wire
	})
	access.ContentType = "application/json"
	access.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	yes := true
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme: h.server.scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &yes}, Cache: caching,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return h.server.mapper, nil },
		NewCache: func(_ *rest.Config, options cache.Options) (cache.Cache, error) {
			p.caches = newCaches(h.chronicle, options, at)
			return p.caches, nil
		},
	})
	h.must(err)
	h.must(controller.Setup(&manager{mgr, h}, controller.Options{
		Workers: 1, Metrics: prometheus.NewRegistry(), Kinds: []kinds.Kind{h.kind}, Now: h.now,
		NewQueue: func(_ string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			p.queue = newQueue(h.now, limiter)
			close(made)
			return p.queue
		},
	}))
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.ended)
		_ = mgr.Start(ctx)
	}()
	<-made
	p.queue.awaitStart()
	return p
}

// kill ends the process at once, whatever it is doing.
func (p *process) kill() {
	p.wire.die()
	p.wire.goOn()
	p.cancel()
	<-p.ended
}

// manager reads live objects with the history's time.
type manager struct {
	ctrl.Manager
	history *history
}

// GetAPIReader reads past the caches.
func (m *manager) GetAPIReader() client.Reader {
	return &liveReader{m.Manager.GetAPIReader(), m.history}
}

type liveReader struct {
	client.Reader
	history *history
}

// Get reads an object.
func (r *liveReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, obj, opts...)
	if err == nil {
		r.history.chronicle.shifted(obj)
	}
	return err
}

// List reads a list.
func (r *liveReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := r.Reader.List(ctx, list, opts...)
	if pods, ok := list.(*corev1.PodList); ok {
		for i := range pods.Items {
			r.history.chronicle.shifted(&pods.Items[i])
		}
	}
	return err
}
