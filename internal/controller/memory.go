package controller

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

const (
	// cacheLagLimit is how long a child that we created is believed to exist though the cache does not show it.
	cacheLagLimit = 30 * time.Second
	// deleteRetryWait is the time after which a deletion is requested again.
	deleteRetryWait = 10 * time.Second
)

// memory is what the controller knows of one job beyond its caches: its own writes, which a cache shows a moment later,
// and the API server's last rejection. It is lost with the process, and only the number of requests depends on it.
type memory struct {
	sync.Mutex
	uid types.UID
	// newest is the job as we last wrote it; unsure says that the outcome of a write is unknown.
	newest manifest.Object
	unsure bool
	// fresh says that this process has written the job's status or read the job from the API server.
	fresh bool
	// created are children that we created and the cache has not shown yet, deleted are those whose deletion we requested.
	created   map[types.UID]createdChild
	deleted   map[types.UID]time.Time
	rejection *job.Rejection
	// nodesLooked is when nodes were last looked at for the job.
	nodesLooked time.Time
	// unsaved is since when there is something to write that may wait.
	unsaved time.Time
}

type createdChild struct {
	client.Object
	kind string
	at   time.Time
}

// memories are those of all jobs of one kind.
type memories struct {
	sync.Mutex
	of map[types.NamespacedName]*memory
}

func (ms *memories) job(name types.NamespacedName) *memory {
	ms.Lock()
	defer ms.Unlock()
	if ms.of == nil {
		ms.of = map[types.NamespacedName]*memory{}
	}
	if ms.of[name] == nil {
		ms.of[name] = &memory{}
	}
	return ms.of[name]
}

func (ms *memories) forget(name types.NamespacedName) {
	ms.Lock()
	defer ms.Unlock()
	delete(ms.of, name)
}

// forJob makes sure that the memory is of this job, not of a namesake that was there before.
func (m *memory) forJob(uid types.UID) {
	m.Lock()
	defer m.Unlock()
	if m.uid != uid {
		m.uid, m.newest, m.unsure, m.fresh, m.rejection, m.unsaved, m.nodesLooked = uid, nil, false, false, nil, time.Time{}, time.Time{}
		m.created, m.deleted = map[types.UID]createdChild{}, map[types.UID]time.Time{}
	}
}

// noteGone forgets a child that is gone, also one that no pass has seen in the cache.
func (ms *memories) noteGone(name types.NamespacedName, uid types.UID) {
	ms.Lock()
	m := ms.of[name]
	ms.Unlock()
	if m == nil {
		return
	}
	m.Lock()
	defer m.Unlock()
	delete(m.created, uid)
	delete(m.deleted, uid)
}

// noteCreated remembers a child that we created until the cache shows it.
func (m *memory) noteCreated(kind string, obj client.Object, now time.Time) {
	m.Lock()
	defer m.Unlock()
	m.created[obj.GetUID()] = createdChild{obj, kind, now}
}

// unseen returns the children of a kind that we created and the cache does not show, and forgets those that it shows.
func unseen[T client.Object](m *memory, kind string, seen []T, now time.Time) []T {
	m.Lock()
	defer m.Unlock()
	names := map[string]bool{}
	for _, obj := range seen {
		delete(m.created, obj.GetUID())
		names[obj.GetName()] = true
	}
	var missing []T
	for uid, created := range m.created {
		switch {
		case created.kind != kind:
		case now.Sub(created.at) > cacheLagLimit || names[created.GetName()]:
			delete(m.created, uid)
		default:
			missing = append(missing, created.Object.(T))
		}
	}
	return missing
}

// mayDelete reports whether to request the deletion of a child now, and remembers that it is requested.
func (m *memory) mayDelete(uid types.UID, now time.Time) bool {
	m.Lock()
	defer m.Unlock()
	if at, requested := m.deleted[uid]; requested && now.Sub(at) < deleteRetryWait {
		return false
	}
	m.deleted[uid] = now
	return true
}

// notDeleted forgets that the deletion of a child was requested: the API server answered with an error.
func (m *memory) notDeleted(uid types.UID) {
	m.Lock()
	defer m.Unlock()
	delete(m.deleted, uid)
}

// nextForgotten is when the next child that the cache does not show is no longer believed to exist; zero if there is none.
func (m *memory) nextForgotten() time.Time {
	m.Lock()
	defer m.Unlock()
	var next time.Time
	for _, created := range m.created {
		if at := created.at.Add(cacheLagLimit); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// existing are the children of a kind that the cache shows or we created, without those that we deleted.
func existing[T client.Object](m *memory, kind string, seen []T, now time.Time) []T {
	all := sorted(seen, unseen(m, kind, seen, now))
	m.Lock()
	defer m.Unlock()
	return slices.DeleteFunc(all, func(obj T) bool {
		at, deleted := m.deleted[obj.GetUID()]
		return deleted && now.Sub(at) < deleteRetryWait
	})
}

// newer reports whether a is a later version of an object than b.
func newer(a, b client.Object) bool {
	va, errA := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	vb, errB := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errA == nil && errB == nil && va > vb
}
