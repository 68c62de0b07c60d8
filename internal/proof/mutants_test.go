package proof

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var withMutants = flag.Bool("proof.mutants", false, "build each planted bug, and see that its test finds it")

// mutant is a planted bug: an edit of one place of the code, and the test that finds it.
type mutant struct {
	bug      string
	file     string // below internal
	old, new string
	test     string // package below internal and test
	only     string // the histories to run, if not all
}

// Each planted bug can still be planted, is in the table of docs/proof.md with its test, and is found by it. The last is tried where
// -proof.mutants says so: each bug needs a build.
func TestMutants(t *testing.T) {
	page, err := os.ReadFile("../../docs/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.bug, func(t *testing.T) {
			original := filepath.Join("..", m.file)
			text, err := os.ReadFile(original)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), m.old); n != 1 {
				t.Fatalf("the place of the bug is %d times in %s:\n%s", n, m.file, m.old)
			}
			_, test, _ := strings.Cut(m.test, " ")
			if row := "| " + m.bug + " | `" + m.file + "` | `" + test + "` |"; !strings.Contains(string(page), row) {
				t.Errorf("docs/proof.md lacks the row\n%s", row)
			}
			if *withMutants {
				findBug(t, m, strings.Replace(string(text), m.old, m.new, 1))
			}
		})
	}
}

// findBug runs a test with one file replaced, and sees that it fails.
func findBug(t *testing.T, m mutant, text string) {
	t.Helper()
	pkg, test, _ := strings.Cut(m.test, " ")
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	absolute, err := filepath.Abs(filepath.Join("..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {absolute: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{changed: []byte(text), overlay: replace} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"test", "-vet=off", "-count=1", "-overlay", overlay, "-run", "^" + test + "$", "./../" + pkg}
	if m.only != "" {
		args = append(args, "-proof.only", m.only)
	}
	output, err := exec.Command("go", args...).CombinedOutput()
	if err == nil || !strings.Contains(string(output), "--- FAIL: "+test) {
		t.Errorf("%s does not find the bug: %v\n%s", test, err, output)
	}
}

// mutants are the planted bugs.
var mutants = []mutant{
	{
		"a pod is deleted before the status says why", "controller/reconcile.go",
		"	recorded, later, err := p.record(ctx, decision)\n",
		"	if len(decision.DeletePods) > 0 {\n		_ = p.deletePod(ctx, decision.DeletePods[0])\n	}\n	recorded, later, err := p.record(ctx, decision)\n",
		"proof TestFaults", "a replica restarts alone, request",
	},
	{
		"the timer of a decision is forgotten", "controller/reconcile.go",
		"	if !d.RequeueAt.IsZero() {\n		shorten(d.RequeueAt.Sub(p.now()))\n	}\n", "", "proof TestFaults", "the active deadline ends the job, undisturbed",
	},
	{
		"a lost deletion is not asked for again", "controller/reconcile.go",
		"	if len(d.DeletePods) > 0 || d.DeleteJob {\n", "	if false {\n", "proof TestFaults", "a worker fails and the gang restarts, request",
	},
	{
		"children are watched, but wake nobody", "controller/setup.go",
		"		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { wake(e.ObjectNew, q) },\n", "", "proof TestFaults", "a job begins suspended, undisturbed",
	},
	{
		"a pod's failure is charged on the word of a cache", "job/restart.go",
		"	if len(p.incidents)+len(p.refusals) > 0 && !p.Live {\n		p.Ask.Pods = true\n	}\n", "", "job TestInvariants", "",
	},
	{
		"a status that may be old is acted on", "job/decide.go",
		"if d.acts() && d.Write != WriteNow && !p.Fresh {", "if false {", "job TestInvariants", "",
	},
	{
		"the next attempt starts while pods of the last one exist", "job/run.go",
		"	if len(p.outdated) > 0 || !s.Finishing.IsZero() {", "	if !s.Finishing.IsZero() {", "job TestInvariants", "",
	},
	{
		"the first pod of an attempt is created on the word of a cache", "job/run.go",
		"		p.Ask.Pods = p.Ask.Pods || !p.Live\n", "", "job TestInvariants", "",
	},
	{
		"a verdict is given again", "job/decide.go",
		"	case p.next().Finished():\n		p.progress()\n		p.clean()\n", "	case false:\n", "job TestTakeOverFromTrainingOperator", "",
	},
	{
		"a replica that succeeded is run again", "job/run.go",
		"	if p.done(r) || p.foreign[p.Job.PodName(r)] {", "	if p.foreign[p.Job.PodName(r)] {", "job TestInvariants", "",
	},
	{
		"a pod of an earlier job is adopted", "job/pass.go",
		"	return owner != nil && owner.UID == j.UID\n", "	return owner != nil\n", "job TestInvariants", "",
	},
	{
		"failures are counted by the pod's phase", "job/pod.go",
		"	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {\n		return true\n	}\n	n := len(pod.Status.ContainerStatuses)\n",
		"	if true {\n		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed\n	}\n	n := len(pod.Status.ContainerStatuses)\n",
		"job TestAPodIsOver", "",
	},
	{
		"a handled pod is charged again", "job/restart.go",
		"		rec = s.recordOf(i.replica.Replica, i.pod.UID)\n		rec.Handled = true\n", "		rec = s.recordOf(i.replica.Replica, i.pod.UID)\n", "job TestInvariants", "",
	},
	{
		"failures in place are charged again at each pass", "job/restart.go",
		"		return rec.Failures\n", "		return 0\n", "job TestInvariants", "",
	},
	{
		"a pod that vanished is not noticed", "job/restart.go",
		"		case contains(p.next().role(r.Role).Started, r.Index):\n			p.addIncident(r, vanished(p.Job, r.Replica), 0)\n", "", "job TestStories", "",
	},
	{
		"a disruption is charged", "job/restart_policy.go",
		"		return true, f.Class == Application\n", "		return true, true\n", "job TestInvariants", "",
	},
	{
		"every member of a gang that fails is charged", "job/restart.go",
		"	if p.scope() == ScopeJob {\n		if i := p.culprit(); i != nil && i.newInPlace == 0 {\n			return []incident{*i}\n		}\n	}\n	return p.incidents\n",
		"	return p.incidents\n", "job TestInvariants", "",
	},
	{
		"a gang is judged before its other members can report", "job/restart.go",
		"			return culprit.Time.Add(siblingWait)\n", "			return time.Time{}\n", "job TestStories", "",
	},
	{
		"one retry too many is allowed", "job/backoff_limit.go",
		"p.next().Retries+p.newCharges() <= *limit", "p.next().Retries+p.newCharges() <= *limit+1", "job TestStories", "",
	},
	{
		"the deadline acts a second early", "job/active_deadline_seconds.go",
		"	due := at(p.next().StartTime, *seconds)\n", "	due := at(p.next().StartTime, *seconds-1)\n", "job TestStories", "",
	},
	{
		"the deadline is not looked forward to", "job/active_deadline_seconds.go",
		"		p.requeueAt(due)\n", "", "job TestInvariants", "",
	},
	{
		"the time to live is not looked forward to", "job/ttl_seconds_after_finished.go",
		"		p.requeueAt(due)\n", "", "job TestInvariants", "",
	},
	{
		"stored times are rounded down", "job/status.go",
		"	if whole.Before(t) {\n		whole = whole.Add(time.Second)\n	}\n", "", "job TestActiveDeadline", "",
	},
	{
		"the delay before a restart is not kept", "job/run.go",
		"	if p.Now.Before(s.NotBefore) {\n		p.requeueAt(s.NotBefore)\n		return\n	}\n", "", "job TestInvariants", "",
	},
	{
		"places are released while all replicas wait for one", "job/schedule_timeout_seconds.go",
		"without == 0 || without == members", "without == 0", "job TestInvariants", "",
	},
	{
		"a pod is removed by force though its kubelet reports", "job/stuck.go",
		"		case state == NodeGone || state == NodeOutOfService || state == NodeUnreachable:", "		case state != NodeUnknown:", "job TestInvariants", "",
	},
	{
		"a job leaves the same node again and again", "job/on_node_maintenance.go",
		" || p.avoids(r.pod.Spec.NodeName) {", " {", "job TestWhenAJobLeavesANodeThatIsCordoned", "",
	},
	{
		"the clean-up of a finished job is tried once", "job/decide.go",
		"		p.progress()\n		p.clean()\n	case o.Job.Policy.Suspend:", "		p.progress()\n	case o.Job.Policy.Suspend:", "job TestInvariants", "",
	},
	{
		"the pods of a job that exceeded its deadline are kept", "job/clean_pod_policy.go",
		"		return !isOver(pod) && p.exceededLimit()\n", "		return false\n", "job TestInvariants", "",
	},
	{
		"an exit with 0 under an eviction counts as success", "job/pod.go",
		"	return end.ExitCode == 0 && !disrupted(pod, end)\n", "	return end.ExitCode == 0\n", "job TestInvariants", "",
	},
	{
		"a suspended job keeps its pods", "job/suspend.go",
		"	for _, pod := range p.allPods() {\n		p.deletePod(pod, \"the job is suspended\")\n	}\n", "", "job TestInvariants", "",
	},
	{
		"an elastic job is scaled from the low end", "job/pass.go",
		"		case ok && r.Index < o.Job.Size(*o.Job.role(r.Role)):", "		case ok && (r.Index > 0 || o.Job.Elastic == nil):", "job TestInvariants", "",
	},
	{
		"a job restarts after its edit and is charged", "job/replicas.go",
		"	p.nextAttempt(ReasonScaled, what)\n", "	p.nextAttempt(ReasonScaled, what)\n	p.next().Retries++\n", "job TestInvariants", "",
	},
	{
		"a pod that its node refused is a disruption", "job/failure.go",
		"		return newFailure(pod, r, Refusal, nil)\n", "		return newFailure(pod, r, Disruption, nil)\n", "job TestFailures", "",
	},
	{
		"a pod that exceeded its own limit is a disruption", "job/failure.go",
		"	case ended && exceededOwnLimit(pod), ended && failed", "	case ended && failed", "job TestFailures", "",
	},
	{
		"a reboot is charged", "job/failure.go",
		" || slices.Contains(lostWithNode, end.Reason) && end.ExitCode != 0 {", " {", "job TestFailures", "",
	},
	{
		"a large job sends all its requests at the same time", "controller/act.go",
		"min(size, n-done, maxInFlight)", "min(size, n-done)", "controller TestBatchesHaveALimit", "",
	},
	{
		"retries are delayed ever longer, however long the job trained", "job/delay.go",
		"	return 1\n", "	return before + 1\n", "job TestALongTrainingResetsTheDelay", "",
	},
	{
		"timers count from the beginning of a pass", "controller/reconcile.go",
		"shorten(d.RequeueAt.Sub(p.now()))", "shorten(d.RequeueAt.Sub(p.at))", "controller TestWhenTheNextPassIs", "",
	},
	{
		"a child that the cache never shows is believed in forever", "controller/reconcile.go",
		"if at := p.nextForgotten(); !at.IsZero() {", "if at := p.nextForgotten(); false {", "controller TestWhenTheNextPassIs", "",
	},
	{
		"a deletion that failed is not requested again for ten seconds", "controller/act.go",
		"		p.notDeleted(key)\n", "", "controller TestAFailedDeletionIsRequestedAgain", "",
	},
	{
		"a job that somebody else deleted is counted", "controller/act.go",
		"	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {\n		return nil\n	}\n", "	err = client.IgnoreNotFound(err)\n", "controller TestADeletedJobIsCountedOnce", "",
	},
	{
		"nothing is logged", "controller/log.go",
		"		logger.Info(\"job event\", fields...)\n", "		_, _ = logger, fields\n", "controller TestWhatIsLogged", "",
	},
	{
		"a forced deletion is not counted", "controller/act.go",
		"	if deleted && d.Force {\n		p.recordForced(ctx, d)\n	}\n", "", "controller TestHowPodsAreDeleted", "",
	},
	{
		"an event is given up after seconds", "events/recorder.go",
		"Factor: 2, Steps: 8}", "Factor: 2, Steps: 4}", "events TestAnEventIsTriedAgainWhereThatHelps", "",
	},
	{
		"a suspension believes the cache", "job/suspend.go",
		"		p.Ask.Pods = p.Ask.Pods || len(s.Attempts) > 0 && !p.Live\n", "", "job TestASuspensionLooksPastTheCache", "",
	},
}
