package proof

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// caches are a process's caches. Each has received the API server's changes of its resource up to some point, and the test says when
// it receives more. They transform objects and report changes as controller-runtime's do.
type caches struct {
	chronicle *chronicle
	options   cache.Options
	sync.Mutex
	stores  map[string]*store
	indexes map[string]client.IndexerFunc
}

// store is the cache of one resource, and the informer that reports its changes.
type store struct {
	sync.Mutex
	resource string
	// at is how many changes of the chronicle it has received or skipped; objects is what it shows.
	at       int
	objects  map[string]client.Object
	handlers []toolscache.ResourceEventHandler
	// late says that the watch delivers nothing at the moment, lost that it has to list again.
	late, lost bool
}

// newCaches begins with what the API server had to say at some point of the chronicle.
func newCaches(c *chronicle, options cache.Options, at int) *caches {
	all := &caches{chronicle: c, options: options, stores: map[string]*store{}, indexes: map[string]client.IndexerFunc{}}
	for _, resource := range []string{jobs, pods, services, autoscalers} {
		s := &store{resource: resource, at: at, objects: map[string]client.Object{}}
		for _, change := range c.since(0)[:at] {
			if change.resource == resource {
				s.set(change.EventType, all.transform(change.obj))
			}
		}
		all.stores[resource] = s
	}
	return all
}

func (s *store) set(event watch.EventType, obj client.Object) {
	if event == watch.Deleted {
		delete(s.objects, obj.GetName())
	} else {
		s.objects[obj.GetName()] = obj
	}
}

// transform is what the options say about an object of the kind.
func (c *caches) transform(obj client.Object) client.Object {
	transform := c.options.DefaultTransform
	for of, options := range c.options.ByObject {
		if reflect.TypeOf(of) == reflect.TypeOf(obj) && options.Transform != nil {
			transform = options.Transform
		}
	}
	changed, err := transform(obj.DeepCopyObject())
	if err != nil {
		panic(err)
	}
	return changed.(client.Object)
}

// deliver lets every watch that is not late deliver what it has.
func (c *caches) deliver() {
	for _, resource := range []string{jobs, pods, services, autoscalers} {
		if s := c.stores[resource]; !s.late {
			c.catchUp(s)
		}
	}
}

func (c *caches) catchUp(s *store) {
	changes := c.chronicle.since(s.at)
	if s.lost {
		s.lost = false
		c.relist(s)
	} else {
		for _, change := range changes {
			if change.resource == s.resource {
				s.receive(change.EventType, c.transform(change.obj))
			}
		}
	}
	s.at += len(changes)
}

// receive is one event of a watch.
func (s *store) receive(event watch.EventType, obj client.Object) {
	s.Lock()
	old := s.objects[obj.GetName()]
	s.set(event, obj)
	handlers := slices.Clone(s.handlers)
	s.Unlock()
	for _, h := range handlers {
		switch {
		case event == watch.Deleted:
			h.OnDelete(obj)
		case old == nil:
			h.OnAdd(obj, false)
		default:
			h.OnUpdate(old, obj)
		}
	}
}

// relist is what an informer does whose watch broke: it compares what it has with a list, by name. Of what came and went in
// between it never hears.
func (c *caches) relist(s *store) {
	now := map[string]client.Object{}
	for _, change := range c.chronicle.since(0) {
		if change.resource != s.resource {
			continue
		}
		if change.EventType == watch.Deleted {
			delete(now, change.obj.GetName())
		} else {
			now[change.obj.GetName()] = change.obj
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		s.receive(watch.Modified, c.transform(now[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if now[name] == nil {
			s.receive(watch.Deleted, s.objects[name])
		}
	}
}

// Get reads from the cache.
func (c *caches) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	s := c.stores[resourceOf(obj)]
	s.Lock()
	defer s.Unlock()
	found := s.objects[key.Name]
	if found == nil || reflect.TypeOf(found) != reflect.TypeOf(obj) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: s.resource}, key.Name)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

// List reads from the cache, by an index where it is asked to.
func (c *caches) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	resource := resourceOf(list)
	s := c.stores[resource]
	s.Lock()
	defer s.Unlock()
	var found []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if c.matches(resource, s.objects[name], options) {
			found = append(found, s.objects[name])
		}
	}
	return meta.SetList(list, found)
}

func (c *caches) matches(resource string, obj client.Object, options client.ListOptions) bool {
	if options.FieldSelector == nil {
		return true
	}
	c.Lock()
	defer c.Unlock()
	for _, r := range options.FieldSelector.Requirements() {
		if index := c.indexes[resource+" "+r.Field]; index == nil || !slices.Contains(index(obj), r.Value) {
			return false
		}
	}
	return true
}

// IndexField remembers how an index is computed.
func (c *caches) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	c.Lock()
	defer c.Unlock()
	c.indexes[resourceOf(obj)+" "+field] = extract
	return nil
}

// GetInformer is the informer of an object's kind.
func (c *caches) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return c.stores[resourceOf(obj)], nil
}

// GetInformerForKind is not used by our controllers.
func (c *caches) GetInformerForKind(context.Context, schema.GroupVersionKind, ...cache.InformerGetOption) (cache.Informer, error) {
	panic("not used")
}

// RemoveInformer is not used by our controllers.
func (c *caches) RemoveInformer(context.Context, client.Object) error { panic("not used") }

// Start does nothing: the test delivers the changes.
func (c *caches) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WaitForCacheSync is true at once.
func (c *caches) WaitForCacheSync(context.Context) bool { return true }

// AddEventHandler reports all objects, and from then on all changes.
func (s *store) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	s.Lock()
	defer s.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		h.OnAdd(s.objects[name], true)
	}
	s.handlers = append(s.handlers, h)
	return synced{}, nil
}

// AddEventHandlerWithResyncPeriod is AddEventHandler: nothing is resynced.
func (s *store) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(h)
}

// AddEventHandlerWithOptions is AddEventHandler.
func (s *store) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(h)
}

// RemoveEventHandler is not used by our controllers.
func (s *store) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error { return nil }

// AddIndexers is not used: List computes an index.
func (s *store) AddIndexers(toolscache.Indexers) error { return nil }

// HasSynced is true at once.
func (s *store) HasSynced() bool { return true }

// HasSyncedChecker is done at once.
func (s *store) HasSyncedChecker() toolscache.DoneChecker { return synced{} }

// IsStopped is false: an informer ends with its process.
func (s *store) IsStopped() bool { return false }

// synced is a handler that has received the first list.
type synced struct{}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (synced) HasSynced() bool                          { return true }
func (synced) HasSyncedChecker() toolscache.DoneChecker { return synced{} }
func (synced) Name() string                             { return "synced" }
func (synced) Done() <-chan struct{}                    { return closed }
