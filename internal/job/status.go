package job

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Status is everything a job knows about its past. All times are whole seconds in UTC.
type Status struct {
	Conditions     []Condition
	Roles          []RoleStatus
	StartTime      time.Time
	CompletionTime time.Time

	ObservedGeneration int64
	// Attempt is the number of the present run of the gang, from 0.
	Attempt int32
	// Retries are the incidents charged to the backoff limit; Disruptions those that are not the job's fault.
	Retries, Disruptions int32
	LastFailure          *Failure
	// Attempts are the last ten runs, the present one included.
	Attempts []Attempt
	// Message is one sentence on what the job waits for, or why it failed.
	Message string
	// Ready is the number of replicas that train, of those there should be: "3/4".
	Ready string

	// NotBefore is the earliest moment at which the present attempt may start.
	NotBefore time.Time
	// InARow is the number of restarts of the gang that followed each other quickly; it lengthens the delay of the next.
	InARow int32
	// AvoidNodes are the nodes that failed the job, the newest last.
	AvoidNodes []AvoidedNode
	// Finishing is the moment since which an elastic job has a worker that succeeded.
	Finishing time.Time
	// Records are the replicas of the present attempt that did not simply run.
	Records []Record
}

// RoleStatus is the state of one role in the present attempt.
type RoleStatus struct {
	Role string
	// Size is the number of replicas that the attempt began with, or was scaled to.
	Size int32
	// Active, Succeeded and Failed count pods as they are.
	Active, Succeeded, Failed int32
	// Started are the replicas whose training was seen to run in their present pod, Done those that succeeded; both sorted.
	Started, Done []int32
}

// Attempt is one run of the gang. End is zero and Reason empty while it runs.
type Attempt struct {
	Number     int32
	Start, End time.Time
	Reason     string
	Message    string
}

// Why an attempt ended.
const (
	ReasonSucceeded        = "Succeeded"
	ReasonFailed           = "Failed"           // a failure that may not be retried
	ReasonBackoffLimit     = "BackoffLimit"     // one failure too many
	ReasonDeadlineExceeded = "DeadlineExceeded" // active longer than it may
	ReasonRefused          = "Refused"          // it cannot be run as it is written, or the API server never accepts a child
	ReasonMaxDisruptions   = "MaxDisruptions"   // one disruption too many
	ReasonRestarted        = "Restarted"        // a failure, charged
	ReasonDisrupted        = "Disrupted"        // a failure, not charged
	ReasonScaled           = "Scaled"           // another number of replicas was asked for
	ReasonUnplaced         = "Unplaced"         // a part of it held places for too long
	ReasonSuspended        = "Suspended"
)

// Record is what a job remembers of one replica so that each of its failures is charged exactly once.
type Record struct {
	Replica
	// Pod is the pod that this record is about.
	Pod types.UID
	// Failures is the number of charged failures of Pod after which the kubelet restarted the container.
	Failures int32
	// Handled says that Pod's end is charged: it is not read again, and must be gone before another is created.
	Handled bool
	// InARow is the number of replacements of the replica that followed each other quickly; it lengthens the delay of the next.
	InARow int32
	// NotBefore is the earliest moment for a new pod.
	NotBefore time.Time
	// Lost says that the replica is not replaced: its restart policy forbids it and the elastic job lives on without.
	Lost bool
}

const attemptsKept = 10

func (s Status) clone() Status {
	s.Conditions = slices.Clone(s.Conditions)
	s.Roles = slices.Clone(s.Roles)
	for i := range s.Roles {
		s.Roles[i].Started = slices.Clone(s.Roles[i].Started)
		s.Roles[i].Done = slices.Clone(s.Roles[i].Done)
	}
	s.Attempts = slices.Clone(s.Attempts)
	s.Records = slices.Clone(s.Records)
	slices.SortFunc(s.Records, func(a, b Record) int { return a.Replica.compare(b.Replica) })
	s.AvoidNodes = slices.Clone(s.AvoidNodes)
	return s
}

// role returns the status of the named role, and adds it if there is none.
func (s *Status) role(name string) *RoleStatus {
	for i := range s.Roles {
		if s.Roles[i].Role == name {
			return &s.Roles[i]
		}
	}
	s.Roles = append(s.Roles, RoleStatus{Role: name})
	return &s.Roles[len(s.Roles)-1]
}

// record returns what is remembered of a replica, nil if nothing is.
func (s *Status) record(r Replica) *Record {
	if i, found := s.findRecord(r); found {
		return &s.Records[i]
	}
	return nil
}

// findRecord is where the record of a replica is, or would be. Records are sorted: a job of thousands of replicas may have one of
// each, and every pass looks for them all.
func (s *Status) findRecord(r Replica) (int, bool) {
	return slices.BinarySearchFunc(s.Records, r, func(rec Record, r Replica) int { return rec.Replica.compare(r) })
}

// recordOf returns the replica's record, reset if it was about another pod.
func (s *Status) recordOf(r Replica, pod types.UID) *Record {
	i, found := s.findRecord(r)
	if !found {
		s.Records = slices.Insert(s.Records, i, Record{Replica: r})
	}
	rec := &s.Records[i]
	if rec.Pod != pod {
		rec.Pod, rec.Failures, rec.Handled = pod, 0, false
	}
	return rec
}

// trimmed drops the records that say nothing any more, and of the others what says nothing any more: a delay that has passed. A record
// is idle where the replica trains in the pod that the record is about, nothing of that pod is charged, and no delay is left. A job of
// thousands of replicas would outgrow what the API server stores.
func (p *pass) trimmed(records []Record) []Record {
	if len(records) == 0 {
		return records
	}
	records = slices.Clone(records)
	for i := range records {
		if rec := &records[i]; !p.Now.Before(rec.NotBefore) {
			rec.NotBefore = time.Time{}
		}
	}
	pods := map[Replica]replica{}
	for _, r := range p.replicas {
		pods[r.Replica] = r
	}
	idle := func(rec Record) bool {
		r := pods[rec.Replica]
		healthy := rec.InARow == 0 || !r.runFrom.IsZero() && p.Now.Sub(r.runFrom) >= healthyAfter
		return r.pod != nil && r.pod.UID == rec.Pod && r.running && contains(p.next().role(rec.Role).Started, rec.Index) &&
			!rec.Handled && !rec.Lost && rec.Failures == 0 && rec.NotBefore.IsZero() && healthy
	}
	return slices.DeleteFunc(records, idle)
}

// openAttempt begins the run numbered s.Attempt. It forgets the replicas of the run before, except work that is done for good.
func (s *Status) openAttempt(now time.Time, keepsDone func(role string) bool) {
	for i := range s.Roles {
		s.Roles[i].Started = nil
		if !keepsDone(s.Roles[i].Role) {
			s.Roles[i].Done = nil
		}
	}
	s.Records, s.NotBefore, s.Finishing = nil, time.Time{}, time.Time{}
	s.Attempts = append(s.Attempts, Attempt{Number: s.Attempt, Start: ceil(now)})
	if extra := len(s.Attempts) - attemptsKept; extra > 0 {
		s.Attempts = slices.Delete(s.Attempts, 0, extra)
	}
}

// closeAttempt writes down why the present run ended.
func (s *Status) closeAttempt(now time.Time, reason, message string) {
	if n := len(s.Attempts); n > 0 && s.Attempts[n-1].End.IsZero() {
		last := &s.Attempts[n-1]
		last.End, last.Reason, last.Message = ceil(now), reason, message
	}
}

// reopenAttempt forgets that the last run ended.
func (s *Status) reopenAttempt() {
	if n := len(s.Attempts); n > 0 {
		last := &s.Attempts[n-1]
		last.End, last.Reason, last.Message = time.Time{}, "", ""
	}
}

// endReason is why the last attempt ended, empty while it runs.
func (s *Status) endReason() string {
	if n := len(s.Attempts); n > 0 {
		return s.Attempts[n-1].Reason
	}
	return ""
}

// ceil is the first whole second at or after t. Stored times are whole seconds, and a timer that starts from one that
// was rounded down would act early.
func ceil(t time.Time) time.Time {
	whole := t.UTC().Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return whole
}

// insert adds i to a sorted set.
func insert(set []int32, i int32) []int32 {
	at, found := slices.BinarySearch(set, i)
	if found {
		return set
	}
	return slices.Insert(set, at, i)
}

// remove takes i out of a sorted set; an empty set is nil.
func remove(set []int32, i int32) []int32 {
	if at, found := slices.BinarySearch(set, i); found {
		set = slices.Delete(set, at, at+1)
	}
	if len(set) == 0 {
		return nil
	}
	return set
}

func contains(set []int32, i int32) bool {
	_, found := slices.BinarySearch(set, i)
	return found
}
