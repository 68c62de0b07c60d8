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

// follower shows a job to its end: logs, what happens to it, a live line, a summary.
type follower struct {
	yard    *yard.Yard
	screen  *screen
	json    bool
	signals <-chan os.Signal
	// died is closed when the local cluster that the job is on has ended, and death says so.
	died  <-chan struct{}
	death error

	job   *yard.Job
	pad   int
	first *job.Failure
	// words are what was last said.
	words lastWords
	// stopping says that a person wants the job to stop, deleting that the API server has taken that, denied that it has not.
	stopping, deleting, denied bool
	// killed says that nobody waits for an orderly end: Ctrl-C was pressed twice, or the cluster is dead.
	killed bool
	// lines are what the replicas write; contact is whether the cluster answers.
	lines   chan yard.Line
	contact chan bool
	// asked is when Kubernetes was last asked what keeps the job, warned what it said.
	asked  time.Time
	warned string
}

// impatience is how long a job may start without a word before Kubernetes is asked what keeps it.
const impatience = 5 * time.Second

// drain is for how long nothing may come of logs after the job's end, while there is more.
const drain = 5 * time.Second

// follow returns when the job has ended, with its outcome.
func (f *follower) follow(ctx context.Context, j *yard.Job) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.job, f.asked, f.words = j, time.Now(), lastWords{}
	f.lines, f.contact = make(chan yard.Line, 100), make(chan bool)
	for _, r := range replicasOf(j.Job) {
		f.pad = max(f.pad, len(shortName(r)))
	}
	f.tell("submitted", "%s %s is submitted.", j.Kind.Name(), j.Job.Name)
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
	defer f.screen.end()
	return f.attend(ctx, changes, logs)
}

// attend shows what happens, in the order in which it does, until the job has ended.
func (f *follower) attend(ctx context.Context, changes <-chan *yard.Job, logs finish) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case l := <-f.lines:
			f.log(l)
		case <-tick.C:
			if f.leaving() && !f.deleting {
				f.remove(ctx, time.Second)
			}
			f.ask(ctx)
			f.screen.keep(f.live())
		case <-f.signals:
			if f.stopping {
				f.killed = true
				f.atOnce()
				return outcome(exitInterrupted)
			}
			f.interrupt(ctx)
		case answers := <-f.contact:
			f.tell("contact", "%s.", contactWords(answers))
		case <-f.died:
			f.killed = true
			return f.death
		case next := <-changes:
			f.change(next)
			if next.Gone || next.Status.Finished() && !f.deleting {
				f.drain(ctx, logs)
				return f.end()
			}
		}
	}
}

// finish reads logs to their end, as far as they come, and tells whether that was all.
type finish func(ctx context.Context, patience time.Duration) (whole bool)

// drain shows what was written before the end. Ctrl-C leaves the rest.
func (f *follower) drain(ctx context.Context, logs finish) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan bool, 1)
	go func() { done <- logs(ctx, drain) }()
	for {
		select {
		case l := <-f.lines:
			f.log(l)
			continue
		case <-f.signals:
			return
		case whole := <-done:
			for len(f.lines) > 0 {
				f.log(<-f.lines)
			}
			if !whole {
				f.tell("error", "the log could not be read to its end: %s has what is kept of it.", hint(f.yard, f.job, "logs"))
			}
			return
		}
	}
}

func (f *follower) log(l yard.Line) {
	if !l.Partial {
		f.words.hear(l)
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
		f.screen.unfinished(l.Replica, l.Text)
		return
	}
	f.screen.log(l.Replica, l.Text, f.pad)
}

// change tells what is new about the job.
func (f *follower) change(next *yard.Job) {
	was, is := f.job.Status, next.Status
	f.job = next
	if f.first == nil {
		f.first = is.LastFailure
	}
	if changes := story.Scaled(was, is); changes != "" && !f.leaving() && !next.Gone {
		f.tell("scaled", "%s is scaled: %s.", next.Job.Name, changes)
	}
	switch {
	case f.leaving() || next.Gone:
	case is.Retries+is.Disruptions > was.Retries+was.Disruptions && is.LastFailure != nil && !is.Finished():
		f.tell("restarting", "%s is restarting: %s%s.", next.Job.Name, is.LastFailure, charged(next, was))
	case is.Is(job.Running) && !was.Is(job.Running):
		f.tell("running", "%s is running, %s ready.", next.Job.Name, is.Ready)
	case is.Is(job.Suspended) && !was.Is(job.Suspended):
		f.tell("suspended", "%s is suspended.", next.Job.Name)
	case is.Message != was.Message && is.Message != "" && !is.Finished():
		f.tell("waiting", "%s is %s: %s.", next.Job.Name, strings.ToLower(f.story().State()), strings.TrimRight(is.Message, "."))
	}
	f.screen.keep(f.live())
}

// ask tells what keeps a job from starting where only Kubernetes' warnings know, as of a volume that cannot be mounted.
func (f *follower) ask(ctx context.Context) {
	if s := f.story(); f.leaving() || s.Status.Message != "" || s.State() != "Starting" || time.Since(f.asked) < impatience {
		return
	}
	f.asked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := askedOf(ctx, f.yard, f.job)
	if err != nil || len(s.Warnings) == 0 || s.Warnings[len(s.Warnings)-1] == f.warned {
		return
	}
	f.warned = s.Warnings[len(s.Warnings)-1]
	f.tell("waiting", "%s is starting: %s.", f.job.Job.Name, strings.TrimRight(f.warned, "."))
}

// charged says what a restart cost.
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
	if f.leaving() {
		return "stopping · Ctrl-C again stops it at once"
	}
	return f.job.Job.Name + " · " + f.story().Line()
}

// tell says that something happened.
func (f *follower) tell(kind, format string, args ...any) {
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
