package main

import (
	"fmt"
	"math"
	"strings"
)

// growth is how the costs of each contender grow with the number of jobs: the exponent between two shapes whose jobs have the same number
// of pods. 1 is linear. It is empty where no two shapes can be compared.
func (r *results) growth() string {
	var out strings.Builder
	for i, small := range r.rows {
		for _, large := range r.rows[i+1:] {
			if large.contender.name() != small.contender.name() || large.shape.pods != small.shape.pods || large.shape.mixed+small.shape.mixed > 0 || large.shape.jobs <= small.shape.jobs {
				continue
			}
			exponent := func(of func(measurement) float64) float64 {
				return math.Log(median(large.numbers(of))/median(small.numbers(of))) / math.Log(float64(large.shape.jobs)/float64(small.shape.jobs))
			}
			fmt.Fprintf(&out, "- %s → %s, %s: time %.2f, CPU of the server %.2f", small.shape, large.shape, small.contender.name(),
				exponent(running), exponent(func(m measurement) float64 { return m.serverCPU.Seconds() }))
			if large.all[0].cpu > 0 {
				fmt.Fprintf(&out, ", CPU %.2f, memory %.2f", exponent(func(m measurement) float64 { return m.cpu.Seconds() }),
					exponent(func(m measurement) float64 { return float64(m.peakRSS) }))
			}
			out.WriteString("\n")
			break // the next larger shape only
		}
	}
	if out.Len() == 0 {
		return ""
	}
	return "\nExponents of growth:\n\n" + out.String()
}
