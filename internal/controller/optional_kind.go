package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// firstSyncWait is how long passes wait for the first list of an optional kind. If the operator has no right to list it, the list
// never comes, and no pass waits again.
const firstSyncWait = 5 * time.Second

// optionalKind is a kind that a cluster may lack, or that the operator may have no right to read. It has a cache of its own, because
// the manager's cache is configured before anybody knows which kinds are served.
type optionalKind struct {
	manifest.ChildKind

	sync.Mutex
	// served says that the API server serves the kind, as far as it was asked last.
	served bool
	asked  time.Time
	// cache is nil until the kind is watched; passes wait for its first list until waitUntil.
	cache     crcache.Cache
	waitUntil time.Time
	// trouble is why the last list or watch failed.
	trouble error
}

// reader is where children of the kind are read. It is nil, with a sentence that says why, while they cannot be read. A kind that the
// job does not want is not waited for.
func (k *optionalKind) reader(ctx context.Context, c *childKinds, wanted bool, now time.Time) (client.Reader, string) {
	if wanted {
		if why := k.watchIfServed(c, now); why != "" {
			return nil, why
		}
	}
	k.Lock()
	from, until := k.cache, k.waitUntil
	k.Unlock()
	if from == nil {
		return nil, ""
	}
	informer, err := from.GetInformer(ctx, k.New(), crcache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Sprintf("the operator cannot read the kind %s: %v", k.ChildKind.ChildKind, err)
	}
	if wanted && !informer.HasSynced() {
		wait, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		cache.WaitForCacheSync(wait.Done(), informer.HasSynced)
	}
	if informer.HasSynced() {
		return from, ""
	}
	k.Lock()
	defer k.Unlock()
	if k.trouble == nil {
		return nil, fmt.Sprintf("the operator has not read the kind %s yet", k.ChildKind.ChildKind)
	}
	return nil, fmt.Sprintf("the operator cannot read the kind %s: %v", k.ChildKind.ChildKind, k.trouble)
}

// watchIfServed begins to watch the kind once the API server serves it.
func (k *optionalKind) watchIfServed(c *childKinds, now time.Time) (why string) {
	served, err := k.isServed(c, now)
	if err != nil {
		return err.Error()
	}
	if !served {
		return fmt.Sprintf("the cluster does not serve the kind %s", k.ChildKind.ChildKind)
	}
	k.Lock()
	defer k.Unlock()
	if k.cache != nil {
		return ""
	}
	if err := k.watch(c); err != nil {
		return fmt.Sprintf("the operator cannot watch the kind %s: %v", k.ChildKind.ChildKind, err)
	}
	return ""
}

// isServed reports whether the API server serves the kind. A kind that it did not serve is asked for at most once in
// job.UnreadableWait.
func (k *optionalKind) isServed(c *childKinds, now time.Time) (bool, error) {
	k.Lock()
	defer k.Unlock()
	if k.served || now.Sub(k.asked) < job.UnreadableWait {
		return k.served, nil
	}
	gvk := k.GroupVersionKind()
	_, err := c.mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil && !meta.IsNoMatchError(err) {
		return false, fmt.Errorf("asking whether the cluster serves the kind %s: %w", k.ChildKind.ChildKind, err)
	}
	k.asked, k.served = now, err == nil
	return k.served, nil
}

// watch starts a cache of the kind, which lives as long as the manager. A list that fails is tried again by the cache itself.
func (k *optionalKind) watch(c *childKinds) error {
	options := c.caches
	options.DefaultWatchErrorHandler = func(_ context.Context, _ *cache.Reflector, err error) {
		k.Lock()
		defer k.Unlock()
		k.trouble = err
	}
	own, err := crcache.New(c.mgr.GetConfig(), options)
	if err != nil {
		return err
	}
	if err := c.watch(context.Background(), k.ChildKind, own); err != nil {
		return err
	}
	if err := c.mgr.Add(own); err != nil {
		return err
	}
	k.cache, k.waitUntil = own, time.Now().Add(firstSyncWait)
	return nil
}
