package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/kinds"
)

// history is the life of one job.
type history struct {
	server    *server
	kind      kinds.Adapter
	job       types.NamespacedName
	chronicle *chronicle
	oracle    *oracle
	process   *process
	random    *rand.Rand
	nodes     *nodes

	sync.Mutex
	clock time.Time
	away  bool
	// plan has the fault of each request that has one, by its number; requests is how many there were, writes how many of them were no
	// reads.
	plan             map[int]fault
	requests, writes int
	// watchPlan has the fault of the watches from a pass on, by its number; passes is how many there were.
	watchPlan  map[int]watchFault
	passes     int
	healWatch  int
	violations []string
	trace      []string
	// lastWords are what the next training that ends writes at its end.
	lastWords string
	// jumped says that the clock was changed by hand, so that no timer can be on time; doubted that two controllers ran at once.
	// endured that the API server was away.
	// behind that the next process begins with an old list.
	jumped, doubted, endured, behind bool
}

// watchFault is what becomes of the watch of a resource for three passes.
type watchFault struct {
	resource string // empty for all
	relist   bool
}

func (f watchFault) String() string {
	what := "delayed"
	if f.relist {
		what = "broken until it lists again"
	}
	if f.resource == "" {
		return "all watches are " + what
	}
	return "the watch of " + f.resource + " is " + what
}

// epoch is when histories begin: a moment within a second.
var epoch = time.Date(2026, 11, 15, 8, 0, 0, 300_000_000, time.UTC)

// violated ends a history in which something went wrong.
type violated struct{}

func newHistory(s *server, n *nodes, name string, seed uint64) *history {
	h := &history{
		server: s, job: types.NamespacedName{Namespace: n.namespace, Name: name}, clock: epoch, nodes: n,
		plan: map[int]fault{}, watchPlan: map[int]watchFault{}, random: rand.New(rand.NewPCG(seed, 0)),
	}
	h.chronicle = newChronicle(h.now)
	h.oracle = newOracle(h)
	s.begin(h.job, h.chronicle)
	return h
}

// live lets the job live. It returns what went wrong.
func (h *history) live(life func(*history)) (violations []string) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(violated); !ok {
				panic(r)
			}
		}
		h.bury()
		violations = h.violations
	}()
	life(h)
	h.check()
	return nil
}

// submit creates the job and starts the controller.
func (h *history) submit(job kubeflowv1.Job) {
	h.kind = kinds.Of(kubeflowv1.GroupVersion.WithKind(job.Parts().Layout.Kind))
	job.SetName(h.job.Name)
	job.SetNamespace(h.job.Namespace)
	h.must(h.server.admin.Create(context.Background(), job.(client.Object)))
	h.chronicle.await(job.GetUID(), version(job.(client.Object)))
	h.oracle.job = job.GetUID()
	h.note("the job is submitted")
	if h.process == nil {
		h.process = newProcess(h, len(h.chronicle.since(0)))
	}
}

// edit changes the job as its user does.
func (h *history) edit(what string, change func(kubeflowv1.Job)) {
	job := h.stored()
	if job == nil {
		return
	}
	changed := job.DeepCopyObject().(kubeflowv1.Job)
	change(changed)
	h.must(h.server.admin.Patch(context.Background(), changed.(client.Object), client.MergeFrom(job.(client.Object))))
	h.chronicle.await(changed.GetUID(), version(changed.(client.Object)))
	h.note("%s", what)
}

// stored is the job as the API server has it, nil once it is gone.
func (h *history) stored() kubeflowv1.Job {
	h.check()
	return h.oracle.stored
}

// deleteJob is what a user does, and the garbage collector after them.
func (h *history) deleteJob() {
	if job := h.stored(); job != nil {
		h.must(client.IgnoreNotFound(h.server.admin.Delete(context.Background(), job.(client.Object), client.PropagationPolicy(metav1.DeletePropagationBackground))))
		h.chronicle.awaitGone(job.GetUID())
		h.note("the job is deleted")
	}
	h.check()
	h.collectGarbage()
}

// bury ends the controller and removes everything.
func (h *history) bury() {
	if h.process != nil {
		h.process.kill()
	}
	h.server.forget(h.job)
	ctx := context.Background()
	for _, obj := range h.oracle.exists {
		_ = h.server.admin.Delete(ctx, obj, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	h.nodes.mend()
}

// rest lets the controller work until it has nothing to do at this moment.
func (h *history) rest() {
	for range 400 {
		h.disturbWatches()
		h.process.caches.deliver()
		if h.process.queue.pass() {
			h.afterPass()
			continue
		}
		if h.healWatches() {
			continue
		}
		if next := h.process.queue.next(); !next.IsZero() && next.Sub(h.now()) <= soon {
			h.advance(next)
			continue
		}
		h.check()
		return
	}
	h.fail("8: the controller does not come to rest")
	h.check()
}

// soon is how far ahead the controller's plans may lie to count as work of this moment: it delays what may wait for three seconds, and
// judges a failure after three.
const soon = 5 * time.Second

// afterPass looks at what a pass did, and does what the fault that met it asks for.
func (h *history) afterPass() {
	h.passes++
	p := h.process
	switch {
	case p.wire.isHeld():
		h.note("another controller takes over")
		h.doubted = true
		h.process = newProcess(h, len(h.chronicle.since(0)))
		h.rest()
		p.wire.goOn()
		p.queue.finish()
		h.note("the first controller has gone on and ends")
		p.kill()
		h.rest() // what the first one did is seen, and from here on everything has to be right again
		h.doubted = false
	case p.wire.isDead():
		h.crash()
	case h.isAway():
		h.endure(time.Hour)
	}
	h.check()
}

// crash ends the controller and starts another. That one may begin with what an API server lists that is behind.
func (h *history) crash() {
	h.note("the controller has crashed")
	h.process.kill()
	now := len(h.chronicle.since(0))
	if !h.behind {
		h.process = newProcess(h, now)
		return
	}
	h.behind = false
	h.note("the next one begins with an old list")
	h.process = newProcess(h, now/2)
	h.late(watchFault{})
}

// endure lets the controller try on, for as long as the API server is away.
func (h *history) endure(d time.Duration) {
	h.note("the API server is away")
	h.endured = true
	until := h.now().Add(d)
	for next := h.process.queue.next(); !next.IsZero() && next.Before(until); next = h.process.queue.next() {
		h.advance(next)
		for h.process.queue.pass() {
			continue
		}
	}
	h.advance(until)
	h.setAway(false)
	h.note("the API server is back")
	if next := h.process.queue.next(); next.Sub(h.now()) <= longestRetry {
		h.advance(next)
	}
}

// longestRetry is how long a controller that got no answer waits at most before it tries again.
const longestRetry = 15 * time.Second

// disturbWatches begins the fault that the plan has for this pass.
func (h *history) disturbWatches() {
	f, planned := h.watchPlan[h.passes]
	if h.healWatch > 0 && h.passes >= h.healWatch {
		h.healWatch = 0
		h.healWatches()
	}
	if !planned {
		return
	}
	delete(h.watchPlan, h.passes)
	h.note("%s", f)
	h.late(f)
}

// late lets a watch deliver nothing for three passes, or until the controller would rest.
func (h *history) late(f watchFault) {
	for _, s := range h.process.caches.stores {
		if f.resource == "" || s.resource == f.resource {
			s.late, s.lost = true, f.relist
		}
	}
	h.healWatch = h.passes + 3
}

// healWatches ends the fault of the watches if there is one.
func (h *history) healWatches() bool {
	healed := false
	for _, s := range h.process.caches.stores {
		healed = healed || s.late
		s.late = false
	}
	return healed
}

// settle lets controller and kubelets work until nothing changes any more.
func (h *history) settle() {
	for range 40 {
		h.rest()
		if !h.stopTerminating() && !h.collectGarbage() {
			return
		}
	}
	h.fail("8: pods come and go without an end")
	h.check()
}

// sleep lets time pass, and the controller act whenever it wants to.
func (h *history) sleep(d time.Duration) {
	until := h.now().Add(d)
	h.settle()
	for range 500 {
		next := h.process.queue.next()
		if next.IsZero() || next.After(until) {
			break
		}
		h.advance(next)
		h.settle()
		h.oracle.checkDue()
	}
	h.advance(until)
	h.settle()
	h.oracle.checkDue()
	h.check()
}

func (h *history) now() time.Time {
	h.Lock()
	defer h.Unlock()
	return h.clock
}

// advance moves the clock forwards.
func (h *history) advance(to time.Time) {
	h.Lock()
	defer h.Unlock()
	if to.After(h.clock) {
		h.clock = to
	}
}

// jump changes the clock by hand.
func (h *history) jump(by time.Duration) {
	h.Lock()
	defer h.Unlock()
	h.jumped = true
	h.clock = h.clock.Add(by)
}

func (h *history) isAway() bool {
	h.Lock()
	defer h.Unlock()
	return h.away
}

func (h *history) setAway(away bool) {
	h.Lock()
	defer h.Unlock()
	h.away = away
}

func (h *history) setBehind(behind bool) {
	h.Lock()
	defer h.Unlock()
	h.behind = behind
}

// faultOf counts a request of the controller, and returns its fault.
func (h *history) faultOf(r *http.Request) fault {
	h.Lock()
	defer h.Unlock()
	h.requests++
	if r.Method != http.MethodGet {
		h.writes++
	}
	f := h.plan[h.requests]
	if f != none {
		h.trace = append(h.trace, fmt.Sprintf("%s    %d: %s: %s", h.clock.Format("15:04:05.000"), h.requests, request(r), f))
	}
	return f
}

// sent notes a request that reached the API server.
func (h *history) sent(r *http.Request, code int) {
	h.Lock()
	defer h.Unlock()
	h.trace = append(h.trace, fmt.Sprintf("%s    %s: %d", h.clock.Format("15:04:05.000"), request(r), code))
}

// request is a request in words.
func request(r *http.Request) string {
	verb := map[string]string{http.MethodGet: "read", http.MethodPost: "create", http.MethodDelete: "delete", http.MethodPatch: "patch"}[r.Method]
	name := path.Base(r.URL.Path)
	if name == "status" || name == "scale" {
		name = path.Base(path.Dir(r.URL.Path)) + "/" + name
	}
	return verb + " " + name
}

// note writes a line of the history.
func (h *history) note(format string, args ...any) {
	h.Lock()
	defer h.Unlock()
	h.trace = append(h.trace, h.clock.Format("15:04:05.000")+" "+fmt.Sprintf(format, args...))
}

// fail says that something is wrong. The history ends at its next step.
func (h *history) fail(format string, args ...any) {
	h.note("VIOLATION: "+format, args...)
	h.Lock()
	defer h.Unlock()
	h.violations = append(h.violations, fmt.Sprintf(format, args...))
}

// check lets the oracle read what is new, and ends the history if something is wrong.
func (h *history) check() {
	h.oracle.read()
	panics.Lock()
	for _, p := range panics.all {
		h.fail("a controller panicked: %s", p)
	}
	panics.all = nil
	panics.Unlock()
	h.Lock()
	failed := len(h.violations) > 0
	h.Unlock()
	if failed {
		panic(violated{})
	}
}

// must ends a history that the test cannot go on with.
func (h *history) must(err error) {
	if err != nil {
		h.fail("the test itself: %v", err)
		panic(violated{})
	}
}

// story is the history in words.
func (h *history) story() string { return strings.Join(h.trace, "\n") }
