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
	// madeFor is how long a child we made is believed to exist though the cache does not show it.
	madeFor = 30 * time.Second
	// askedFor is how long a deletion is not asked for again.
	askedFor = 10 * time.Second
)

// memory is what the controller knows of one job beyond its caches: its own writes, which a cache shows a moment later,
// and the API server's last refusal. It is lost with the process, and nothing depends on it but speed and politeness.
type memory struct {
	sync.Mutex
	uid types.UID
	// newest is the job as we last wrote it; unsure says that the outcome of a write is unknown.
	newest manifest.Object
	unsure bool
	// made are children we created, asked are those we asked to go.
	made    map[types.UID]child
	asked   map[types.UID]time.Time
	refusal *job.Refusal
	// unsaved is since when there is something to write that may wait.
	unsaved time.Time
}

type child struct {
	client.Object
	at time.Time
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

// is makes sure that the memory is of this job, not of a namesake that was there before.
func (m *memory) is(uid types.UID) {
	m.Lock()
	defer m.Unlock()
	if m.uid != uid {
		m.uid, m.newest, m.unsure, m.refusal, m.unsaved = uid, nil, false, nil, time.Time{}
		m.made, m.asked = map[types.UID]child{}, map[types.UID]time.Time{}
	}
}

// gone notes that a child is no more, also one that no pass has seen in the cache.
func (ms *memories) gone(name types.NamespacedName, uid types.UID) {
	ms.Lock()
	m := ms.of[name]
	ms.Unlock()
	if m == nil {
		return
	}
	m.Lock()
	defer m.Unlock()
	delete(m.made, uid)
	delete(m.asked, uid)
}

func (m *memory) remember(obj client.Object, now time.Time) {
	m.Lock()
	defer m.Unlock()
	m.made[obj.GetUID()] = child{obj, now}
}

// unseen returns the children we made that are not among those the cache shows, and forgets those that are.
func unseen[T client.Object](m *memory, seen []T, now time.Time) []T {
	m.Lock()
	defer m.Unlock()
	names := map[string]bool{}
	for _, obj := range seen {
		delete(m.made, obj.GetUID())
		names[obj.GetName()] = true
	}
	var missing []T
	for uid, made := range m.made {
		obj, ok := made.Object.(T)
		switch {
		case !ok:
		case now.Sub(made.at) > madeFor || names[made.GetName()]:
			delete(m.made, uid)
		default:
			missing = append(missing, obj)
		}
	}
	return missing
}

// askOnce tells whether a pod should be asked to go now, and notes that it is.
func (m *memory) askOnce(uid types.UID, now time.Time) bool {
	m.Lock()
	defer m.Unlock()
	if at, asked := m.asked[uid]; asked && now.Sub(at) < askedFor {
		return false
	}
	m.asked[uid] = now
	return true
}

// known are the children of which the cache shows some and we made others, without those we removed.
func known[T client.Object](m *memory, seen []T, now time.Time) []T {
	all := sorted(seen, unseen(m, seen, now))
	m.Lock()
	defer m.Unlock()
	return slices.DeleteFunc(all, func(obj T) bool {
		at, asked := m.asked[obj.GetUID()]
		return asked && now.Sub(at) < askedFor
	})
}

// newer tells whether a is a later version of an object than b.
func newer(a, b client.Object) bool {
	va, errA := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	vb, errB := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errA == nil && errB == nil && va > vb
}
