// Command bench measures how fast jobs start and end, beside what the API server allows.
//
// It runs a bare kube-apiserver with etcd in this process, a simulated kubelet that binds pods and moves them through their phases at
// once, and one contender after the other on the same shapes, several times in turn:
//
//   - limit creates the object set of our jobs itself, with 16 requests in flight, and decides nothing;
//   - ours is trainyard-operator as it is shipped, in a process of its own;
//   - Training Operator 1.9.4 is Kubeflow's, as it is shipped and with 1000 requests a second and 10 threads, with its own definitions;
//   - Trainer 2.3.0 is its successor, with JobSet 0.12.0 and Kubernetes' Job controller, in the same two ways; it has TrainJobs, and so have
//     ours beside it.
//
// It prints a table of medians with their spread. `make bench` runs it; docs/performance.md explains the columns.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// options are the flags.
type options struct {
	shapes, bin, only   string
	profile, picture    string
	rounds, timed, past int
}

func main() {
	var o options
	flag.StringVar(&o.shapes, "shapes", "100x4,500x4,1x1000", "jobs x pods of each, separated by commas")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each contender runs each shape")
	flag.StringVar(&o.bin, "bin", "bin", "the folder of the operators to measure")
	flag.StringVar(&o.only, "only", "", "contenders whose names begin so, separated by commas; all of them if empty")
	flag.IntVar(&o.timed, "timers", 500, "how many jobs of ours have a timer that is due at the same time; 0 for no such wave")
	flag.IntVar(&o.past, "past", 4500, "how many finished jobs there are when our operator starts again, beside 500 that run; 0 for no restart")
	flag.StringVar(&o.picture, "svg", "", "a file for a picture of the table")
	flag.StringVar(&o.profile, "cpuprofile", "", "a file for the CPU profile of the API server, with etcd, driver and kubelets")
	flag.Parse()
	log.SetLogger(logr.Discard())
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	competing, err := contenders(ctx, o.bin, o.only)
	if err != nil {
		return err
	}
	w, err := newWorld(ctx)
	if err != nil {
		return err
	}
	defer w.stop()
	if o.profile != "" {
		end, err := profile(o.profile)
		if err != nil {
			return err
		}
		defer end()
	}
	if o.shapes != "" {
		all, err := w.compare(ctx, competing, strings.Split(o.shapes, ","), o.rounds)
		if err != nil {
			return err
		}
		fmt.Print(all.table(), all.growth())
		if o.picture != "" {
			if err := os.WriteFile(o.picture, []byte(all.picture()), 0o644); err != nil {
				return err
			}
		}
	}
	if o.timed > 0 {
		if err := w.timers(ctx, ownOperator(o.bin), shape{jobs: o.timed, pods: 2}); err != nil {
			return err
		}
	}
	if o.past > 0 {
		return w.restart(ctx, ownOperator(o.bin), o.past)
	}
	return nil
}

// profile writes where this process spends its time, until the end.
func profile(file string) (end func(), err error) {
	out, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = out.Close() }, pprof.StartCPUProfile(out)
}

// compare lets the contenders run the shapes in turn.
func (w *world) compare(ctx context.Context, competing []contender, shapes []string, rounds int) (*results, error) {
	all := &results{}
	for n, text := range shapes {
		s, err := parseShape(text)
		if err != nil {
			return nil, err
		}
		for round := range rounds {
			for _, c := range competing {
				if c.isSlow() && n+round > 0 {
					continue
				}
				fmt.Fprintf(os.Stderr, "%s, round %d of %d: %s\n", s, round+1, rounds, c.name())
				m, err := w.measure(ctx, c, s, round)
				if err != nil {
					return nil, fmt.Errorf("%s with %s: %w", c.name(), s, err)
				}
				all.add(s, c, m)
			}
		}
	}
	return all, nil
}

// timers prints how late our timers are when many are due at the same time.
func (w *world) timers(ctx context.Context, ours process, s shape) error {
	fmt.Printf("\n| %d timers at nearly the same time | earliest, s | p50, s | p99, s |\n| --- | --- | --- | --- |\n", s.jobs)
	for _, t := range timers {
		fmt.Fprintf(os.Stderr, "%s of %d jobs\n", t.name, s.jobs)
		late, err := w.measureTimer(ctx, ours, s, t)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.2f | %.2f | %.2f |\n", t.name, late.at(0), late.at(0.5), late.at(0.99))
	}
	return nil
}

// restart prints what our operator does when it starts beside many jobs.
func (w *world) restart(ctx context.Context, ours process, past int) error {
	fmt.Fprintf(os.Stderr, "restart beside %d finished jobs\n", past)
	r, err := w.measureRestart(ctx, ours, past, 500)
	if err == nil {
		fmt.Printf("\nRestart beside %s\n", r)
	}
	return err
}
