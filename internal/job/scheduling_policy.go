package job

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Gang asks the scheduler to place the replicas that train together, or not at all. The scheduler reads this from a pod group, which
// each attempt has of its own: its replicas are placed afresh, while the condition of the group before says for ever that it was placed.
type Gang struct {
	// Group is the kind of pod group that the scheduler reads.
	Group ChildKind
	// MinAvailable is how many replicas must be placed together, nil for all that the job cannot train without.
	MinAvailable *int32
}

// The kinds of pod groups: that of Kubernetes, and those of two schedulers.
var (
	PodGroups             = ChildKind{Kind: "PodGroup", Group: "scheduling.k8s.io", Required: true, Until: RemoveAtEnd}
	VolcanoPodGroups      = ChildKind{Kind: "PodGroup", Group: "scheduling.volcano.sh", Required: true, Until: RemoveAtEnd}
	CoschedulingPodGroups = ChildKind{Kind: "PodGroup", Group: "scheduling.x-k8s.io", Required: true, Until: RemoveAtEnd}
)

// How a pod names its pod group, besides the field spec.schedulingGroup.
const (
	AnnotationVolcanoGroup = "scheduling.k8s.io/group-name"
	LabelCoschedulingGroup = "scheduling.x-k8s.io/pod-group"
)

// GroupName is the name of an attempt's pod group.
func (j Job) GroupName(attempt int32) string { return j.Name + "-" + strconv.Itoa(int(attempt)) }

// InGang reports whether replicas of a role are placed together with others. Those of a role that prepares the training, follows it, or
// waits for another role to be ready are created at other times, and the scheduler would wait for them in vain.
func (j Job) InGang(role Role) bool {
	waits := slices.ContainsFunc(role.After, func(d Dependency) bool { return !j.prepares(d.Role) })
	return !j.prepares(role.Name) && !waits
}

// Together is how many replicas an attempt needs to be placed together at its start.
func (j Job) Together() int32 {
	var all, needed int32
	for _, role := range j.Roles {
		if !j.InGang(role) {
			continue
		}
		all += j.Size(role)
		if j.Elastic != nil && j.Elastic.Role == role.Name {
			needed += j.Elastic.Min
		} else {
			needed += j.Size(role)
		}
	}
	if j.Gang != nil && j.Gang.MinAvailable != nil && *j.Gang.MinAvailable > 0 {
		return min(*j.Gang.MinAvailable, all)
	}
	return needed
}

// podGroup is the pod group that the attempt wants: with as many members as must be placed together, of those that are still to be
// placed or have a place. Schedulers count neither members that have finished nor pods that name no group, so a replica that comes back
// alone would wait for them for ever. There is none if no replica would be in it.
func (p *pass) podGroup(want Child) (Child, bool) {
	name := p.Job.GroupName(p.next().Attempt)
	var members int32
	for _, r := range p.replicas {
		switch {
		case !p.Job.InGang(*r.role) || p.done(r.Replica) || p.isLost(r.Replica):
		case r.pod == nil && p.foreign[p.Job.PodName(r.Replica)]:
		case r.pod == nil, p.handled(r), groupOf(r.pod) == name:
			members++
		}
	}
	obj := want.DeepCopyObject().(Object)
	obj.SetName(name)
	want.Object, want.Members = obj, min(p.Job.Together(), members)
	return want, members > 0
}

// mustShrink reports whether a pod group waits for more members than there will be, while one of them has no pod. It never grows: what
// has a place keeps it.
func (p *pass) mustShrink(want, have Child) bool {
	return want.Members < have.Members && slices.ContainsFunc(p.replicas, func(r replica) bool {
		return p.Job.InGang(*r.role) && !p.done(r.Replica) && (r.pod == nil || r.pod.Spec.NodeName == "")
	})
}

// groupOf is the pod group that a pod names, empty for none.
func groupOf(pod *corev1.Pod) string {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	if name := pod.Labels[LabelCoschedulingGroup]; name != "" {
		return name
	}
	return pod.Annotations[AnnotationVolcanoGroup]
}

// whyNotPlaced says how many replicas of a gang have no node, and what the scheduler says about it; nothing while it says nothing. What
// it says about a pod that fits nowhere comes before what it says about the group, which is only that some pod did.
func (p *pass) whyNotPlaced() string {
	if p.Job.Gang == nil {
		return ""
	}
	var members, without int
	var ofPod, ofGroup string
	for _, c := range p.Children {
		if c.ChildKind == p.Job.Gang.Group && c.GetName() == p.Job.GroupName(p.next().Attempt) {
			ofGroup = c.Says
		}
	}
	for _, r := range p.replicas {
		if r.pod == nil || groupOf(r.pod) == "" || p.done(r.Replica) || p.isLeaving(r.pod) {
			continue
		}
		members++
		if r.pod.Spec.NodeName != "" {
			continue
		}
		without++
		if says := whyUnscheduled(r.pod); ofPod == "" && says != ofGroup {
			ofPod = says
		}
	}
	says := cmp.Or(ofPod, ofGroup)
	if without == 0 || says == "" {
		return ""
	}
	return fmt.Sprintf("waits for %d of %d places: %s", without, members, says)
}
