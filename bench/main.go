// Command bench measures how fast jobs start and end, beside what the API server allows.
//
// It runs a bare kube-apiserver with etcd in this process, a simulated kubelet that binds pods and moves them through their phases at
// once, and one contender after the other on the same shapes, several times in turn:
//
//   - limit creates the object set of our jobs itself, with 16 requests in flight, and decides nothing;
//   - ours is trainyard-operator as it is shipped, in a process of its own.
//
// It prints a table of medians with their spread. `make bench` runs it; docs/performance.md explains the columns.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	shapes := flag.String("shapes", "100x4,500x4,1x1000", "jobs x pods of each, separated by commas")
	rounds := flag.Int("rounds", 3, "how often each contender runs each shape")
	operator := flag.String("operator", "bin/trainyard-operator", "the operator to measure")
	flag.Parse()
	if err := run(context.Background(), strings.Split(*shapes, ","), *rounds, *operator); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, shapes []string, rounds int, operator string) error {
	w, err := newWorld(ctx)
	if err != nil {
		return err
	}
	defer w.stop()
	all := results{}
	for _, text := range shapes {
		s, err := parseShape(text)
		if err != nil {
			return err
		}
		for round := range rounds {
			for _, c := range contenders(operator) {
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
