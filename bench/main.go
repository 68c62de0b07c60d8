// Command bench measures how fast jobs start and end, beside what the API server allows.
//
// It runs a bare kube-apiserver with etcd in this process, a simulated kubelet that binds pods and moves them through their phases at
// once, and one contender after the other on the same shapes, several times in turn:
//
//   - limit creates the object set of our jobs itself, with 16 requests in flight, and decides nothing;
//   - ours is trainyard-operator as it is shipped, in a process of its own;
//   - Training Operator 1.9.4 is Kubeflow's, as it is shipped and with 1000 requests a second and 10 threads, with its own definitions.
//
// It prints a table of medians with their spread. `make bench` runs it; docs/performance.md explains the columns.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	shapes := flag.String("shapes", "100x4,500x4,1x1000", "jobs x pods of each, separated by commas")
	rounds := flag.Int("rounds", 3, "how often each contender runs each shape")
	bin := flag.String("bin", "bin", "the folder of the operators to measure")
	only := flag.String("only", "", "contenders whose names begin so, separated by commas; all of them if empty")
	flag.Parse()
	log.SetLogger(logr.Discard())
	if err := run(context.Background(), strings.Split(*shapes, ","), *rounds, *bin, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, shapes []string, rounds int, bin, only string) error {
	competing, err := contenders(ctx, bin, only)
	if err != nil {
		return err
	}
	w, err := newWorld(ctx)
	if err != nil {
		return err
	}
	defer w.stop()
	all := results{}
	for n, text := range shapes {
		s, err := parseShape(text)
		if err != nil {
			return err
		}
		for round := range rounds {
			for _, c := range competing {
				if c.isSlow() && n+round > 0 {
					continue
				}
				fmt.Fprintf(os.Stderr, "%s, round %d of %d: %s\n", s, round+1, rounds, c.name())
				m, err := w.measure(ctx, c, s, round)
				if err != nil {
					return fmt.Errorf("%s with %s: %w", c.name(), s, err)
				}
				all.add(s, c.name(), m)
			}
		}
	}
	fmt.Print(all.table())
	return nil
}
