package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/story"
	"github.com/trainyard/trainyard/internal/yard"
)

// follower follows a job to its end: it prints logs, events, a live line and a summary.
type follower struct {
	yard    *yard.Yard
	screen  *screen
	json    bool
	signals <-chan os.Signal
	// clusterDone is closed when the local cluster of the job has ended. clusterErr is then the error.
	clusterDone <-chan struct{}
	clusterErr  error

	job   *yard.Job
	pad   int
	first *job.Failure
	// last is what the replicas wrote last.
	last lastLines
	// detaches says that Ctrl-C does not delete the job, keeps that SIGTERM does not.
	detaches, keeps bool
	// attached says that the job was submitted before, own that its cluster ends with this process.
	attached, own bool
	// endsNow says that a signal ended the process that does not let its cluster wait for other runs.
	endsNow bool
	// stopping says that a person wants the job to stop, deleting that the API server has accepted that, denied that it refused.
	stopping, deleting, denied bool
	// killed says that there is no orderly end to wait for: Ctrl-C was pressed twice, or the cluster has ended.
	killed bool
	// lines are the replicas' log lines; contact says whether the cluster answers.
	lines   chan yard.Line
	contact chan bool
	// checked is when Kubernetes' warnings were last read, warned the last one that was reported.
	checked time.Time
	warned  string
}

// warningsInterval is how often Kubernetes' warnings are read while a job is starting and has no message.
const warningsInterval = 5 * time.Second

// logIdleTimeout is how long to wait for the next log line after the job's end.
const logIdleTimeout = 5 * time.Second

// follow returns when the job has ended, with its outcome.
func (f *follower) follow(ctx context.Context, j *yard.Job) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.job, f.checked, f.last = j, time.Now(), lastLines{}
	f.lines, f.contact = make(chan yard.Line, 100), make(chan bool)
	for _, r := range replicasOf(j.Job) {
		f.pad = max(f.pad, len(shortName(r)))
	}
	if f.attached {
		f.report("attached", "%s %s is %s.", j.Kind.Name(), j.Job.Name, strings.ToLower(f.story().State()))
	} else {
		f.report("submitted", "%s %s is submitted.", j.Kind.Name(), j.Job.Name)
	}
	changes, err := f.yard.Follow(ctx, j, func(answers bool) {
		select {
		case f.contact <- answers:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return err
	}
	logs := f.yard.FollowLogs(ctx, j, yard.LogQuery{Partial: f.screen.width > 0}, func(l yard.Line) { f.lines <- l })
	defer f.screen.clearLive()
	return f.loop(ctx, changes, logs)
}

// loop reports what happens, in that order, until the job has ended.
func (f *follower) loop(ctx context.Context, changes <-chan *yard.Job, logs finish) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case l := <-f.lines:
			f.log(l)
		case <-tick.C:
			if f.stops() && !f.deleting {
				f.deleteJob(ctx, time.Second)
			}
			f.reportWarnings(ctx)
			f.screen.setLive(f.live())
		case s := <-f.signals:
			if err := f.interrupt(ctx, s); err != nil {
				return err
			}
		case answers := <-f.contact:
			f.report("contact", "%s.", contactWords(answers))
		case <-f.clusterDone:
			f.killed = true
			return f.clusterErr
		case next := <-changes:
			f.change(next)
			if next.Gone || next.Status.Finished() && !f.deleting {
				f.drain(ctx, logs)
				return f.end()
			}
		}
	}
}

// finish reads logs to their end and reports whether it got all.
type finish func(ctx context.Context, idleTimeout time.Duration) (whole bool)

// drain prints what was written before the end. Ctrl-C skips the rest.
func (f *follower) drain(ctx context.Context, logs finish) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan bool, 1)
	go func() { done <- logs(ctx, logIdleTimeout) }()
	for {
		select {
		case l := <-f.lines:
			f.log(l)
			continue
		case s := <-f.signals:
			f.endsNow = endsNow(s)
			return
		case whole := <-done:
			for len(f.lines) > 0 {
				f.log(<-f.lines)
			}
			if !whole {
				f.report("error", "the log could not be read to its end: %s shows what is left of it.", hint(f.yard, f.job, "logs"))
			}
			return
		}
	}
}

func (f *follower) log(l yard.Line) {
	if !l.Partial {
		f.last.add(l)
	}
	if f.json {
		l.Attempt++ // people count from 1
		f.print(struct {
			Type string `json:"type"`
			Job  string `json:"job"`
			yard.Line
		}{"log", f.job.Job.Name, l})
		return
	}
	if l.Partial {
		f.screen.showProgress(l.Replica, l.Text)
		return
	}
	f.screen.log(l.Replica, l.Text, f.pad)
}

// change reports what has changed about the job.
func (f *follower) change(next *yard.Job) {
	was, is := f.job.Status, next.Status
	f.job = next
	if f.first == nil {
		f.first = is.LastFailure
	}
	if changes := story.Scaled(was, is); changes != "" && !f.stops() && !next.Gone {
		f.report("scaled", "%s is scaled: %s.", next.Job.Name, changes)
	}
	switch {
	case f.stops() || next.Gone:
	case is.Retries+is.Disruptions > was.Retries+was.Disruptions && is.LastFailure != nil && !is.Finished():
		f.report("restarting", "%s is restarting: %s%s.", next.Job.Name, is.LastFailure, charged(next, was))
	case is.Is(job.Running) && !was.Is(job.Running):
		f.report("running", "%s is running, %s ready.", next.Job.Name, is.Ready)
	case is.Is(job.Suspended) && !was.Is(job.Suspended):
		f.report("suspended", "%s is suspended.", next.Job.Name)
	case is.Message != was.Message && is.Message != "" && !is.Finished():
		f.report("waiting", "%s is %s: %s.", next.Job.Name, strings.ToLower(f.story().State()), strings.TrimRight(is.Message, "."))
	}
	f.screen.setLive(f.live())
}

// reportWarnings says why a job does not start, if only Kubernetes' warnings say so, for example about a volume that cannot be mounted.
func (f *follower) reportWarnings(ctx context.Context) {
	if s := f.story(); f.stops() || s.Status.Message != "" || s.State() != "Starting" || time.Since(f.checked) < warningsInterval {
		return
	}
	f.checked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := fullStory(ctx, f.yard, f.job)
	if err != nil || len(s.Warnings) == 0 || s.Warnings[len(s.Warnings)-1] == f.warned {
		return
	}
	f.warned = s.Warnings[len(s.Warnings)-1]
	f.report("waiting", "%s is starting: %s.", f.job.Job.Name, strings.TrimRight(f.warned, "."))
}

// charged says whether a restart was charged as a retry.
func charged(j *yard.Job, was job.Status) string {
	switch limit := j.Job.Policy.BackoffLimit; {
	case j.Status.Retries == was.Retries:
		return "; not charged"
	case limit != nil:
		return fmt.Sprintf("; retry %d of %d", j.Status.Retries, *limit)
	}
	return fmt.Sprintf("; retry %d", j.Status.Retries)
}

func (f *follower) story() story.Story { return storyOf(f.job, time.Now()) }

func (f *follower) live() string {
	if f.stops() {
		return "stopping · Ctrl-C again kills it"
	}
	return f.job.Job.Name + " · " + f.story().Line()
}

// report prints that something happened.
func (f *follower) report(kind, format string, args ...any) {
	if f.json {
		f.print(map[string]any{"type": kind, "time": time.Now().UTC(), "job": f.job.Job.Name, "message": fmt.Sprintf(format, args...)})
		return
	}
	f.screen.say("» "+format, args...)
}

func (f *follower) print(event any) {
	text, err := json.Marshal(event)
	if err != nil {
		text = fmt.Appendf(nil, `{"type":"error","message":%q}`, err)
	}
	fmt.Fprintf(f.screen.out, "%s\n", text)
}
