package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// serviceProxy makes Services answer on their addresses, in place of kube-proxy, whose rules need tools that a machine may
// not have. Every port of a Service with endpoints has a listener on this node that passes connections on in turn; one
// without endpoints has none, so that a connection is refused at once.
type serviceProxy struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	node     string

	changed chan struct{}
	mu      sync.Mutex
	doors   map[door]*forwarder
}

// door is where a Service is reached: protocol, address and port.
type door struct {
	protocol corev1.Protocol
	address  string
}

func newServiceProxy(factory informers.SharedInformerFactory, node string) (*serviceProxy, error) {
	p := &serviceProxy{
		services: factory.Core().V1().Services().Lister(),
		slices:   factory.Discovery().V1().EndpointSlices().Lister(),
		node:     node,
		changed:  make(chan struct{}, 1),
		doors:    map[door]*forwarder{},
	}
	notify := func() {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Services().Informer(), factory.Discovery().V1().EndpointSlices().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("watching Services: %w", err)
		}
	}
	return p, nil
}

// run keeps the doors as the Services say until ctx ends.
func (p *serviceProxy) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			p.open(nil)
			return
		case <-p.changed:
			wanted, err := p.wanted()
			if err != nil {
				klog.ErrorS(err, "Reading Services")
				continue
			}
			p.open(wanted)
		}
	}
}

// open opens, keeps and closes doors so that exactly the wanted ones are there, leading where they should.
func (p *serviceProxy) open(wanted map[door][]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for d, f := range p.doors {
		if len(wanted[d]) == 0 {
			f.close()
			delete(p.doors, d)
		}
	}
	for d, backends := range wanted {
		if f, exists := p.doors[d]; exists {
			f.lead(backends)
			continue
		}
		f, err := newForwarder(d, backends)
		if err != nil {
			klog.ErrorS(err, "Opening a Service", "address", d.address)
			continue
		}
		p.doors[d] = f
	}
}

// wanted is every door with the endpoints behind it.
func (p *serviceProxy) wanted() (map[door][]string, error) {
	services, err := p.services.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	wanted := map[door][]string{}
	for _, service := range services {
		if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
			continue
		}
		slices, err := p.slices.EndpointSlices(service.Namespace).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name}))
		if err != nil {
			return nil, err
		}
		for _, port := range service.Spec.Ports {
			backends := backendsOf(slices, port, service.Spec.PublishNotReadyAddresses)
			if len(backends) == 0 {
				continue
			}
			wanted[door{port.Protocol, join(service.Spec.ClusterIP, port.Port)}] = backends
			if port.NodePort != 0 {
				wanted[door{port.Protocol, join(p.node, port.NodePort)}] = backends
			}
		}
	}
	return wanted, nil
}

// backendsOf lists the addresses behind one port of a Service, in a stable order.
func backendsOf(all []*discoveryv1.EndpointSlice, port corev1.ServicePort, notReady bool) []string {
	var backends []string
	for _, slice := range all {
		for _, p := range slice.Ports {
			if p.Port == nil || deref(p.Name) != port.Name || cmp.Or(deref(p.Protocol), corev1.ProtocolTCP) != port.Protocol {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if ready := endpoint.Conditions.Ready; ready != nil && !*ready && !notReady {
					continue
				}
				for _, address := range endpoint.Addresses {
					backends = append(backends, join(address, *p.Port))
				}
			}
		}
	}
	slices.Sort(backends)
	return slices.Compact(backends)
}

func join(ip string, port int32) string { return net.JoinHostPort(ip, strconv.Itoa(int(port))) }

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
