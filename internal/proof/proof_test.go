package proof

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	seed     = flag.Uint64("proof.seed", 1, "the first of the seeds of the random histories")
	amount   = flag.Int("proof.histories", 60, "how many random histories to run, and how many hostile specs")
	every    = flag.Int("proof.every", 41, "run one in so many of the faults at each request of each scenario; 1 runs all")
	first    = flag.Int("proof.first", 0, "begin with this one of them")
	only     = flag.String("proof.only", "", "run only the histories whose name contains this, and print them")
	parallel = flag.Int("proof.parallel", 8, "how many histories to run at once")
)

// planned is one history to run.
type planned struct {
	name string
	seed uint64
	plan func(h *history)
	life func(h *history)
}

// mostFailed is how many histories may fail before no further one is begun.
const mostFailed = 5

// runner runs histories, several at a time, each in a namespace that has no other at that time.
type runner struct {
	t      *testing.T
	server *server
	free   chan *nodes
	wait   sync.WaitGroup

	sync.Mutex
	number, failed int
	began          time.Time
}

func newRunner(t *testing.T) *runner {
	t.Helper()
	r := &runner{t: t, server: start(t), free: make(chan *nodes, *parallel), began: time.Now()}
	for i := range *parallel {
		n, err := newNodes(r.server, fmt.Sprintf("proof-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		r.free <- n
	}
	return r
}

// run runs one history, if it is among those that are asked for.
func (r *runner) run(c planned) {
	if strings.Contains(c.name, *only) {
		r.start(c, func(*history) {})
	}
}

// start runs one history, and calls then with it.
func (r *runner) start(c planned, then func(*history)) {
	n := <-r.free
	r.Lock()
	r.number++
	name := fmt.Sprintf("j%d", r.number)
	stop := r.failed > mostFailed
	r.Unlock()
	r.wait.Go(func() {
		defer func() { r.free <- n }()
		h := newHistory(r.server, n, name, c.seed)
		defer then(h)
		if stop {
			return
		}
		if c.plan != nil {
			c.plan(h)
		}
		violations := h.live(c.life)
		if len(violations) > 0 {
			r.Lock()
			r.failed++
			r.Unlock()
			again := fmt.Sprintf("-proof.only '%s'", c.name)
			if c.seed > 0 {
				again = fmt.Sprintf("-proof.histories 1 -proof.seed %d", c.seed)
			}
			r.t.Errorf("%s:\n%s\n%s\nagain: go test -vet=off ./internal/proof -run '^%s$' %s",
				c.name, strings.Join(violations, "\n"), h.story(), r.t.Name(), again)
		} else if *only != "" || *amount == 1 {
			r.t.Logf("%s:\n%s", c.name, h.story())
		}
	})
}

// finish waits for all histories and says how many there were.
func (r *runner) finish() {
	r.wait.Wait()
	took := time.Since(r.began)
	r.t.Logf("%d histories in %.0f s, %.0f a minute, %d with violations", r.number, took.Seconds(), float64(r.number)/took.Minutes(), r.failed)
}

// Every scenario ends as it must, whatever becomes of any one request of the controller, and of any watch before any one pass.
func TestFaults(t *testing.T) {
	r := newRunner(t)
	var undisturbed sync.WaitGroup
	lengths := make([]struct{ requests, passes int }, len(scenarios))
	for i, s := range scenarios {
		name := s.sentence + ", undisturbed"
		if !strings.Contains(name, *only) && !strings.HasPrefix(*only, s.sentence) {
			continue
		}
		undisturbed.Add(1)
		r.start(planned{name: name, life: s.run}, func(h *history) {
			defer undisturbed.Done()
			lengths[i].requests, lengths[i].passes = h.requests, h.passes
		})
	}
	undisturbed.Wait()
	for i, c := range disturbed(lengths) {
		if i%*every == *first || *only != "" {
			r.run(c)
		}
	}
	r.finish()
}

// disturbed are all scenarios with one fault each.
func disturbed(lengths []struct{ requests, passes int }) []planned {
	var all []planned
	for i, s := range scenarios {
		for n := 1; n <= lengths[i].requests; n++ {
			for _, f := range requestFaults {
				all = append(all, planned{
					name: fmt.Sprintf("%s, request %d: %s", s.sentence, n, f), life: s.run,
					plan: func(h *history) { h.plan[n] = f },
				})
			}
		}
		for n := range lengths[i].passes {
			for _, f := range watchFaults {
				all = append(all, planned{
					name: fmt.Sprintf("%s, before pass %d: %s", s.sentence, n, f), life: s.run,
					plan: func(h *history) { h.watchPlan[n] = f },
				})
			}
		}
	}
	return all
}

// watchFaults are delays of one watch against the others, of all, and breaks.
var watchFaults = slices.Concat(faultsOf(jobs), faultsOf(pods), faultsOf(services), faultsOf(""))

func faultsOf(resource string) []watchFault { return []watchFault{{resource, false}, {resource, true}} }

// Whatever happens to a job and to its controller, no invariant is broken, and the job comes to rest where it should.
func TestHistories(t *testing.T) {
	r := newRunner(t)
	for i := range uint64(*amount) {
		n := *seed + i
		r.run(planned{name: fmt.Sprintf("history %d.", n), seed: n, life: randomLife})
	}
	r.finish()
}
