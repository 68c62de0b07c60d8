package flyte

import "fmt"

// Code names a kind of Warning; it is stable and can be used to silence one.
type Code string

// The warnings this package gives.
const (
	// ZeroLost: a zero that proto3 cannot distinguish from unset, or an unset field of a message that is set.
	ZeroLost Code = "zero-lost"
	// PolicyIgnored: a run policy on a task for which no job is created.
	PolicyIgnored Code = "policy-ignored"
	// GPUsHeld: pods with GPUs that run on when the job has ended.
	GPUsHeld Code = "gpus-held"
	// NeverRestarted: a range of nodes whose pods are never replaced, or a retry limit for replicas that are never retried.
	NeverRestarted Code = "never-restarted"
	// NoRendezvous: a rendezvous backend without a server.
	NoRendezvous Code = "no-rendezvous"
	// ResourcesReset: an empty resources message, which Flyte 2 treats as set.
	ResourcesReset Code = "resources-reset"
	// BadName: a job name that is too long for the names of its pods, or is invalid.
	BadName Code = "bad-name"
	// DeadlineBeforeJoin: an active deadline that passes while replicas still wait for each other.
	DeadlineBeforeJoin Code = "deadline-before-join"
	// SlotsIgnored: MPI slots, which Flyte's backend does not read.
	SlotsIgnored Code = "slots-ignored"
	// SpecTwice: a replica described by its common message and by the deprecated fields.
	SpecTwice Code = "spec-twice"
	// UnknownField: a field that the message does not have.
	UnknownField Code = "unknown-field"
	// NotCarried: something that the target form has no field for.
	NotCarried Code = "not-carried"
)

// Warning says what is lost or will surprise, and where.
type Warning struct {
	Code Code
	// Path is the field, as in runPolicy.backoffLimit; empty when it is about the whole.
	Path string
	// Message is one plain sentence without a full stop.
	Message string
}

// String renders the warning as one line.
func (w Warning) String() string {
	if w.Path == "" {
		return fmt.Sprintf("%s [%s]", w.Message, w.Code)
	}
	return fmt.Sprintf("%s: %s [%s]", w.Path, w.Message, w.Code)
}

func warn(code Code, path, format string, args ...any) Warning {
	return Warning{Code: code, Path: path, Message: fmt.Sprintf(format, args...)}
}
