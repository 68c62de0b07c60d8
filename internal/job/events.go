package job

import (
	"fmt"
	"strings"
	"time"
)

// Event is a sentence for the job's user, sent once.
type Event struct {
	Warning bool
	// Routine says that every job does this and its conditions show it: the event is not worth a request.
	Routine         bool
	Reason, Message string
	// Failure is what the event is about, nil if it is about none.
	Failure *Failure
}

// Metric is a number to add to the operator's metrics.
type Metric struct {
	Name MetricName
	// Seconds is the measured duration; counters have none and go up by one.
	Seconds float64
	// Class and Reason are those of a counted failure.
	Class  Class
	Reason string
}

// MetricName says what a number is about.
type MetricName string

// What is counted and measured.
const (
	JobsCreated   MetricName = "JobsCreated"
	JobsSucceeded MetricName = "JobsSucceeded"
	JobsFailed    MetricName = "JobsFailed"
	JobsRestarted MetricName = "JobsRestarted"
	JobsDeleted   MetricName = "JobsDeleted"
	// Failures are counted by class and reason.
	Failures MetricName = "Failures"
	// PodsForceDeleted are counted by the state of their node.
	PodsForceDeleted MetricName = "PodsForceDeleted"
	TimeToRunning    MetricName = "TimeToRunning"
	TimeToRecover    MetricName = "TimeToRecover"
	DeadlineLateness MetricName = "DeadlineLateness"
)

// becomes makes a condition true and emits its event. The first Created and Running are routine.
func (p *pass) becomes(t ConditionType, what string) {
	s := p.next()
	if !s.Is(t) {
		p.emit(t == Failed || t == Restarting, p.reason(t), what)
		p.Events[len(p.Events)-1].Routine = t == Created || t == Running && s.Attempt == 0 && s.LastFailure == nil
	}
	s.set(t, p.reason(t), p.sentence(what), p.Now)
}

// emit adds an event to the decision.
func (p *pass) emit(warning bool, reason, what string) {
	if !strings.HasPrefix(reason, p.Job.Kind) {
		reason = p.Job.Kind + reason
	}
	p.Events = append(p.Events, Event{Warning: warning, Reason: reason, Message: p.sentence(what)})
}

// about says which failure the last event is about.
func (p *pass) about(f *Failure) { p.Events[len(p.Events)-1].Failure = f }

func (p *pass) reason(t ConditionType) string { return p.Job.Kind + string(t) }

func (p *pass) sentence(what string) string {
	return fmt.Sprintf("%s %s %s.", p.Job.Kind, p.Job.Name, strings.TrimRight(what, ". \n"))
}

func (p *pass) count(name MetricName) { p.Metrics = append(p.Metrics, Metric{Name: name}) }

func (p *pass) countFailure(f *Failure) {
	p.Metrics = append(p.Metrics, Metric{Name: Failures, Class: f.Class, Reason: f.Reason})
}

func (p *pass) measure(name MetricName, d time.Duration) {
	p.Metrics = append(p.Metrics, Metric{Name: name, Seconds: max(d, 0).Seconds()})
}
