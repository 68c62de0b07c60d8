package cli

import (
	"fmt"
	"time"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/story"
)

// end prints how the job ended.
func (f *follower) end() error {
	f.screen.clearLive()
	s := f.story()
	code := 0
	switch {
	case f.deleting || f.stopping && f.job.Gone:
		f.report("stopped", "%s is stopped.", f.job.Job.Name)
		return outcome(exitInterrupted)
	case f.job.Gone && !f.job.Status.Finished():
		return fmt.Errorf("job %s was deleted before its end", f.job.Job.Name)
	case s.EndReason() == job.ReasonDeadlineExceeded:
		code = exitDeadline
	case f.job.Status.Is(job.Failed):
		code = exitFailed
	}
	first := f.last.beforeTorchrun(s.First(f.first))
	if f.json {
		f.print(summaryOf(s, first, code))
	} else {
		fmt.Fprintf(f.screen.err, "\n%s", s.Summary(first))
	}
	if code != 0 {
		return outcome(code)
	}
	return nil
}

// summary is how a job ended, for programs.
type summary struct {
	Type        string                     `json:"type"`
	Time        time.Time                  `json:"time"`
	Job         string                     `json:"job"`
	State       string                     `json:"state"`
	Reason      string                     `json:"reason"`
	ExitCode    int                        `json:"exitCode"`
	Seconds     float64                    `json:"seconds"`
	Attempts    int32                      `json:"attempts"`
	Retries     int32                      `json:"retries"`
	Disruptions int32                      `json:"disruptions"`
	Failure     *kubeflowv1.ReplicaFailure `json:"failure,omitempty"`
	Ledger      []entry                    `json:"ledger"`
}

// entry is an attempt in the ledger.
type entry struct {
	Attempt int32     `json:"attempt"`
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
}

// summaryOf is the summary of a job. Its first failure has the fields of status.lastFailure.
func summaryOf(s story.Story, first *job.Failure, code int) summary {
	return summary{
		Type: "summary", Time: s.Now.UTC(), Job: s.Job.Name, State: s.State(), Reason: s.EndReason(), ExitCode: code,
		Seconds:  s.Status.CompletionTime.Sub(s.Status.StartTime).Seconds(),
		Attempts: s.Attempt(), Retries: s.Status.Retries, Disruptions: s.Status.Disruptions, Ledger: ledgerOf(s),
		Failure: manifest.WriteStatus(job.Status{LastFailure: s.First(first)}, nil).LastFailure,
	}
}

func ledgerOf(s story.Story) []entry {
	ledger := []entry{}
	for _, a := range s.Status.Attempts {
		ledger = append(ledger, entry{a.Number + 1, a.Start, a.End, a.Reason, a.Message})
	}
	return ledger
}
