package proof

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
)

// change is one change of one object, as the API server told it to a watch.
type change struct {
	resource string
	watch.EventType
	obj client.Object
	at  time.Time
}

// Resources that a history has, by the name under which a cache holds them.
const (
	jobs        = "jobs"
	pods        = "pods"
	services    = "services"
	autoscalers = "autoscalers"
)

// resourceOf is the resource of an object or of a list.
func resourceOf(obj any) string {
	switch obj.(type) {
	case *corev1.Pod, *corev1.PodList:
		return pods
	case *corev1.Service, *corev1.ServiceList:
		return services
	case *autoscalingv2.HorizontalPodAutoscaler, *autoscalingv2.HorizontalPodAutoscalerList:
		return autoscalers
	default:
		return jobs
	}
}

// chronicle is everything that the API server told about the objects of one history, in order.
type chronicle struct {
	sync.Mutex
	news    *sync.Cond
	changes []change
	// newest has the newest version of each object, and of one that is gone the last.
	newest map[types.UID]uint64
	gone   map[types.UID]bool
	// terminating is the deletion timestamp of each pod by the history's clock. The API server stamps by the machine's.
	terminating map[types.UID]metav1.Time
	now         func() time.Time
}

func newChronicle(now func() time.Time) *chronicle {
	c := &chronicle{newest: map[types.UID]uint64{}, gone: map[types.UID]bool{}, terminating: map[types.UID]metav1.Time{}, now: now}
	c.news = sync.NewCond(c)
	return c
}

func (c *chronicle) append(event watch.EventType, obj client.Object) {
	c.Lock()
	defer c.Unlock()
	c.shift(obj)
	c.changes = append(c.changes, change{resourceOf(obj), event, obj, c.now()})
	c.newest[obj.GetUID()] = version(obj)
	c.gone[obj.GetUID()] = event == watch.Deleted
	c.news.Broadcast()
}

// shift turns the time at which a pod's deletion was asked for into the history's time.
func (c *chronicle) shift(obj client.Object) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.DeletionTimestamp == nil {
		return
	}
	at, known := c.terminating[pod.UID]
	if !known {
		at = metav1.NewTime(c.now().Truncate(time.Second).Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second))
		c.terminating[pod.UID] = at
	}
	pod.DeletionTimestamp = &at
}

// shifted does the same for an object that was read from the API server.
func (c *chronicle) shifted(obj client.Object) {
	c.Lock()
	defer c.Unlock()
	c.shift(obj)
}

// await waits until the watch has shown a version of an object, or its end.
func (c *chronicle) await(uid types.UID, version uint64) {
	c.until(func() bool { return c.newest[uid] >= version || c.gone[uid] })
}

// awaitGone waits until the watch has shown that an object is gone.
func (c *chronicle) awaitGone(uid types.UID) { c.until(func() bool { return c.gone[uid] }) }

// watchTimeout is how long a watch may take to show what is done.
const watchTimeout = 5 * time.Minute

func (c *chronicle) until(seen func() bool) {
	c.Lock()
	defer c.Unlock()
	if seen() {
		return
	}
	late := time.AfterFunc(watchTimeout, func() { panic("the API server's watch does not show what is done") })
	defer late.Stop()
	for !seen() {
		c.news.Wait()
	}
}

// since are the changes from one on.
func (c *chronicle) since(n int) []change {
	c.Lock()
	defer c.Unlock()
	return slices.Clone(c.changes[n:])
}

func version(obj client.Object) uint64 {
	n, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%T %s has version %q", obj, obj.GetName(), obj.GetResourceVersion()))
	}
	return n
}

// chronicles distributes what the API server tells to the histories that it is about.
type chronicles struct {
	of     sync.Map // by namespace and name of the job
	cancel func()
	ended  sync.WaitGroup
}

func (cs *chronicles) begin(job types.NamespacedName, c *chronicle) { cs.of.Store(job, c) }
func (cs *chronicles) forget(job types.NamespacedName)              { cs.of.Delete(job) }

// follow watches all resources from now on.
func (s *server) follow(ctx context.Context) error {
	ctx, s.cancel = context.WithCancel(ctx)
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &corev1.ServiceList{}, &autoscalingv2.HorizontalPodAutoscalerList{},
		&kubeflowv1.PyTorchJobList{}, &kubeflowv1.TFJobList{},
	} {
		if err := s.admin.List(ctx, list); err != nil {
			return err
		}
		from := list.GetResourceVersion()
		s.ended.Go(func() {
			for ctx.Err() == nil {
				from = s.followFrom(ctx, list, from)
			}
		})
	}
	return nil
}

// followFrom watches until the API server ends the watch, and returns where to go on.
func (s *server) followFrom(ctx context.Context, list client.ObjectList, from string) string {
	events, err := s.admin.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true}})
	if err != nil {
		return from
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		obj, ok := e.Object.(client.Object)
		if !ok && ctx.Err() != nil {
			return from
		} else if !ok {
			panic(fmt.Sprintf("a watch ended with %+v", e.Object))
		}
		from = obj.GetResourceVersion()
		if e.Type == watch.Bookmark {
			continue
		}
		name := obj.GetLabels()[naming.LabelJobName]
		if resourceOf(obj) == jobs {
			name = obj.GetName()
		}
		if c, ok := s.of.Load(types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}); ok {
			c.(*chronicle).append(e.Type, obj)
		}
	}
	return from
}

func (cs *chronicles) end() {
	if cs.cancel != nil {
		cs.cancel()
	}
	cs.ended.Wait()
}

func (c *chronicle) isGone(uid types.UID) bool {
	c.Lock()
	defer c.Unlock()
	return c.gone[uid]
}
