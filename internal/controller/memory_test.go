package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func aPod(name string, uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
}

// What we made is there, whatever the cache says, until the cache shows it, it is gone, or we have waited long enough.
func TestOwnWritesAreRead(t *testing.T) {
	start := time.Unix(1000, 0)
	name := types.NamespacedName{Name: "demo"}
	for _, row := range []struct {
		sentence string
		then     func(ms *memories)
		cache    []*corev1.Pod
		after    time.Duration
		want     int
	}{
		{"the cache is behind", nil, nil, time.Second, 1},
		{"the cache has caught up", nil, []*corev1.Pod{aPod("demo-worker-0", "u1")}, time.Second, 0},
		{"the cache shows another of that name, which came later", nil, []*corev1.Pod{aPod("demo-worker-0", "u2")}, time.Second, 0},
		{"it came and went between two passes", func(ms *memories) { ms.noteGone(name, "u1") }, nil, time.Second, 0},
		{"long ago", nil, nil, time.Minute, 0},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			ms := &memories{}
			m := ms.job(name)
			m.forJob("j1")
			m.noteCreated("Pod", aPod("demo-worker-0", "u1"), start)
			if row.then != nil {
				row.then(ms)
			}
			if got := unseen(m, "Pod", row.cache, start.Add(row.after)); len(got) != row.want {
				t.Errorf("%d pods beyond the cache, want %d", len(got), row.want)
			}
		})
	}
}

func TestADeletionIsAskedForOnce(t *testing.T) {
	start := time.Unix(1000, 0)
	m := &memory{}
	m.forJob("j1")
	for _, row := range []struct {
		sentence string
		at       time.Duration
		want     bool
	}{
		{"the first time", 0, true},
		{"a moment later the cache is behind", time.Second, false},
		{"much later the request was lost", time.Minute, true},
	} {
		if got := m.mayDelete("u1", start.Add(row.at)); got != row.want {
			t.Errorf("%s: asked %v", row.sentence, got)
		}
	}
}

// A Service that we removed is no longer there, though the cache still shows it.
func TestWhatWeRemovedIsGone(t *testing.T) {
	start := time.Unix(1000, 0)
	m := &memory{}
	m.forJob("j1")
	shown := func(after time.Duration) int {
		return len(existing(m, "Service", []*corev1.Pod{aPod("demo", "u1")}, start.Add(after)))
	}
	if shown(0) != 1 {
		t.Error("what nobody removed is missing")
	}
	m.mayDelete("u1", start)
	if shown(time.Second) != 0 {
		t.Error("what was removed is still there")
	}
	if shown(time.Minute) != 1 {
		t.Error("what came back is missing")
	}
}

func TestAMemoryIsOfOneJobOnly(t *testing.T) {
	m := &memory{}
	m.forJob("j1")
	m.unsure = true
	m.noteCreated("Pod", aPod("demo-worker-0", "u1"), time.Unix(1000, 0))
	m.forJob("j2")
	if m.unsure || len(m.created) != 0 {
		t.Error("a job remembers what its namesake did")
	}
}
