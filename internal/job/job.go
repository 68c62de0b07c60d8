package job

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/api/naming"
)

// Job is a training job of any kind, in the neutral form the rules work on. Defaults are already applied.
type Job struct {
	// Kind is the API kind; reasons and messages begin with it.
	Kind            string
	Namespace, Name string
	UID             types.UID
	Generation      int64
	// Deleting says that the job object is being deleted: the garbage collector deletes its children.
	Deleting bool
	// Owned says that another controller created the job, and polls its status.
	Owned bool
	// Manager is the name under which this controller runs jobs of the kind (see RunPolicy.ManagedBy).
	Manager string

	// Roles are in the order in which they are created, counted and named in messages.
	Roles []Role
	// Trains is the role whose training other roles prepare or follow; empty where none waits for another.
	Trains  string
	Policy  RunPolicy
	Success Success
	// Scope is what a failure restarts in jobs of this kind; ScopeOverride is what its user asked for, if anything.
	Scope, ScopeOverride Scope
	// AvoidNodes says how pods are kept from nodes that failed the job.
	AvoidNodes AvoidNodes
	// Gang is set when a scheduler is to place the replicas that train together.
	Gang *Gang
	// LeavesNodes says that the job restarts elsewhere when one of its nodes is about to be drained or maintained.
	LeavesNodes bool
	// ScheduleTimeoutSeconds is how long replicas with a node wait for others that have none, where no scheduler places them together;
	// nil for ever.
	ScheduleTimeoutSeconds *int32
	// Elastic is set when the number of replicas of one role may differ from what was asked.
	Elastic *Elastic

	// Missing says what the job needs before it can begin and does not have yet, Invalid why it can never run as it is
	// written. Both are empty otherwise.
	Missing, Invalid string

	// Children are the objects that the job wants besides its pods while it runs, in the order in which they are created.
	Children []Child
	// Queue is the queue of Kueue that the job waits in, empty for none: Kueue suspends the job until it admits it. Unqueued says why
	// Kueue never can.
	Queue, Unqueued string
	// Misstated says that the job's object names another number of replicas than the job will run. Kueue counts by the object.
	Misstated bool
	// Unsized says that the job wants an autoscaler but its object names no number of replicas, which one could change.
	Unsized bool
}

// Role is a named group of equal replicas.
type Role struct {
	Name          string
	Replicas      int32
	RestartPolicy RestartPolicy
	// Container is the training container, by which a replica is judged.
	Container string
	// MayFinish says that its replicas may go on for FinishWithin when the job has succeeded.
	MayFinish bool
	// Single says that the role has one replica, whose pod is named without an index.
	Single bool
	// After are the roles that this one waits for. No role waits for itself, not by way of others either.
	After []Dependency
}

// Replica is one member of a role. It has at most one pod at a time.
type Replica struct {
	Role  string
	Index int32
}

func (r Replica) String() string { return r.Role + " " + strconv.Itoa(int(r.Index)) }

// compare orders replicas by role and index.
func (r Replica) compare(other Replica) int {
	return cmp.Or(cmp.Compare(r.Role, other.Role), cmp.Compare(r.Index, other.Index))
}

// RunPolicy is the part of the job's spec that says how it is run.
type RunPolicy struct {
	CleanPodPolicy          CleanPodPolicy
	TTLSecondsAfterFinished *int32
	ActiveDeadlineSeconds   *int64
	BackoffLimit            *int32
	Suspend                 bool
	ManagedBy               *string
	// MaxDisruptions is how many disruptions the job survives, nil for any number.
	MaxDisruptions *int32
	// FinishWithin is how long replicas that still train may go on after another has decided that the job succeeded.
	FinishWithin time.Duration
}

// AnnotationBounds on a pod has the bounds of its elastic job that are in its environment.
const AnnotationBounds = "trainyard.dev/elastic-bounds"

// PodName is the name of a replica's pod.
func (j Job) PodName(r Replica) string {
	if role := j.role(r.Role); role != nil && role.Single {
		return j.Name + "-" + strings.ToLower(r.Role)
	}
	return j.Name + "-" + strings.ToLower(r.Role) + "-" + strconv.Itoa(int(r.Index))
}

// Size is the number of replicas the role should have now.
func (j Job) Size(role Role) int32 {
	if j.Elastic != nil && j.Elastic.Role == role.Name {
		return min(max(role.Replicas, j.Elastic.Min), j.Elastic.Max)
	}
	return max(role.Replicas, 0)
}

// total is the number of replicas that train.
func (j Job) total() int32 {
	var n int64
	for _, role := range j.Roles {
		if !j.prepares(role.Name) {
			n += int64(j.Size(role))
		}
	}
	return int32(min(n, math.MaxInt32))
}

func (j Job) role(name string) *Role {
	for i := range j.Roles {
		if j.Roles[i].Name == name {
			return &j.Roles[i]
		}
	}
	return nil
}

// replicaOf reads from its labels which replica a pod is, and of which attempt.
func (j Job) replicaOf(pod *corev1.Pod) (Replica, int32, bool) {
	index, err := strconv.ParseInt(pod.Labels[naming.LabelReplicaIndex], 10, 32)
	if err != nil || index < 0 {
		return Replica{}, 0, false
	}
	attempt, err := strconv.ParseInt(pod.Labels[naming.LabelAttempt], 10, 32)
	if err != nil {
		attempt = 0
	}
	for _, role := range j.Roles {
		if strings.EqualFold(role.Name, pod.Labels[naming.LabelReplicaType]) {
			return Replica{role.Name, int32(index)}, int32(attempt), true
		}
	}
	return Replica{}, 0, false
}
