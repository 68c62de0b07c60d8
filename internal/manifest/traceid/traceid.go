// Package traceid computes the identifiers of the spans of a job. They are hashes of what a span is about, so the operator, which tells a pod
// its place in the trace, and whoever makes the spans later have the same ones without talking to each other.
package traceid

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// Annotation of a job names the span that the job belongs to, in the format of W3C's Trace Context.
	Annotation = "traceparent"
	// Variable tells a container the span that it belongs to, in the same format.
	Variable = "TRACEPARENT"
)

// Trace is the trace of a job. Identifiers are in hexadecimal.
type Trace struct {
	// ID is that of the whole trace, Parent that of the span which the job belongs to, empty for none.
	ID, Parent string
	// flags say whether somebody keeps the trace.
	flags string
	job   types.UID
}

var traceparent = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$`)

// Valid reports whether a text names a span.
func Valid(text string) bool {
	parts := traceparent.FindStringSubmatch(text)
	return parts != nil && strings.Trim(parts[1], "0") != "" && strings.Trim(parts[2], "0") != ""
}

// Of is the trace of a job: the one that its annotation names, or else one of its own.
func Of(job types.UID, annotations map[string]string) Trace {
	if text := annotations[Annotation]; Valid(text) {
		parts := traceparent.FindStringSubmatch(text)
		return Trace{ID: parts[1], Parent: parts[2], flags: parts[3], job: job}
	}
	return Trace{ID: hash(16, string(job)), flags: "01", job: job}
}

// Job is the span of the whole job.
func (t Trace) Job() string { return t.Span("job") }

// Attempt is the span of an attempt, which are numbered from 0.
func (t Trace) Attempt(number int32) string { return t.Span("attempt", strconv.Itoa(int(number))) }

// Replica is the span of a replica in an attempt, as in worker-0.
func (t Trace) Replica(attempt int32, replica string) string {
	return t.Span("replica", strconv.Itoa(int(attempt)), replica)
}

// Span is the span of whatever the words say about the job.
func (t Trace) Span(words ...string) string {
	return hash(8, append([]string{string(t.job)}, words...)...)
}

// Context is what a process is told whose spans belong to a span of the job.
func (t Trace) Context(span string) string { return "00-" + t.ID + "-" + span + "-" + t.flags }

// hash is the beginning of a hash of words.
func hash(bytes int, words ...string) string {
	sum := sha256.New()
	for _, word := range words {
		fmt.Fprintf(sum, "%d:%s,", len(word), word)
	}
	return hex.EncodeToString(sum.Sum(nil)[:bytes])
}
