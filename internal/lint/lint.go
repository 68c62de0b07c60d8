// Package lint finds what is wrong with a manifest before a cluster does, and in which line.
//
// Errors are what the API server would refuse in the object, or in the pods and Services that the operator creates for it. Kubernetes'
// own libraries find them with the embedded definitions, so most messages are the API server's own. Warnings are what it would accept
// and the user may not have meant.
//
// A value that cannot be read does not hide other problems: it is fixed or left out, and the rest is checked as far as it does not
// depend on it.
package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trainyard/trainyard/internal/document"
	"github.com/trainyard/trainyard/internal/kinds"
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
	// Path is the field; empty where the problem is that of the whole file.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	// Depends is set where a cluster may decide otherwise, by its webhooks, runtimes and kinds.
	Depends bool `json:"-"`

	column int
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

// Count is how many objects were checked.
type Count struct{ Jobs, Runtimes int }

// Check finds the problems of a text of manifests, in the order of their lines, and counts the jobs and runtimes in it.
func Check(ctx context.Context, file, text string) (problems []Problem, count Count, err error) {
	docs, wrong := document.Parse(file, text)
	for _, mistake := range document.Mistakes(wrong) {
		p := Problem{File: file, Severity: Error, Message: mistake.Error()}
		var located *document.Error
		if errors.As(mistake, &located) {
			p.Line, p.Message = located.Line, located.Err.Error()
		}
		problems = append(problems, p)
	}
	more, count, err := Documents(ctx, docs)
	if err != nil {
		return nil, count, err
	}
	return sorted(append(problems, more...)), count, nil
}

// Documents finds the problems of objects that have been read.
func Documents(ctx context.Context, docs []*document.Document) (problems []Problem, count Count, err error) {
	for _, doc := range docs {
		c := &checker{doc: doc, file: docs}
		isOurs, err := c.check(ctx)
		switch {
		case err != nil:
			return nil, Count{}, err
		case isOurs && kinds.Of(doc.Object.GroupVersionKind()) != nil:
			count.Jobs++
		case isOurs:
			count.Runtimes++
		}
		problems = append(problems, c.problems...)
	}
	return sorted(problems), count, nil
}

// sorted are problems by their lines. Of several equal problems in one place it keeps one: an anchor is read wherever it is used, a
// runtime once for every job.
func sorted(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path)) })
	type place struct {
		line, column   int
		field, message string
	}
	said := map[place]bool{}
	return slices.DeleteFunc(problems, func(p Problem) bool {
		at := place{p.Line, p.column, p.Path[strings.LastIndex(p.Path, ".")+1:], p.Message}
		again := said[at]
		said[at] = true
		return again
	})
}

// checker looks at one object.
type checker struct {
	doc  *document.Document
	file []*document.Document
	// object is the document's object. What is wrong in it is fixed or left out, as far as it has been checked.
	object   *unstructured.Unstructured
	problems []Problem
	// dropped are the fields that were left out.
	dropped []string
}

func (c *checker) add(severity Severity, path, format string, args ...any) {
	c.addTo(c.doc, severity, path, format, args...)
}

func (c *checker) addTo(doc *document.Document, severity Severity, path, format string, args ...any) {
	c.problems = append(c.problems, Problem{
		File: doc.File, Line: doc.Line(path), column: doc.Column(path), Severity: severity, Path: path, Message: fmt.Sprintf(format, args...),
	})
}

// depends marks the last problem as one that a cluster may decide otherwise.
func (c *checker) depends() { c.problems[len(c.problems)-1].Depends = true }

func (c *checker) warn(path, format string, args ...any) {
	if message := fmt.Sprintf(format, args...); !c.follows(path, message) {
		c.add(Warning, path, "%s", message)
	}
}

// follows tells whether a problem may be only a consequence of a dropped field: it is about that field, or about one that contains it
// and its message names it.
func (c *checker) follows(path, message string) bool {
	return slices.ContainsFunc(c.dropped, func(dropped string) bool {
		return within(path, dropped) || within(dropped, path) && strings.Contains(strings.ToLower(message), strings.ToLower(lastName(dropped)))
	})
}

// lastName is the last part of a path that is not an index.
func lastName(path string) string {
	all := parts(path)
	for i := len(all) - 1; i >= 0; i-- {
		if strings.Trim(all[i], "0123456789") != "" {
			return all[i]
		}
	}
	return path
}

// within tells whether a path is the same as another, or below it.
func within(path, other string) bool {
	p, o := parts(path), parts(other)
	return len(p) >= len(o) && slices.Equal(p[:len(o)], o)
}

// parts are the names and indexes of a path, in either notation: a.b[0], a[b][0].
func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}
