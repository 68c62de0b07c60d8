package job

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kubelets of the world write the truth on their pods, so that the oracle need not judge pods the way the rules do.
const (
	truthInPlace = "truth/failures-in-place"
	truthTime    = "truth/ended-by-itself"
	truthFailed  = "truth/failed"
	truthDone    = "truth/done"
)

// oracle watches everything the controller does and keeps its own count, with a memory that never fails. It speaks up
// when one of the invariants of the design is broken.
type oracle struct {
	w     *world
	fault func(format string, args ...any)

	end Condition // the verdict as it was first recorded
	// shown is, by pod, how many application failures a recorded pass was shown; dismissed are pods that count no more.
	shown     map[types.UID]int32
	dismissed map[types.UID]bool
	succeeded map[string]bool
	// ended are the replicas that truly succeeded, in any attempt; prepared those of them whose work was recorded as done for
	// all later attempts.
	ended, prepared map[Replica]bool
	// trained is of how many nodes the training was whose end is recorded, 0 where there is none.
	trained int32
	// harmed are the classes of what truly went wrong, by attempt.
	harmed map[int32]map[Class]int
	// adrift are the attempts in which the pod that holds an elastic job's rendezvous was truly harmed; restarts are the
	// charged ones among those that were followed by another attempt.
	adrift    map[int32]bool
	restarts  int32
	notBefore map[int32]time.Time
	// row is the number of restarts of the whole job that followed each other quickly.
	row int32
}

func watchOver(w *world, fault func(string, ...any)) *oracle {
	o := &oracle{w: w, fault: fault, shown: map[types.UID]int32{}, dismissed: map[types.UID]bool{}, succeeded: map[string]bool{},
		ended: map[Replica]bool{}, prepared: map[Replica]bool{},
		harmed: map[int32]map[Class]int{}, adrift: map[int32]bool{}, notBefore: map[int32]time.Time{}}
	w.watch = o
	return o
}

// harm notes that something truly went wrong with a pod.
func (or *oracle) harm(pod *corev1.Pod, class Class) {
	r, attempt, _ := or.w.job.replicaOf(pod)
	or.adrift[attempt] = or.adrift[attempt] || r.Index == 0
	if or.harmed[attempt] == nil {
		or.harmed[attempt] = map[Class]int{}
	}
	or.harmed[attempt][class]++
}

// done notes that a pod's training truly succeeded.
func (or *oracle) done(pod *corev1.Pod) {
	r, _, _ := or.w.job.replicaOf(pod)
	or.ended[r] = true
}

// Invariant 8: deciding twice on the same facts gives the same decision.
func (or *oracle) decided(o Observed, d Decision) {
	if again := Decide(o); !reflect.DeepEqual(d, again) {
		or.fault("8: decided twice, differently:\n%+v\n%+v", d, again)
	}
}

func (or *oracle) recorded(o Observed, d Decision) {
	or.checkVerdict(d.Status)
	or.checkConditions(d.Status)
	if !o.Status.Finished() && !o.Job.Policy.Suspend {
		or.checkCounts(o, d)
	}
	or.note(o, d)
}

// Invariant 1: a verdict never changes.
func (or *oracle) checkVerdict(s Status) {
	for _, c := range s.Conditions {
		if c.Type != Succeeded && c.Type != Failed {
			continue
		}
		if !c.Status {
			or.fault("1: terminal condition %s is false", c.Type)
		}
		if or.end.Type == "" {
			or.end = c
		}
		if or.end != c {
			or.fault("1: the verdict was %+v and is %+v", or.end, c)
		}
	}
	if or.end.Type != "" && (!s.Finished() || s.CompletionTime.IsZero()) {
		or.fault("1: the verdict %s is gone", or.end.Type)
	}
}

func (or *oracle) checkConditions(s Status) {
	if len(s.Conditions) == 0 || s.condition(Created) == nil || !s.Conditions[len(s.Conditions)-1].Status {
		or.fault("conditions without a newest that holds: %+v", s.Conditions)
	}
	newest := s.Conditions[len(s.Conditions)-1]
	if newest.Type != Created && s.Conditions[0].Type != Created {
		or.fault("Created is not the first of the conditions: %+v", s.Conditions)
	}
	if newest.Type == Suspended {
		newest = *s.condition(Created) // by the times a suspended job waits
	}
	for _, c := range s.Conditions {
		if c.Status && c.Type != newest.Type && newest.LastTransition.Sub(c.LastTransition) < time.Second {
			or.fault("%s does not rise above %s by a second", newest.Type, c.Type)
		}
	}
}

// Invariants 2 and 7: a retry is counted exactly once, and nothing is counted that did not happen.
func (or *oracle) checkCounts(o Observed, d Decision) {
	was, is := o.Status, d.Status
	ended := is.endReason()
	if o.Job.RestartScope() == ScopeJob {
		failed := is.Attempt - was.Attempt
		for i := max(0, len(is.Attempts)-2); i < len(is.Attempts); i++ {
			a := is.Attempts[i]
			if a.Number < was.Attempt || a.Reason == "" {
				continue
			}
			if a.Reason != ReasonRestarted && a.Reason != ReasonDisrupted && a.Number < is.Attempt {
				failed--
			}
			or.checkHarm(a)
			or.checkPlaces(o, a)
		}
		if counted := is.Retries + is.Disruptions - was.Retries - was.Disruptions; counted != failed && !is.Finished() {
			or.fault("2: %d attempts failed, %d were counted", failed, counted)
		}
		return
	}
	if ended == ReasonSucceeded || ended == ReasonDeadlineExceeded || ended == ReasonRefused || !is.Finishing.IsZero() {
		return
	}
	or.checkRendezvous(o, is)
	or.recount(o, is.Attempt)
	want := or.restarts
	for _, n := range or.shown {
		want += n
	}
	if is.Retries != want && !is.Finished() || is.Retries > want {
		or.fault("2: %d retries are recorded, %d failures were shown", is.Retries, want)
	}
	disruptions := 0
	for _, h := range or.harmed {
		disruptions += h[Disruption]
	}
	if int(is.Disruptions) > disruptions {
		or.fault("7: %d disruptions are recorded, %d happened", is.Disruptions, disruptions)
	}
}

// otherBounds reports whether pods are seen that know other bounds than the job has.
func otherBounds(o Observed) bool {
	return o.Job.Elastic != nil && slices.ContainsFunc(o.Pods, func(pod *corev1.Pod) bool {
		told := pod.Annotations[AnnotationBounds]
		return told != "" && told != o.Job.Elastic.Bounds()
	})
}

// checkRendezvous sees that an elastic job begins another attempt when the replica that holds its rendezvous is lost, and
// never because of scaling within its bounds or of any other.
func (or *oracle) checkRendezvous(o Observed, is Status) {
	for _, a := range is.Attempts {
		if a.Number < o.Status.Attempt || a.Number == is.Attempt || a.Reason == ReasonSuspended {
			continue
		}
		or.checkHarm(a)
		if a.Reason == ReasonScaled && (o.Job.gang() || otherBounds(o)) {
			continue
		}
		if !anchored(o.Job) || !or.adrift[a.Number] {
			or.fault("3: attempt %d ended though nothing has happened to its rendezvous: %s: %s", a.Number, a.Reason, a.Message)
		}
		if a.Reason == ReasonRestarted {
			or.restarts++
		}
	}
	if is.Finished() || is.Attempt > o.Status.Attempt {
		return
	}
	// A pod that ended by itself is judged after siblingWait, three seconds, and one more for the clocks.
	if pod := or.rendezvousFailed(o, is.Attempt); pod != nil && !or.undecided(o, pod, 4*time.Second) {
		or.fault("3: attempt %d goes on though %s, which held its rendezvous, has failed", is.Attempt, pod.Name)
	}
}

// checkHarm sees that an attempt that is said to have failed did, by what it is said to have.
func (or *oracle) checkHarm(a Attempt) {
	harm := or.harmed[a.Number]
	switch {
	case a.Reason == ReasonRestarted && harm[Application] == 0:
		or.fault("7: attempt %d is charged, but nothing failed: %s", a.Number, a.Message)
	case a.Reason == ReasonDisrupted && harm[Disruption] == 0:
		or.fault("7: attempt %d was disrupted by nothing: %s", a.Number, a.Message)
	}
}

// checkPlaces sees that an attempt gives its places up only if truly a part of its members had them while others had none, and all were there for
// scheduleTimeoutSeconds.
func (or *oracle) checkPlaces(o Observed, a Attempt) {
	if a.Reason != ReasonUnplaced || a.Number < o.Status.Attempt {
		return
	}
	placed, waiting := 0, 0
	for _, pod := range or.w.pods {
		r, attempt, ok := o.Job.replicaOf(pod)
		if !ok || !or.w.belongs(pod) || attempt != a.Number || !o.Job.InGang(*o.Job.role(r.Role)) {
			continue
		}
		if pod.Spec.NodeName == "" {
			waiting++
		} else {
			placed++
		}
		if due := pod.CreationTimestamp.Add(time.Duration(*o.Job.ScheduleTimeoutSeconds) * time.Second); o.Now.Before(due) {
			or.fault("6: attempt %d gives its places up before %s has waited", a.Number, pod.Name)
		}
	}
	if placed == 0 || waiting == 0 {
		or.fault("7: attempt %d gives its places up, though %d of its pods have a node and %d have none", a.Number, placed, waiting)
	}
}

// recount counts the failures of the present attempt's pods that were shown, each pod's by its UID.
func (or *oracle) recount(o Observed, present int32) {
	if or.rendezvousFailed(o, present) != nil {
		return // the others' failures are part of that, or will be
	}
	for _, pod := range o.Pods {
		r, attempt, ok := o.Job.replicaOf(pod)
		if !or.w.belongs(pod) || !ok || attempt != present || or.dismissed[pod.UID] || or.succeeded[key(attempt, r)] {
			continue
		}
		if r.Index >= o.Job.Size(*o.Job.role(r.Role)) {
			continue
		}
		fallen := pod.Annotations[truthFailed]
		byOthers := fallen == "evicted" || fallen == "refused" || pod.DeletionTimestamp != nil // then it is judged whole, and now
		if r.Index > 0 && !byOthers && or.undecided(o, pod, 3*time.Second) {
			continue
		}
		inPlace, _ := strconv.Atoi(pod.Annotations[truthInPlace])
		n := int32(inPlace)
		code, _ := strconv.Atoi(fallen)
		if policy := o.Job.role(r.Role).RestartPolicy; code >= 128 && policy == RestartExitCode || code > 0 && policy == RestartOnFailure {
			n++
		}
		or.shown[pod.UID] = max(or.shown[pod.UID], n)
		if fallen != "" || pod.DeletionTimestamp != nil {
			or.dismissed[pod.UID] = true
		}
	}
}

// undecided reports whether an end by itself, so long ago at most, may yet turn out to be the consequence of another that
// cost an elastic job its rendezvous.
func (or *oracle) undecided(o Observed, pod *corev1.Pod, ago time.Duration) bool {
	last, err := time.Parse(time.RFC3339, pod.Annotations[truthTime])
	return err == nil && anchored(o.Job) && o.Now.Before(last.Add(ago))
}

func anchored(j Job) bool { return j.Elastic != nil && j.Elastic.Anchored }

// rendezvousFailed returns the pod that holds the rendezvous if it was seen to have failed.
func (or *oracle) rendezvousFailed(o Observed, present int32) *corev1.Pod {
	for _, pod := range o.Pods {
		r, attempt, ok := o.Job.replicaOf(pod)
		if ok && anchored(o.Job) && or.w.belongs(pod) && r.Index == 0 && attempt == present && pod.Annotations[truthFailed] != "" && pod.Annotations[truthFailed] != "refused" &&
			pod.Annotations[truthDone] == "" {
			return pod
		}
	}
	return nil
}

// note remembers what a recorded pass was shown.
func (or *oracle) note(o Observed, d Decision) {
	if o.Job.Policy.Suspend {
		return
	}
	for _, pod := range o.Pods {
		// One that is to go by a scale counts no more, unless the record of that, or the job's edit, came to nothing.
		if r, _, ok := o.Job.replicaOf(pod); ok && r.Index >= o.Job.Size(*o.Job.role(r.Role)) {
			rec := d.Status.record(r)
			or.dismissed[pod.UID] = or.dismissed[pod.UID] || rec != nil && rec.Pod == pod.UID && rec.Handled
		}
		if r, _, ok := o.Job.replicaOf(pod); ok && or.leavesNode(pod) { // nor does one that leaves its node
			rec := d.Status.record(r)
			or.dismissed[pod.UID] = or.dismissed[pod.UID] || rec != nil && rec.Pod == pod.UID && rec.Handled
		}
		if r, attempt, ok := o.Job.replicaOf(pod); ok && or.w.belongs(pod) && attempt == o.Status.Attempt && pod.Annotations[truthDone] != "" &&
			!or.dismissed[pod.UID] && r.Index < o.Job.Size(*o.Job.role(r.Role)) && d.Write != WriteLater {
			or.succeeded[key(attempt, r)] = true
			or.prepared[r] = or.prepared[r] || prepares(o.Job, r.Role)
		}
	}
	or.recordTraining(o)
	or.noteRestart(o, d.Status)
}

// noteRestart keeps from when the next attempt may begin, by its own count of the restarts that followed each other quickly.
func (or *oracle) noteRestart(o Observed, s Status) {
	n := slices.IndexFunc(s.Attempts, func(a Attempt) bool { return a.Number == o.Status.Attempt })
	if s.Attempt == o.Status.Attempt || n < 0 {
		return
	}
	if s.Attempts[n].Reason == ReasonUnplaced { // others must have time to take the places
		or.row++
		or.notBefore[s.Attempt] = o.Now.Add(restartDelay(or.row + 1))
		return
	}
	if s.Attempts[n].Reason != ReasonRestarted && s.Attempts[n].Reason != ReasonDisrupted {
		return
	}
	healthy := o.Status.Is(Running) && o.Now.Sub(o.Status.condition(Running).LastTransition) >= 10*time.Minute
	switch {
	case !healthy:
		or.row++
	case s.Attempts[n].Reason == ReasonDisrupted:
		or.row = 0
	default:
		or.row = 1
	}
	since := s.LastFailure.Time // a clock that is behind shortens no delay by more than siblingWait
	if since.After(o.Now) || o.Now.Sub(since) > siblingWait {
		since = o.Now.Add(-siblingWait)
	}
	or.notBefore[s.Attempt] = since.Add(restartDelay(or.row))
}

// recordTraining keeps of how many nodes the training was that is complete, where a step may follow it.
func (or *oracle) recordTraining(o Observed) {
	if o.Job.Kind != "TrainJob" {
		return
	}
	n := o.Job.Size(*o.Job.role("node"))
	for i := range n {
		if !or.succeeded[key(o.Status.Attempt, Replica{"node", i})] {
			return
		}
	}
	or.trained = n
}

func key(attempt int32, r Replica) string { return fmt.Sprint(attempt, " ", r) }

// Invariants 3, 5 and 6 at the birth of a pod.
func (or *oracle) created(pod *corev1.Pod) {
	r, attempt, _ := or.w.job.replicaOf(pod)
	for _, other := range or.w.pods {
		if _, older, _ := or.w.job.replicaOf(other); or.w.belongs(other) && older < attempt {
			or.fault("3: pod %s of attempt %d is created while %s of attempt %d exists", pod.Name, attempt, other.Name, older)
		}
	}
	if or.succeeded[key(attempt, r)] {
		or.fault("5: %s has succeeded in attempt %d and is run again", r, attempt)
	}
	if or.prepared[r] {
		or.fault("5: %s has prepared the others and is run again in attempt %d", r, attempt)
	}
	if r.Role == "node" {
		if n := or.asked("node"); n <= or.trained {
			or.fault("5: %s is run again in attempt %d, though the training of %d nodes is complete", r, attempt, or.trained)
		}
		or.trained = 0
	}
	for _, d := range or.w.job.role(r.Role).After {
		for i := range or.w.job.Size(*or.w.job.role(d.Role)) {
			if d.Until == MilestoneComplete && !or.ended[Replica{d.Role, i}] {
				or.fault("%s is started before %s %d has ended", r, d.Role, i)
			}
		}
	}
	if or.w.now.Before(or.notBefore[attempt]) {
		or.fault("6: attempt %d is created at %s, before its delay is over at %s", attempt, or.w.now, or.notBefore[attempt])
	}
	if or.w.status.Finished() {
		or.fault("4: %s is created after the verdict", pod.Name)
	}
	if !or.w.status.Finishing.IsZero() {
		or.fault("5: %s is created after a worker has succeeded", pod.Name)
	}
	if n := or.asked(r.Role); r.Index >= n {
		or.fault("%s is created, and %d replicas of %s are asked for", pod.Name, n, r.Role)
	}
}

// asked is how many replicas of a role the job had to have when the controller last looked at it.
func (or *oracle) asked(role string) int32 {
	seen := or.w.jobs[or.w.seenJob]
	n := seen.role(role).Replicas
	if e := seen.Elastic; e != nil && e.Role == role && n < e.Min {
		return e.Min
	} else if e != nil && e.Role == role && n > e.Max {
		return e.Max
	}
	return n
}

// Invariants 3 and 9 at the death of a pod.
func (or *oracle) deleting(pod *corev1.Pod, force bool) {
	if !or.w.belongs(pod) {
		or.fault("9: %s of another job is deleted", pod.Name)
	}
	if force && (or.w.deadNodes[pod.Spec.NodeName] == "" || pod.DeletionTimestamp == nil || or.w.now.Before(pod.DeletionTimestamp.Add(stuckPodWait))) {
		or.fault("3: %s is removed by force though its node may be running it", pod.Name)
	}
	or.checkUntouched(pod)
}

// checkUntouched sees that scaling an elastic job stops nobody but those it removes, and those only at the top end.
func (or *oracle) checkUntouched(pod *corev1.Pod) {
	seen := or.w.jobs[or.w.seenJob]
	r, attempt, _ := seen.replicaOf(pod)
	if seen.Elastic == nil || seen.Policy.Suspend || or.w.status.Finished() || attempt < or.w.status.Attempt || or.dismissed[pod.UID] {
		return
	}
	fell := pod.Annotations[truthFailed] != "" || pod.DeletionTimestamp != nil || or.waitsInVain(pod) || or.leavesNode(pod)
	if r.Index < or.asked(r.Role) && !fell {
		or.fault("%s is well and wanted, and is deleted", pod.Name)
	}
}

// waitsInVain reports whether a pod has found no node for five minutes because it must not run on those that the job avoids.
func (or *oracle) waitsInVain(pod *corev1.Pod) bool {
	return pod.Annotations[AnnotationRequiresOtherNodes] != "" && pod.Spec.NodeName == "" && !or.w.now.Before(pod.CreationTimestamp.Add(5*time.Minute))
}

// leavesNode reports whether a pod is on a node that the job is to leave.
func (or *oracle) leavesNode(pod *corev1.Pod) bool {
	return or.w.leaving[pod.Spec.NodeName] && or.w.jobs[or.w.seenJob].LeavesNodes
}

// belongs reads the owner by itself: the oracle does not trust the rules.
func (w *world) belongs(pod *corev1.Pod) bool { return pod.OwnerReferences[0].UID == "j1" }

// prepares knows by itself which steps of a TrainJob are there for the nodes.
func prepares(j Job, role string) bool {
	return j.Kind == "TrainJob" && (role == "dataset" || role == "model")
}
