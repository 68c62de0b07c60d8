package cli

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/yard"
)

// lastLines are the last log lines of each replica's attempts. Kubernetes keeps only a few lines with a failure, and after a failed
// training torchrun writes more lines than that about itself.
type lastLines map[string]map[int32][]string

const (
	// keptLines is how many lines of an attempt are kept: enough for torchrun's lines and those before them.
	keptLines = 80
	// shownLines is how many of them are printed.
	shownLines = 10
)

// torchrunFailure matches the first line that torchrun writes about a failed process. Torch 1 writes a logger's name, torch 2 a file's.
var torchrunFailure = regexp.MustCompile(`torch[./]distributed[./]elastic[./]multiprocessing[./]api.*failed \(exitcode`)

// add stores a line.
func (w lastLines) add(l yard.Line) {
	if w[l.Replica] == nil {
		w[l.Replica] = map[int32][]string{}
	}
	lines := append(w[l.Replica][l.Attempt], l.Text)
	w[l.Replica][l.Attempt] = lines[max(0, len(lines)-keptLines):]
}

// beforeTorchrun is a failure with the lines before torchrun's, if its own message is torchrun's.
func (w lastLines) beforeTorchrun(f *job.Failure) *job.Failure {
	if f == nil || !strings.Contains(f.Message, "ChildFailedError") {
		return f
	}
	attempts := w[shortName(f.Replica)]
	for _, attempt := range slices.Sorted(maps.Keys(attempts)) {
		lines := attempts[attempt]
		if end := slices.IndexFunc(lines, torchrunFailure.MatchString); end > 0 {
			better := *f
			better.Message = strings.Join(lines[max(0, end-shownLines):end], "\n")
			return &better
		}
	}
	return f
}
