package flyte

import (
	"fmt"
	"strconv"
	"strings"
)

// NNodes is a number of nodes, fixed or from Min to Max, as torchrun's --nnodes.
type NNodes struct {
	Min, Max int32
	// Text records that the number was written as text, "2:4" but also "1". Only a number 1 that is not text makes a task
	// without a job (python-task); the text "1" makes a job with one worker.
	Text bool
}

// Nodes is a fixed number of nodes, written as a number.
func Nodes(n int32) NNodes { return NNodes{Min: n, Max: n} }

// ParseNNodes reads "4" or "2:4".
func ParseNNodes(s string) (NNodes, error) {
	least, most, isRange := strings.Cut(s, ":")
	if !isRange {
		most = least
	}
	lo, err := strconv.ParseInt(least, 10, 32)
	if err != nil {
		return NNodes{}, fmt.Errorf("nnodes %q: want a number or min:max", s)
	}
	hi, err := strconv.ParseInt(most, 10, 32)
	if err != nil {
		return NNodes{}, fmt.Errorf("nnodes %q: want a number or min:max", s)
	}
	n := NNodes{Min: int32(lo), Max: int32(hi), Text: true}
	return n, n.validate()
}

// String writes the number as torchrun reads it.
func (n NNodes) String() string {
	if n.Min == n.Max {
		return strconv.Itoa(int(n.Min))
	}
	return fmt.Sprintf("%d:%d", n.Min, n.Max)
}

func (n NNodes) validate() error {
	switch {
	case n.Min < 1:
		return fmt.Errorf("nnodes %s: want at least 1 node", n)
	case n.Min > n.Max:
		return fmt.Errorf("nnodes %s: the minimum is above the maximum", n)
	}
	return nil
}
