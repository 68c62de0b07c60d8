package manifest

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/job"
)

// Placement is what a job says about how a scheduler should place its replicas together.
type Placement struct {
	// Scheduler is the scheduler that the job names, empty where it takes any.
	Scheduler string
	// MinAvailable is how many must be placed together; nil means all, or those that an elastic job needs.
	MinAvailable *int32
	// Queue is the scheduler's queue, PriorityClass the priority of all replicas that have none of their own.
	Queue, PriorityClass string
	// MinResources is what must be free; nil means the sum of what the replicas request.
	MinResources           *corev1.ResourceList
	ScheduleTimeoutSeconds *int32
	// Topology is how close to each other Volcano places the replicas.
	Topology *Topology
}

// Topology is how close to each other replicas are placed.
type Topology struct {
	Mode               string
	HighestTierAllowed *int
}

// LabelQueue on a job is the queue of Kueue that it waits in.
const LabelQueue = "kueue.x-k8s.io/queue-name"

// GangScheduler is a scheduler that places pods together, and the kind of pod group that it reads.
type GangScheduler struct {
	// Name is that by which the operator's flag names it. For the coscheduling plugin it is any name that a scheduler with that
	// plugin has.
	Name string
	// Group is the kind of its pod groups.
	Group ChildKind
	// scheduler is its name in pods; empty for the cluster's default.
	scheduler string
	// create is the pod group of a job, without its name and number of members.
	create func(m *Manifest) Object
	// join puts a pod into a pod group.
	join func(m *Manifest, pod *corev1.Pod, r job.Replica, group string)
}

// The names by which the operator's flag and a job name schedulers.
const (
	GangKubernetes   = "kubernetes"
	GangVolcano      = "volcano"
	GangCoscheduling = "scheduler-plugins-scheduler"
)

// GangSchedulers are all that are known, in the order in which a job that names none takes the first that the cluster serves.
var GangSchedulers = []GangScheduler{kubernetesGangs, volcanoGangs, coscheduling(GangCoscheduling)}

// GangSchedulerNamed is the scheduler of a name. Every name that is not known is, as in Training Operator, that of a scheduler with the
// coscheduling plugin.
func GangSchedulerNamed(name string) GangScheduler {
	for _, s := range GangSchedulers {
		if s.Name == name {
			return s
		}
	}
	return coscheduling(name)
}

// PlaceTogether lets a scheduler place the job's replicas together. A job of one replica needs nobody for that, and one whose templates
// name another scheduler has chosen that.
func (m *Manifest) PlaceTogether(s GangScheduler) {
	if m.Placement == nil {
		m.Placement = &Placement{}
	}
	m.Job.Gang = &job.Gang{Group: s.Group.ChildKind, MinAvailable: m.Placement.MinAvailable}
	if m.Job.Together() < 2 || !m.mayPlace(s) {
		m.Job.Gang = nil
		return
	}
	m.gangs = &s
	m.Job.Children = append(m.Job.Children, job.Child{ChildKind: s.Group.ChildKind, Object: s.create(m)})
}

// mayPlace reports whether no template of the gang speaks against the scheduler. Kubernetes' own wants one priority for all its members.
func (m *Manifest) mayPlace(s GangScheduler) bool {
	classes := map[string]bool{}
	for _, role := range m.Job.Roles {
		if !m.Job.InGang(role) || m.Job.Size(role) == 0 {
			continue
		}
		spec := m.Templates[role.Name].Spec
		if named := spec.SchedulerName; named != "" && named != s.scheduler && (s.scheduler != "" || named != corev1.DefaultSchedulerName) {
			return false
		}
		classes[m.priorityClass(&spec)] = true
	}
	return s.Name != GangKubernetes || len(classes) == 1
}

// priorityClass is the priority class of pods with the spec.
func (m *Manifest) priorityClass(spec *corev1.PodSpec) string {
	if spec.PriorityClassName != "" || m.Placement == nil {
		return spec.PriorityClassName
	}
	return m.Placement.PriorityClass
}

// joinGang puts a pod into the pod group of its attempt, if its role is placed together with others.
func (m *Manifest) joinGang(pod *corev1.Pod, r job.Replica, attempt int32) {
	if m.gangs == nil || !m.Job.InGang(m.role(r.Role)) {
		return
	}
	pod.Spec.PriorityClassName = m.priorityClass(&pod.Spec)
	if m.gangs.scheduler != "" {
		pod.Spec.SchedulerName = m.gangs.scheduler
	}
	m.gangs.join(m, pod, r, m.Job.GroupName(attempt))
}

// gangClass is the priority class of the whole gang: that of its first role.
func (m *Manifest) gangClass() string {
	for _, role := range m.Job.Roles {
		if m.Job.InGang(role) && m.Job.Size(role) > 0 {
			return m.priorityClass(&m.Templates[role.Name].Spec)
		}
	}
	return ""
}
