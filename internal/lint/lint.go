// Package lint finds what is wrong with a manifest before a cluster does, with the line it stands on.
//
// Errors are what the API server would refuse: they are found by its own libraries over the embedded definitions, so they
// are its own sentences. Warnings are what it would accept and its user may not have meant.
package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/internal/document"
)

// Severity says how bad a problem is.
type Severity string

// The severities.
const (
	// Error is what a cluster would refuse.
	Error Severity = "error"
	// Warning is what a cluster would accept.
	Warning Severity = "warning"
)

// Problem is one thing that is wrong, and where.
type Problem struct {
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`
	Severity Severity `json:"severity"`
	// Path is the field; empty where the problem is the file's.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

func (p Problem) String() string {
	place := p.File
	if p.Line > 0 {
		place = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	if p.Path == "" {
		return fmt.Sprintf("%s: %s: %s", place, p.Severity, p.Message)
	}
	return fmt.Sprintf("%s: %s: %s: %s", place, p.Severity, p.Path, p.Message)
}

// Check finds the problems of a text of manifests, in the order of their lines, and counts the jobs in it.
func Check(ctx context.Context, file, text string) (problems []Problem, jobs int, err error) {
	docs, mistakes := document.Parse(file, text)
	for _, mistake := range unjoin(mistakes) {
		p := Problem{File: file, Severity: Error, Message: mistake.Error()}
		var located *document.Error
		if errors.As(mistake, &located) {
			p.Line, p.Message = located.Line, located.Err.Error()
		}
		problems = append(problems, p)
	}
	for _, doc := range docs {
		c := &checker{doc: doc, file: docs}
		isJob, err := c.check(ctx)
		if err != nil {
			return nil, 0, err
		}
		if isJob {
			jobs++
		}
		problems = append(problems, c.problems...)
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return problems, jobs, nil
}

func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// checker looks at one object.
type checker struct {
	doc      *document.Document
	file     []*document.Document
	problems []Problem
}

func (c *checker) add(severity Severity, path, format string, args ...any) {
	c.problems = append(c.problems, Problem{
		File: c.doc.File, Line: c.doc.Line(path), Severity: severity, Path: path, Message: fmt.Sprintf(format, args...),
	})
}

func (c *checker) warn(path, format string, args ...any) { c.add(Warning, path, format, args...) }
