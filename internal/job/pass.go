package job

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pass is one run of Decide: the facts, sorted, and the decision so far.
type pass struct {
	Observed
	Decision

	// replicas are those the job should have now, in the order of its roles.
	replicas []replica
	// outdated are our pods of an earlier attempt, surplus those of this attempt that no role wants any more.
	outdated, surplus []*corev1.Pod
	// foreign are the names of pods that are not this job's.
	foreign map[string]bool
	// incidents are failures that are not charged yet; refusals are pods that were refused and are not replaced yet.
	incidents, refusals []incident
	// leaving are the pods of DeletePods.
	leaving map[*corev1.Pod]bool
	// waits is what the job waits for.
	waits string
}

// replica is a replica the job should have, with what its pod shows.
type replica struct {
	Replica
	role *Role
	// pod is the replica's pod of the present attempt, nil if there is none.
	pod *corev1.Pod
	evidence
}

// newPass sorts the facts. If a pod belongs to a later attempt than the status has, we recorded that attempt and the status
// was lost: it catches up.
func newPass(o Observed) *pass {
	p := &pass{Observed: o, Decision: Decision{Status: o.Status.clone()}, foreign: map[string]bool{}, leaving: map[*corev1.Pod]bool{}}
	ours := p.ours()
	for _, pod := range ours {
		if _, attempt, ok := o.Job.replicaOf(pod); ok && attempt > p.next().Attempt {
			p.next().Attempt = attempt
		}
	}
	pods := map[Replica]*corev1.Pod{}
	for _, pod := range ours {
		switch r, attempt, ok := o.Job.replicaOf(pod); {
		case ok && attempt < p.next().Attempt:
			p.outdated = append(p.outdated, pod)
		case ok && r.Index < o.Job.Size(*o.Job.role(r.Role)):
			pods[r] = pod
		default:
			p.surplus = append(p.surplus, pod)
		}
	}
	for i := range o.Job.Roles {
		role := &o.Job.Roles[i]
		for index := range min(o.Job.Size(*role), MaxReplicas) {
			r := replica{Replica: Replica{role.Name, index}, role: role}
			if r.pod = pods[r.Replica]; r.pod != nil {
				r.evidence = readPod(r.pod, r.Replica, role.Container)
			}
			p.replicas = append(p.replicas, r)
		}
	}
	return p
}

// next is the status as it will be recorded.
func (p *pass) next() *Status { return &p.Decision.Status }

// ours returns the pods of this job, and notes the names that foreign objects hold.
func (p *pass) ours() []*corev1.Pod {
	var ours []*corev1.Pod
	for _, pod := range p.Pods {
		if owned(pod, p.Job) {
			ours = append(ours, pod)
		} else {
			p.foreign[pod.Name] = true
		}
	}
	slices.SortFunc(ours, func(a, b *corev1.Pod) int { return compareNames(a.Name, b.Name) })
	return ours
}

// owned reports whether the object's controller is this very job, not a namesake of another UID.
func owned(obj metav1.Object, j Job) bool {
	owner := metav1.GetControllerOf(obj)
	return owner != nil && owner.UID == j.UID
}

// compareNames orders demo-worker-9 before demo-worker-10.
func compareNames(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

// handled reports whether the failure of the replica's pod is charged already.
func (p *pass) handled(r replica) bool {
	rec := p.next().record(r.Replica)
	return rec != nil && r.pod != nil && rec.Handled && rec.Pod == r.pod.UID
}

// requeueAt asks for another pass at t, if none comes earlier.
func (p *pass) requeueAt(t time.Time) {
	if p.RequeueAt.IsZero() || t.Before(p.RequeueAt) {
		p.RequeueAt = t
	}
}

// isLeaving reports whether a pod is on its way out, or will be once this decision is carried out.
func (p *pass) isLeaving(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || p.leaving[pod]
}

// delete decides on a deletion.
func (p *pass) delete(d Deletion) {
	p.DeletePods = append(p.DeletePods, d)
	p.leaving[d.Pod] = true
}
