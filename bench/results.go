package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// results are the measurements, by shape and contender in the order in which they came.
type results struct{ rows []row }

type row struct {
	shape     shape
	contender string
	all       []measurement
}

func (r *results) add(s shape, contender string, m measurement) {
	for i := range r.rows {
		if r.rows[i].shape == s && r.rows[i].contender == contender {
			r.rows[i].all = append(r.rows[i].all, m)
			return
		}
	}
	r.rows = append(r.rows, row{s, contender, []measurement{m}})
}

// table is the medians, each with its smallest and largest value.
func (r *results) table() string {
	var out strings.Builder
	out.WriteString("| jobs × pods | | all pods, s | all Running, s | × limit | all Succeeded, s | requests a job | CPU s | peak MB |\n")
	out.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range r.rows {
		running := row.seconds(func(m measurement) time.Duration { return m.running })
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %.2f | %s | %.1f | %.1f | %.0f |\n", row.shape, row.contender,
			spread(row.seconds(func(m measurement) time.Duration { return m.pods })), spread(running), median(running)/r.limit(row.shape),
			spread(row.seconds(func(m measurement) time.Duration { return m.succeeded })),
			median(row.numbers(func(m measurement) float64 { return m.perJob })),
			median(row.seconds(func(m measurement) time.Duration { return m.cpu })),
			median(row.numbers(func(m measurement) float64 { return float64(m.peakRSS) / 1e6 })))
	}
	return out.String()
}

// limit is the median of the limit's time until all jobs of a shape ran.
func (r *results) limit(s shape) float64 {
	for _, row := range r.rows {
		if row.shape == s && row.contender == (limit{}).name() {
			return median(row.seconds(func(m measurement) time.Duration { return m.running }))
		}
	}
	return 0
}

func (r row) seconds(of func(measurement) time.Duration) []float64 {
	return r.numbers(func(m measurement) float64 { return of(m).Seconds() })
}

func (r row) numbers(of func(measurement) float64) []float64 {
	var all []float64
	for _, m := range r.all {
		all = append(all, of(m))
	}
	slices.Sort(all)
	return all
}

func median(sorted []float64) float64 { return sorted[len(sorted)/2] }

func spread(sorted []float64) string {
	return fmt.Sprintf("%.1f (%.1f–%.1f)", median(sorted), sorted[0], sorted[len(sorted)-1])
}
