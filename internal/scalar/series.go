package scalar

import (
	"math"
	"slices"
	"time"
)

const (
	// maxSeries is how many names a log may have, maxPoints how many points a series keeps.
	maxSeries = 64
	maxPoints = 2000
)

// Series is the course of one figure. The three lists are equally long. A value that is no number, or infinite, is NaN.
type Series struct {
	Name   string
	Steps  []float64
	Times  []time.Time
	Values []float64
	// every is how many points one of the list stands for: when it is full, each second one is dropped.
	every, skipped int
}

// Collection is what a log says, line after line.
type Collection struct {
	Series []*Series
	by     map[string]*Series
}

// Clone is a collection that grows on its own.
func (c *Collection) Clone() *Collection {
	out := &Collection{by: map[string]*Series{}}
	for _, s := range c.Series {
		copied := *s
		copied.Steps, copied.Times, copied.Values = slices.Clone(s.Steps), slices.Clone(s.Times), slices.Clone(s.Values)
		out.by[s.Name] = &copied
		out.Series = append(out.Series, &copied)
	}
	return out
}

// Add takes a line of the log.
func (c *Collection) Add(line string, at time.Time) {
	p, ok := Parse(line)
	if !ok {
		return
	}
	if c.by == nil {
		c.by = map[string]*Series{}
	}
	for _, pair := range p.Pairs {
		s := c.by[pair.Name]
		if s == nil {
			if len(c.by) == maxSeries {
				continue
			}
			s = &Series{Name: pair.Name, every: 1}
			c.by[pair.Name] = s
			c.Series = append(c.Series, s)
		}
		s.add(p.Step, at, pair.Value)
	}
}

func (s *Series) add(step float64, at time.Time, value float64) {
	if math.IsInf(value, 0) {
		value = math.NaN()
	}
	n := len(s.Values)
	diverges := math.IsNaN(value) && n > 0 && !math.IsNaN(s.Values[n-1]) // that is never left out
	if s.skipped++; s.skipped < s.every && !diverges {
		return
	}
	s.skipped = 0
	if math.IsNaN(step) {
		step = 0
		if n > 0 {
			step = s.Steps[n-1] + float64(s.every)
		}
	}
	s.Steps, s.Times, s.Values = append(s.Steps, step), append(s.Times, at), append(s.Values, value)
	if len(s.Steps) < maxPoints {
		return
	}
	s.every *= 2
	half := 0
	for i := 1; i < len(s.Steps); i += 2 {
		s.Steps[half], s.Times[half], s.Values[half] = s.Steps[i], s.Times[i], s.Values[i]
		half++
	}
	s.Steps, s.Times, s.Values = s.Steps[:half], s.Times[:half], s.Values[:half]
}
