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
	contender contender
	all       []measurement
}

func (r *results) add(s shape, c contender, m measurement) {
	for i := range r.rows {
		if r.rows[i].shape == s && r.rows[i].contender.name() == c.name() {
			r.rows[i].all = append(r.rows[i].all, m)
			return
		}
	}
	r.rows = append(r.rows, row{s, c, []measurement{m}})
}

// columns are those of the table: each a heading, and what stands below it.
var columns = []struct {
	heading string
	cell    func(r *results, row row) string
}{
	{"all pods, s", func(_ *results, row row) string {
		return row.median("%.1f", func(m measurement) float64 { return m.pods.Seconds() })
	}},
	{"all Running, s", func(_ *results, row row) string { return spread(row.numbers(running)) }},
	{"× limit", func(r *results, row row) string {
		if row.contender.workload().running == nil {
			return "" // the limit has no TrainJobs
		}
		return fmt.Sprintf("%.2f", median(row.numbers(running))/r.limit(row.shape))
	}},
	{"created → Running, p50 / p99, s", func(_ *results, row row) string {
		return row.percentiles(func(m measurement) latencies { return m.latency })
	}},
	{"failed → whole, p50 / p99, s", func(_ *results, row row) string {
		return row.percentiles(func(m measurement) latencies { return m.recovery })
	}},
	{"ended → Succeeded, s", func(_ *results, row row) string {
		return row.median("%.1f", func(m measurement) float64 { return m.succeeded.Seconds() })
	}},
	{"requests a job, to Running / in all / of a failure", func(_ *results, row row) string {
		return row.aJob(func(m measurement) requests { return m.starting }) + " / " +
			row.aJob(func(m measurement) requests { return m.starting.and(m.ending) }) + " / " +
			row.aJob(func(m measurement) requests { return m.recovering })
	}},
	{"CPU of the server, s", func(_ *results, row row) string {
		return row.median("%.1f", func(m measurement) float64 { return m.serverCPU.Seconds() })
	}},
	{"CPU, s", func(_ *results, row row) string {
		return row.median("%.1f", func(m measurement) float64 { return m.cpu.Seconds() })
	}},
	{"peak, MB", func(_ *results, row row) string {
		return row.median("%.0f", func(m measurement) float64 { return float64(m.peakRSS) / 1e6 })
	}},
}

func running(m measurement) float64 { return m.running.Seconds() }

// table is the medians, and of the time until all run also the smallest and the largest value. Below it stands what the requests were.
func (r *results) table() string {
	var out strings.Builder
	out.WriteString("| jobs × pods | |")
	for _, c := range columns {
		out.WriteString(" " + c.heading + " |")
	}
	out.WriteString("\n|" + strings.Repeat(" --- |", len(columns)+2) + "\n")
	for _, row := range r.rows {
		fmt.Fprintf(&out, "| %s | %s |", row.shape, row.contender.name())
		for _, c := range columns {
			out.WriteString(" " + c.cell(r, row) + " |")
		}
		out.WriteString("\n")
	}
	out.WriteString("\nRequests a job:\n\n")
	for _, row := range r.rows {
		last := row.all[len(row.all)-1]
		fmt.Fprintf(&out, "- %s, %s: %s\n", row.shape, row.contender.name(), last.starting.and(last.ending).each(row.shape.jobs))
		if len(last.recovering) > 0 {
			fmt.Fprintf(&out, "  - of a failure: %s\n", last.recovering.each(row.shape.jobs))
		}
	}
	return out.String()
}

// limit is the median of the limit's time until all jobs of a shape ran.
func (r *results) limit(s shape) float64 {
	for _, row := range r.rows {
		if row.shape == s && row.contender.name() == (limit{}).name() {
			return median(row.numbers(running))
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

func (r row) median(format string, of func(measurement) float64) string {
	return fmt.Sprintf(format, median(r.numbers(of)))
}

func (r row) percentiles(of func(measurement) latencies) string {
	return r.median("%.2f", func(m measurement) float64 { return of(m).at(0.5) }) + " / " + r.median("%.2f", func(m measurement) float64 { return of(m).at(0.99) })
}

// aJob is how many requests one job took.
func (r row) aJob(of func(measurement) requests) string {
	return r.median("%.1f", func(m measurement) float64 { return float64(of(m).total()) / float64(r.shape.jobs) })
}

func median(sorted []float64) float64 { return sorted[len(sorted)/2] }

func spread(sorted []float64) string {
	return fmt.Sprintf("%.1f (%.1f–%.1f)", median(sorted), sorted[0], sorted[len(sorted)-1])
}
