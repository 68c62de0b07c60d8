package cluster

import (
	"context"
	"sort"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/metrics/pkg/apis/metrics"
	"k8s.io/metrics/pkg/apis/metrics/install"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// The resource metrics API, metrics.k8s.io: what `kubectl top` and the autoscaler read. The API server of the local
// cluster serves it itself, from the meter, instead of passing requests on to a second server.

var metricsVersion = v1beta1.SchemeGroupVersion

// podLabels returns the labels of a pod; ok is false when there is no such pod.
type podLabels func(types.NamespacedName) (l labels.Set, ok bool)

// metricsAPI installs the API over a meter.
func metricsAPI(m *meter, podLabels podLabels) installAPI {
	return func(server *genericapiserver.GenericAPIServer) error {
		scheme := runtime.NewScheme()
		install.Install(scheme)
		metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
		info := genericapiserver.NewDefaultAPIGroupInfo(metrics.GroupName, scheme, runtime.NewParameterCodec(scheme), serializer.NewCodecFactory(scheme))
		info.VersionedResourcesStorageMap[metricsVersion.Version] = map[string]rest.Storage{
			"pods":  &podMetrics{TableConvertor: rest.NewDefaultTableConvertor(metrics.Resource("pods")), meter: m, labels: podLabels},
			"nodes": &nodeMetrics{TableConvertor: rest.NewDefaultTableConvertor(metrics.Resource("nodes")), meter: m},
		}
		return server.InstallAPIGroup(&info)
	}
}

type podMetrics struct {
	rest.TableConvertor
	meter  *meter
	labels podLabels
}

func (p *podMetrics) New() runtime.Object     { return &metrics.PodMetrics{} }
func (p *podMetrics) NewList() runtime.Object { return &metrics.PodMetricsList{} }
func (p *podMetrics) Destroy()                {}
func (p *podMetrics) NamespaceScoped() bool   { return true }
func (p *podMetrics) GetSingularName() string { return "" }
func (p *podMetrics) Kind() string            { return "PodMetrics" }

// Get answers for one pod.
func (p *podMetrics) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	all := p.meter.pods()
	key := types.NamespacedName{Namespace: request.NamespaceValue(ctx), Name: name}
	l, exists := p.labels(key)
	if len(all[key]) == 0 || !exists {
		return nil, errors.NewNotFound(metrics.Resource("podmetrics"), key.String())
	}
	found := p.of(key, l, all[key])
	return &found, nil
}

// List answers for the pods of a namespace, or all, that a selector matches.
func (p *podMetrics) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	selector := labels.Everything()
	if options != nil && options.LabelSelector != nil {
		selector = options.LabelSelector
	}
	namespace := request.NamespaceValue(ctx)
	all := p.meter.pods()
	list := &metrics.PodMetricsList{}
	for key, readings := range all {
		l, exists := p.labels(key)
		if exists && (namespace == "" || namespace == key.Namespace) && selector.Matches(l) {
			list.Items = append(list.Items, p.of(key, l, readings))
		}
	}
	sort.Slice(list.Items, func(i, j int) bool {
		a, b := &list.Items[i], &list.Items[j]
		return a.Namespace < b.Namespace || a.Namespace == b.Namespace && a.Name < b.Name
	})
	return list, nil
}

func (p *podMetrics) of(pod types.NamespacedName, l labels.Set, readings []reading) metrics.PodMetrics {
	item := metrics.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: l, CreationTimestamp: readings[0].timestamp()},
		Timestamp:  readings[0].timestamp(),
		Window:     readings[0].duration(),
	}
	sort.Slice(readings, func(i, j int) bool { return readings[i].container < readings[j].container })
	for _, r := range readings {
		item.Containers = append(item.Containers, metrics.ContainerMetrics{Name: r.container, Usage: r.usage()})
	}
	return item
}

type nodeMetrics struct {
	rest.TableConvertor
	meter *meter
}

func (n *nodeMetrics) New() runtime.Object     { return &metrics.NodeMetrics{} }
func (n *nodeMetrics) NewList() runtime.Object { return &metrics.NodeMetricsList{} }
func (n *nodeMetrics) Destroy()                {}
func (n *nodeMetrics) NamespaceScoped() bool   { return false }
func (n *nodeMetrics) GetSingularName() string { return "" }
func (n *nodeMetrics) Kind() string            { return "NodeMetrics" }

// Get answers for one node.
func (n *nodeMetrics) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	use, exists := n.meter.nodeUse()[name]
	if !exists {
		return nil, errors.NewNotFound(metrics.Resource("nodemetrics"), name)
	}
	found := metricsOf(name, use)
	return &found, nil
}

// List answers for all nodes.
func (n *nodeMetrics) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	list := &metrics.NodeMetricsList{}
	for name, use := range n.meter.nodeUse() {
		list.Items = append(list.Items, metricsOf(name, use))
	}
	sort.Slice(list.Items, func(i, j int) bool { return list.Items[i].Name < list.Items[j].Name })
	return list, nil
}

func metricsOf(node string, use reading) metrics.NodeMetrics {
	return metrics.NodeMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: node, CreationTimestamp: use.timestamp()},
		Timestamp:  use.timestamp(),
		Window:     use.duration(),
		Usage:      use.usage(),
	}
}
