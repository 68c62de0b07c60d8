package yard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/job"
	terminal "github.com/trainyard/trainyard/internal/text"
)

// stream reads the log of one pod's training container.
type stream struct {
	yard      *Yard
	pod       *corev1.Pod
	container string
	replica   string
	attempt   int32
	since     *metav1.Time
	tail      *int64 // until the log is opened for the first time
	// last is the time of the last line emitted, resumed what last was when the log was opened, open what was read of the next line.
	last, resumed time.Time
	open          openLine
	partial       bool // emit incomplete lines too
	opened        bool // the log could be opened at least once
	emit          func(Line)
	// changed says that the pod has changed: its container has started, it will write no more, or the pod is gone.
	changed              chan struct{}
	mu                   sync.Mutex
	started, ended, gone bool
	// restarts is how many restarts of the container in its pod the emitted lines cover.
	restarts int32
}

func newStream(y *Yard, j *Job, pod *corev1.Pod, q LogQuery, emit func(Line)) *stream {
	s := &stream{yard: y, pod: pod, partial: q.Partial, emit: emit, changed: make(chan struct{}, 1)}
	s.replica, s.attempt = ReplicaOf(pod)
	s.container = ContainerOf(j, pod)
	if q.Container != "" {
		s.container = q.Container
	}
	s.tail = q.Tail
	if q.Since > 0 {
		s.since = &metav1.Time{Time: time.Now().Add(-q.Since).Truncate(time.Second)} // the API has whole seconds
	}
	return s
}

// update takes the pod's state from the watch.
func (s *stream) update(pod *corev1.Pod, gone bool) {
	s.record(pod, gone)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// record stores the pod's state. Nothing is taken back, because a read may be older than the watch.
func (s *stream) record(pod *corev1.Pod, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range pod.Status.InitContainerStatuses {
		if c.Name == s.container {
			s.started = s.started || c.State.Running != nil || c.State.Terminated != nil || c.RestartCount > 0
			s.ended = s.ended || c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == s.container && (c.State.Running != nil || c.State.Terminated != nil || c.RestartCount > 0) {
			s.started = true
		}
	}
	s.gone = s.gone || gone
	s.ended = s.ended || job.TrainingOver(pod, s.container)
}

func (s *stream) state() (started, ended, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started, s.ended, s.gone
}

const (
	// retryInterval is how long to wait before a log that broke off is opened again.
	retryInterval = 200 * time.Millisecond
	// extraRequestTimeout limits a request whose answer is useful but not necessary.
	extraRequestTimeout = 2 * time.Second
)

// follow reads until the pod has ended and its log is read to the end. If a line is still incomplete when no more can be read, it is
// emitted as it is.
func (s *stream) follow(ctx context.Context) {
	defer s.remarkLost()
	defer s.endOpen()
	for ctx.Err() == nil {
		started, ended, gone := s.state()
		if gone || ended && !started {
			return // another pod may have the name by now
		}
		if !started {
			select {
			case <-s.changed:
			case <-ctx.Done():
			}
			continue
		}
		switch err := s.readNew(ctx); {
		case ended && err == nil:
			return
		case apierrors.IsForbidden(err):
			s.opened = true // an error is not a lost log
			s.remark("this log is not shown to you: %v", err)
			return
		}
		select {
		case <-s.changed:
		case <-time.After(retryInterval):
		case <-ctx.Done():
		}
	}
}

// remarkLost remarks that a container ran and its log could never be opened, for example of a pod that was deleted when it ended.
func (s *stream) remarkLost() {
	if started, _, _ := s.state(); started && !s.opened {
		s.remark("this log was gone before it could be read")
	}
}

// remark emits a line about the log, in place of it.
func (s *stream) remark(format string, args ...any) {
	s.emit(Line{Time: time.Now(), Replica: s.replica, Attempt: s.attempt, Text: "(" + fmt.Sprintf(format, args...) + ")"})
}

// readNew reads what was not read yet: first what the container wrote before a restart in its pod, if that was missed, then what it
// writes now. The watch may not know of a restart yet, so the pod is read first.
func (s *stream) readNew(ctx context.Context) error {
	pod, err := s.yard.Core.CoreV1().Pods(s.pod.Namespace).Get(ctx, s.pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.record(s.pod, true)
		return nil
	}
	if err != nil {
		return err
	}
	s.record(pod, pod.UID != s.pod.UID)
	_, ended, gone := s.state()
	if gone {
		return nil
	}
	if n := restarts(pod, s.container); n > s.restarts {
		if s.tail == nil {
			if err := ignoreLost(s.read(ctx, corev1.PodLogOptions{Previous: true})); err != nil {
				return err
			}
		}
		s.endOpen() // if the log before the restart is lost
		s.restarts = n
	}
	return ignoreLost(s.read(ctx, corev1.PodLogOptions{Follow: !ended}))
}

// ignoreLost ignores that a log does not exist, or no longer.
func ignoreLost(err error) error {
	if apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// read emits the lines that were not emitted yet. kubelet gives a line the time of its beginning, so a line that was incomplete when
// the log broke off is read again from its beginning.
func (s *stream) read(ctx context.Context, options corev1.PodLogOptions) error {
	options.Container, options.Timestamps, options.SinceTime = s.container, true, s.since
	if !s.last.IsZero() {
		options.SinceTime = &metav1.Time{Time: s.last}
	}
	options.TailLines = s.tail
	log, err := s.yard.Core.CoreV1().Pods(s.pod.Namespace).GetLogs(s.pod.Name, &options).Stream(ctx)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // it was only read
	s.opened = true
	if s.tail != nil && s.since == nil { // a log that breaks off before its first line is read from here
		s.since = &metav1.Time{Time: time.Now().Truncate(time.Second)}
	}
	s.tail = nil
	err = s.lines(log)
	if err == nil && !options.Follow { // else the container may still write, and the line is read again later
		s.endOpen()
	}
	return err
}

func (s *stream) lines(log io.Reader) error {
	s.open.take()
	s.resumed = s.last
	buffer := make([]byte, 32<<10)
	for {
		n, err := log.Read(buffer)
		part, rest, ended := bytes.Cut(buffer[:n], []byte{'\n'})
		for s.open.add(part); ended; s.open.add(part) {
			s.line(s.open.take(), false)
			part, rest, ended = bytes.Cut(rest, []byte{'\n'})
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if s.partial {
			s.line(s.open.peek(), true)
		}
	}
}

// endOpen emits a line that no newline will end.
func (s *stream) endOpen() { s.line(s.open.take(), false) }

// line emits a line, unless it was emitted before the log broke off: it is then not newer than the last line emitted.
func (s *stream) line(text string, partial bool) {
	at, text, ok := s.timed(text)
	if text = terminal.Visible(text); !ok || !at.After(s.resumed) || partial && text == "" {
		return
	}
	if !partial {
		s.last = at
	}
	s.emit(Line{Time: at, Replica: s.replica, Attempt: s.attempt, Text: text, Partial: partial})
}

// timed takes the time from a line. A line that began before the time asked for comes without its beginning, so it has no time. If
// the program has overwritten that beginning (after a carriage return), the rest is complete and wanted: a progress bar may be
// hours old.
func (s *stream) timed(text string) (at time.Time, rest string, ok bool) {
	stamp, rest, _ := strings.Cut(text, " ")
	if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
		return at, rest, true
	}
	if _, rest, ok = strings.Cut(text, "\r"); !ok || s.since == nil {
		return at, "", false
	}
	rest = terminal.Visible(rest)
	return s.since.Time, rest, rest != ""
}

// openLine is a line with its time, as far as it was read. Overwritten text is dropped, because a progress bar's line can grow for days.
type openLine struct{ text []byte }

func (o *openLine) add(more []byte) {
	o.text = append(o.text, more...)
	if bytes.IndexByte(more, '\r') < 0 {
		return
	}
	begin := bytes.IndexByte(o.text, ' ') + 1
	if over := bytes.LastIndexByte(bytes.TrimRight(o.text, "\r"), '\r'); over > begin {
		o.text = append(o.text[:begin], o.text[over:]...)
	}
}

// peek is the beginning of the line, as much as a person can read.
func (o *openLine) peek() string { return string(o.text[:min(len(o.text), 4<<10)]) }

func (o *openLine) take() string {
	text := string(o.text)
	o.text = o.text[:0]
	return text
}
