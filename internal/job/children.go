package job

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is an API object of any kind.
type Object interface {
	metav1.Object
	runtime.Object
}

// ChildKind is a kind of object that a job may want besides its pods, and the rules by which such objects live.
type ChildKind struct {
	// Kind is the API kind, and Group its API group, empty for Kubernetes' first. Messages name both.
	Kind, Group string
	// Required: no pod is created before the job's children of this kind exist. A job runs without children of other kinds.
	Required bool
	// Until is when the children are removed.
	Until Removal
	// Unseen: the operator may create such children but not read them. So each is created, again, before the first pod of an
	// attempt, and one that exists already is what it should be.
	Unseen bool
}

func (k ChildKind) String() string {
	if k.Group == "" {
		return k.Kind
	}
	return k.Kind + "." + k.Group
}

// Removal is the moment at which children of a kind are removed. A suspended job has only those that are removed with the job.
type Removal string

// The moments of removal.
const (
	// RemoveWithLastPod: when the job has ended and no pod is left that could use them. What an earlier version or another
	// operator created for a running job stays until then, too.
	RemoveWithLastPod Removal = "LastPod"
	// RemoveAtEnd: when the job has ended, or does not want them any more.
	RemoveAtEnd Removal = "End"
	// RemoveWhenFinishing: as RemoveAtEnd, but as soon as an elastic job has a replica that succeeded.
	RemoveWhenFinishing Removal = "Finishing"
	// RemoveWithJob: never by us. The garbage collector removes them with the job.
	RemoveWithJob Removal = "Job"
)

// The kinds of children that jobs have.
var (
	// Services let replicas find each other.
	Services = ChildKind{Kind: "Service", Required: true, Until: RemoveWithLastPod}
	// Autoscalers change the number of replicas of elastic jobs.
	Autoscalers = ChildKind{Kind: "HorizontalPodAutoscaler", Group: "autoscaling", Until: RemoveWhenFinishing}
	// Keys are Secrets with which replicas prove to each other that they belong to the same job. Whoever can read Secrets can read
	// those of others, so the operator does not.
	Keys = ChildKind{Kind: "Secret", Required: true, Until: RemoveWithJob, Unseen: true}
)

// Child is an object that a job wants besides its pods: as it should be in a Job, as it is in an Observed.
type Child struct {
	ChildKind
	Object
	// Members is how many pods a pod group places together; 0 for other kinds.
	Members int32
	// Says is what a scheduler says about a pod group that it cannot place; empty for other kinds.
	Says string
	// Changed is the observed object with what the job now wants of it; nil where only Members differs, or nothing does.
	Changed Object
}

// name identifies a child among all children of its job.
func (c Child) name() string { return c.ChildKind.String() + " " + c.GetName() }

// keepChildren creates and updates the children that a running job wants, and removes those that it does not want any
// more. It reports whether pods may be created: not while an object of something else has the name of a required child,
// because then the replicas would not find each other.
func (p *pass) keepChildren() (podsMayFollow bool) {
	existing := map[string]Child{}
	for _, c := range p.Children {
		existing[c.name()] = c
	}
	podsMayFollow = true
	wanted := map[string]bool{}
	for _, want := range p.Job.Children {
		if want.Unseen || !p.wants(want.ChildKind) {
			continue
		}
		if p.Job.Gang != nil && want.ChildKind == p.Job.Gang.Group {
			var inUse bool
			if want, inUse = p.podGroup(want); !inUse {
				continue
			}
		}
		wanted[want.name()] = true
		have, exists := existing[want.name()]
		if !p.keepChild(want, have, exists) && want.Required {
			podsMayFollow = false
		}
	}
	for _, c := range p.Children {
		if !wanted[c.name()] && c.Until != RemoveWithLastPod {
			p.deleteChild(c)
		}
	}
	return podsMayFollow
}

// keepChild creates or updates one child. It reports whether the child exists, or will once the decision is carried out.
func (p *pass) keepChild(want, have Child, exists bool) bool {
	switch {
	case p.Unreadable[want.ChildKind] != "":
		if want.Required {
			p.wait("%s", p.Unreadable[want.ChildKind])
			p.requeueAt(p.Now.Add(UnreadableWait))
		}
		return false
	case want.ChildKind == Autoscalers && p.Job.Unsized:
		p.SizeJob = true
		return false
	case !exists:
		p.CreateChildren = append(p.CreateChildren, want)
	case !owned(have, p.Job):
		p.wait("the %s %s belongs to something else", want.Kind, want.GetName())
		return false
	case have.GetDeletionTimestamp() != nil:
		p.wait("the %s %s is being deleted", want.Kind, want.GetName())
		return false
	case p.mustShrink(want, have):
		have.Members = want.Members
		p.UpdateChildren = append(p.UpdateChildren, have)
	case have.Changed != nil:
		p.UpdateChildren = append(p.UpdateChildren, have)
	}
	return true
}

// createUnseen creates the children that cannot be observed, before the first pods of an attempt.
func (p *pass) createUnseen() {
	for _, want := range p.Job.Children {
		if want.Unseen {
			p.CreateChildren = append(p.CreateChildren, want)
		}
	}
}

// UnreadableWait is how long a job waits before it is asked again whether the cluster serves a kind that it lacked, or lets it be read.
const UnreadableWait = 10 * time.Second

// wants reports whether the job, which runs, still wants children of the kind.
func (p *pass) wants(kind ChildKind) bool {
	return kind.Until != RemoveWhenFinishing || p.next().Finishing.IsZero()
}

// deleteChildren removes children of a job that has ended or is suspended. Those that pods may still use stay until
// podsOver.
func (p *pass) deleteChildren(podsOver bool) {
	cleaned := false
	for _, c := range p.Children {
		if c.Until != RemoveWithLastPod {
			p.deleteChild(c)
		} else if podsOver {
			cleaned = p.deleteChild(c) || cleaned
		}
	}
	if cleaned && p.next().Finished() {
		p.emit(false, p.Job.Kind+"Cleaned", fmt.Sprintf("is cleaned up by cleanPodPolicy %s", p.Job.Policy.CleanPodPolicy))
	}
}

// deleteChild removes a child of this job, unless it is being removed already.
func (p *pass) deleteChild(c Child) bool {
	if c.Until == RemoveWithJob || !owned(c, p.Job) || c.GetDeletionTimestamp() != nil {
		return false
	}
	p.DeleteChildren = append(p.DeleteChildren, c)
	return true
}
