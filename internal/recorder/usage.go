package recorder

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/internal/record"
)

const (
	// meterInterval is how often the use of pods is looked at.
	meterInterval = 5 * time.Second
	// useInterval is how often the use of a pod is recorded at first, usePart which part of its age that is later: a day has about a
	// thousand values.
	useInterval = 10 * time.Second
	usePart     = 200
)

// Use is what a pod uses now.
type Use struct {
	Cores  float64
	Memory int64
	// GPU is how many of its GPUs are busy, GPUMemory how many bytes of their memory are taken.
	GPU       float64
	GPUMemory int64
}

// usage collects what pods use between two records of it.
type usage struct {
	read   func() map[types.NamespacedName]Use
	looked time.Time
	pods   map[types.UID]*meanUse
}

// meanUse is what a pod used since it was last recorded.
type meanUse struct {
	recorded time.Time
	readings int
	// sum has the sums of what is averaged, and the most of what is not.
	sum Use
}

// measure reads what the pods of jobs use, and records it if it is time.
func (r *Recorder) measure(now time.Time) (failed error) {
	u := &r.usage
	if u.read == nil || now.Sub(u.looked) < meterInterval {
		return nil
	}
	u.looked = now
	uses, seen := u.read(), map[types.UID]bool{}
	for _, j := range r.jobs {
		var due []record.Use
		for uid, p := range j.pods {
			use, ok := uses[types.NamespacedName{Namespace: p.Pod.Namespace, Name: p.Pod.Name}]
			if !ok || !p.Gone.IsZero() || p.Pod.Status.Phase != corev1.PodRunning {
				continue
			}
			seen[uid] = true
			if mean := u.add(uid, use, now); mean.due(p.Pod.CreationTimestamp.Time, now) {
				due = append(due, mean.take(uid, now))
			}
		}
		if len(due) > 0 && j.object != nil {
			if err := r.store.AddUsage(j.namespace, j.uid, due); err != nil {
				failed = err
			}
		}
	}
	for uid := range u.pods {
		if !seen[uid] {
			delete(u.pods, uid)
		}
	}
	return failed
}

func (u *usage) add(pod types.UID, use Use, now time.Time) *meanUse {
	mean := u.pods[pod]
	if mean == nil {
		mean = &meanUse{recorded: now.Add(-useInterval)}
		u.pods[pod] = mean
	}
	mean.readings++
	mean.sum = Use{
		Cores: mean.sum.Cores + use.Cores, Memory: max(mean.sum.Memory, use.Memory),
		GPU: mean.sum.GPU + use.GPU, GPUMemory: max(mean.sum.GPUMemory, use.GPUMemory),
	}
	return mean
}

func (m *meanUse) due(created, now time.Time) bool {
	return now.Sub(m.recorded) >= max(useInterval, now.Sub(created)/usePart)
}

// take is the use since it was last taken.
func (m *meanUse) take(pod types.UID, now time.Time) record.Use {
	n := float64(m.readings)
	use := record.Use{Time: now, Pod: pod, Cores: m.sum.Cores / n, Memory: m.sum.Memory, GPU: m.sum.GPU / n, GPUMemory: m.sum.GPUMemory}
	*m = meanUse{recorded: now}
	return use
}
