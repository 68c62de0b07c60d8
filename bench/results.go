package main

import (
	"fmt"
	"slices"
	"strings"
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

// table is the medians, and of the time until all run also the smallest and the largest value.
func (r *results) table() string {
	var out strings.Builder
	out.WriteString("| jobs × pods | | all pods, s | all Running, s | × limit | created → Running, p50 / p99, s | failed → whole, p50 / p99, s | ended → Succeeded, s | requests a job | of a failure | CPU, s | peak, MB |\n")
	out.WriteString("|" + strings.Repeat(" --- |", 12) + "\n")
	for _, row := range r.rows {
		mid := func(of func(measurement) float64) float64 { return median(row.numbers(of)) }
		running := row.numbers(func(m measurement) float64 { return m.running.Seconds() })
		fmt.Fprintf(&out, "| %s | %s | %.1f | %s | %.2f | %.2f / %.2f | %.2f / %.2f | %.1f | %.1f | %.1f | %.1f | %.0f |\n", row.shape, row.contender,
			mid(func(m measurement) float64 { return m.pods.Seconds() }), spread(running), median(running)/r.limit(row.shape),
			mid(func(m measurement) float64 { return m.latency.at(0.5) }), mid(func(m measurement) float64 { return m.latency.at(0.99) }),
			mid(func(m measurement) float64 { return m.recovery.at(0.5) }), mid(func(m measurement) float64 { return m.recovery.at(0.99) }),
			mid(func(m measurement) float64 { return m.succeeded.Seconds() }),
			mid(func(m measurement) float64 { return m.requests }), mid(func(m measurement) float64 { return m.recoveryRequests }),
			mid(func(m measurement) float64 { return m.cpu.Seconds() }), mid(func(m measurement) float64 { return float64(m.peakRSS) / 1e6 }))
	}
	return out.String()
}

// limit is the median of the limit's time until all jobs of a shape ran.
func (r *results) limit(s shape) float64 {
	for _, row := range r.rows {
		if row.shape == s && row.contender == (limit{}).name() {
			return median(row.numbers(func(m measurement) float64 { return m.running.Seconds() }))
		}
	}
	return 0
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
