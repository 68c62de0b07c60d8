package job

import (
	"fmt"
	"strings"
	"time"
)

// Event is a sentence to tell the job's user, once.
type Event struct {
	Warning bool
	// Routine says that it is what every job does, and that the conditions show it: not worth a request.
	Routine         bool
	Reason, Message string
}

// Metric is a number to add to what operators of many jobs look at.
type Metric struct {
	Name MetricName
	// Seconds is the measured duration; counters have none and go up by one.
	Seconds float64
}

// MetricName says what a number is about.
type MetricName string

// What is counted and measured.
const (
	JobsCreated      MetricName = "JobsCreated"
	JobsSucceeded    MetricName = "JobsSucceeded"
	JobsFailed       MetricName = "JobsFailed"
	JobsRestarted    MetricName = "JobsRestarted"
	JobsDeleted      MetricName = "JobsDeleted"
	TimeToRunning    MetricName = "TimeToRunning"
	TimeToRecover    MetricName = "TimeToRecover"
	DeadlineLateness MetricName = "DeadlineLateness"
)

// becomes makes a condition true and tells it. That a job begins is no news: it was created and runs for the first time.
func (p *pass) becomes(t ConditionType, what string) {
	s := p.next()
	if !s.Is(t) {
		p.say(t == Failed || t == Restarting, p.reason(t), what)
		p.Events[len(p.Events)-1].Routine = t == Created || t == Running && s.Attempt == 0 && s.LastFailure == nil
	}
	s.set(t, p.reason(t), p.sentence(what), p.Now)
}

// say tells something that happened to the job.
func (p *pass) say(warning bool, reason, what string) {
	if !strings.HasPrefix(reason, p.Job.Kind) {
		reason = p.Job.Kind + reason
	}
	p.Events = append(p.Events, Event{Warning: warning, Reason: reason, Message: p.sentence(what)})
}

func (p *pass) reason(t ConditionType) string { return p.Job.Kind + string(t) }

func (p *pass) sentence(what string) string {
	return fmt.Sprintf("%s %s %s.", p.Job.Kind, p.Job.Name, strings.TrimRight(what, ". \n"))
}

func (p *pass) tell(name MetricName) { p.Metrics = append(p.Metrics, Metric{Name: name}) }

func (p *pass) measure(name MetricName, d time.Duration) {
	p.Metrics = append(p.Metrics, Metric{name, max(d, 0).Seconds()})
}
