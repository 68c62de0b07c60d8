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

	changed    chan struct{}
	mu         sync.Mutex
	forwarders map[listenAddress]*forwarder
}

// listenAddress is where a Service is reached: protocol, address and port.
type listenAddress struct {
	protocol corev1.Protocol
	address  string
}

func newServiceProxy(factory informers.SharedInformerFactory, node string) (*serviceProxy, error) {
	p := &serviceProxy{
		services:   factory.Core().V1().Services().Lister(),
		slices:     factory.Discovery().V1().EndpointSlices().Lister(),
		node:       node,
		changed:    make(chan struct{}, 1),
		forwarders: map[listenAddress]*forwarder{},
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

// run keeps one forwarder for each port of a Service until ctx ends.
func (p *serviceProxy) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			p.apply(nil)
			return
		case <-p.changed:
			wanted, err := p.wanted()
			if err != nil {
				klog.ErrorS(err, "Reading Services")
				continue
			}
			p.apply(wanted)
		}
	}
}

// apply starts, updates and closes forwarders so that there is one for each wanted address, with the backends given for it.
func (p *serviceProxy) apply(wanted map[listenAddress][]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a, f := range p.forwarders {
		if len(wanted[a]) == 0 {
			f.close()
			delete(p.forwarders, a)
		}
	}
	for a, backends := range wanted {
		if f, exists := p.forwarders[a]; exists {
			f.setBackends(backends)
			continue
		}
		f, err := newForwarder(a, backends)
		if err != nil {
			klog.ErrorS(err, "Listening for a Service", "address", a.address)
			continue
		}
		p.forwarders[a] = f
	}
}

// wanted is every address to listen on, with the backends behind it.
func (p *serviceProxy) wanted() (map[listenAddress][]string, error) {
	services, err := p.services.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	wanted := map[listenAddress][]string{}
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
			wanted[listenAddress{port.Protocol, join(service.Spec.ClusterIP, port.Port)}] = backends
			if port.NodePort != 0 {
				wanted[listenAddress{port.Protocol, join(p.node, port.NodePort)}] = backends
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
