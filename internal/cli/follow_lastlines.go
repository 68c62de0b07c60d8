package cli

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/yard"
)

// lastWords are the last lines of each replica's attempts. A failure's own last words are as many as Kubernetes keeps, and after a failed
// training torchrun says more than that about itself.
type lastWords map[string]map[int32][]string

const (
	// keptWords is how many lines of an attempt are kept, enough for what torchrun says and what was said before it.
	keptWords = 80
	// toldWords is how many of them are told.
	toldWords = 10
)

// torchrunsWord begins what torchrun says of a process of its that failed: of torch 1 as a logger's name, of torch 2 as a file's.
var torchrunsWord = regexp.MustCompile(`torch[./]distributed[./]elastic[./]multiprocessing[./]api.*failed \(exitcode`)

// hear keeps a line.
func (w lastWords) hear(l yard.Line) {
	if w[l.Replica] == nil {
		w[l.Replica] = map[int32][]string{}
	}
	lines := append(w[l.Replica][l.Attempt], l.Text)
	w[l.Replica][l.Attempt] = lines[max(0, len(lines)-keptWords):]
}

// better is a failure with what its replica said before torchrun spoke, where torchrun's are the last words.
func (w lastWords) better(f *job.Failure) *job.Failure {
	if f == nil || !strings.Contains(f.Message, "ChildFailedError") {
		return f
	}
	said := w[shortName(f.Replica)]
	for _, attempt := range slices.Sorted(maps.Keys(said)) {
		lines := said[attempt]
		if end := slices.IndexFunc(lines, torchrunsWord.MatchString); end > 0 {
			told := *f
			told.Message = strings.Join(lines[max(0, end-toldWords):end], "\n")
			return &told
		}
	}
	return f
}
