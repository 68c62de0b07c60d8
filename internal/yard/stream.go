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

	"github.com/trainyard/trainyard/api/naming"
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
	// last is the time of the last line told, told what it was when the log was opened, open what is read of the next.
	last, told time.Time
	open       openLine
	partial    bool // tell of that, too
	opened     bool // the log was once
	tell       func(Line)
	// changed says that the pod has news: that its container has started, that no more will be written, that it is gone.
	changed              chan struct{}
	mu                   sync.Mutex
	started, ended, gone bool
	// restarts is how often the container was restarted in its pod, as far as its log is told.
	restarts int32
}

func newStream(y *Yard, j *Job, pod *corev1.Pod, q LogQuery, tell func(Line)) *stream {
	s := &stream{yard: y, pod: pod, partial: q.Partial, tell: tell, changed: make(chan struct{}, 1)}
	s.replica, s.attempt = replicaOf(pod)
	s.container = job.TrainingContainer(pod.Spec, "") // where the roles are not known
	for _, role := range j.Job.Roles {
		if strings.EqualFold(role.Name, pod.Labels[naming.LabelReplicaType]) {
			s.container = job.TrainingContainer(pod.Spec, role.Container)
		}
	}
	if q.Since > 0 {
		s.since = &metav1.Time{Time: time.Now().Add(-q.Since).Truncate(time.Second)} // as it is sent
	}
	return s
}

// seen is the watch's word on how the pod is.
func (s *stream) seen(pod *corev1.Pod, gone bool) {
	s.note(pod, gone)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// note keeps how the pod is. What has happened to it has happened, whatever an older look says.
func (s *stream) note(pod *corev1.Pod, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// again is how long to wait before a log that broke off is opened again.
const again = 200 * time.Millisecond

// follow reads until the pod has ended and its log is read to the end. A line that was not ended when no more could be read
// is told as it was.
func (s *stream) follow(ctx context.Context) {
	defer s.lost()
	defer s.endOpen()
	for ctx.Err() == nil {
		started, ended, gone := s.state()
		if gone || ended && !started {
			return // the name may be another pod's by now
		}
		if !started {
			select {
			case <-s.changed:
			case <-ctx.Done():
			}
			continue
		}
		switch err := s.whole(ctx); {
		case ended && err == nil:
			return
		case apierrors.IsForbidden(err):
			s.opened = true // as far as it can be
			s.remark("this log is not shown to you: %v", err)
			return
		}
		select {
		case <-s.changed:
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
}

// lost tells of a container that has run and whose log could never be opened, as that of a pod that went as soon as it had ended.
func (s *stream) lost() {
	if started, _, _ := s.state(); started && !s.opened {
		s.remark("this log was gone before it could be read")
	}
}

// remark tells something about the log in its place.
func (s *stream) remark(format string, args ...any) {
	s.tell(Line{Time: time.Now(), Replica: s.replica, Attempt: s.attempt, Text: "(" + fmt.Sprintf(format, args...) + ")"})
}

// whole reads the log as far as it is written: what the container wrote before it was restarted in its pod, where that was
// missed, then what it writes now. The watch may be behind on restarts, so the pod is looked at first.
func (s *stream) whole(ctx context.Context) error {
	pod, err := s.yard.Core.CoreV1().Pods(s.pod.Namespace).Get(ctx, s.pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.note(s.pod, true)
		return nil
	}
	if err != nil {
		return err
	}
	s.note(pod, pod.UID != s.pod.UID)
	_, ended, gone := s.state()
	if gone {
		return nil
	}
	if n := restarts(pod, s.container); n > s.restarts {
		if err := ignoreLost(s.read(ctx, corev1.PodLogOptions{Previous: true})); err != nil {
			return err
		}
		s.endOpen() // where the log before is lost
		s.restarts = n
	}
	return ignoreLost(s.read(ctx, corev1.PodLogOptions{Follow: !ended}))
}

// ignoreLost leaves out that a log is not there, or not any more.
func ignoreLost(err error) error {
	if apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// read tells the lines that were not told yet. kubelet gives a line the time of its beginning, so one that was open when the
// log broke off is read again from there.
func (s *stream) read(ctx context.Context, options corev1.PodLogOptions) error {
	options.Container, options.Timestamps, options.SinceTime = s.container, true, s.since
	if !s.last.IsZero() {
		options.SinceTime = &metav1.Time{Time: s.last}
	}
	log, err := s.yard.Core.CoreV1().Pods(s.pod.Namespace).GetLogs(s.pod.Name, &options).Stream(ctx)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // it was only read
	s.opened = true
	err = s.lines(log)
	if err == nil && !options.Follow { // else the container may still run, and the line is read again when it has ended
		s.endOpen()
	}
	return err
}

func (s *stream) lines(log io.Reader) error {
	s.open.take()
	s.told = s.last
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

// endOpen tells a line that no newline will end.
func (s *stream) endOpen() { s.line(s.open.take(), false) }

// line tells a line, unless it was told before the log broke off: what is as old as the last one told was.
func (s *stream) line(text string, partial bool) {
	at, text, ok := s.timed(text)
	if text = terminal.Shown(text); !ok || !at.After(s.told) || partial && text == "" {
		return
	}
	if !partial {
		s.last = at
	}
	s.tell(Line{Time: at, Replica: s.replica, Attempt: s.attempt, Text: text, Partial: partial})
}

// timed takes the time from a line. The rest of one that began before those wanted has none. Of that, what was written over the
// beginning is whole, and wanted: a progress bar may be hours old.
func (s *stream) timed(text string) (at time.Time, rest string, ok bool) {
	stamp, rest, _ := strings.Cut(text, " ")
	if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
		return at, rest, true
	}
	if _, rest, ok = strings.Cut(text, "\r"); !ok || s.since == nil {
		return at, "", false
	}
	rest = terminal.Shown(rest)
	return s.since.Time, rest, rest != ""
}

// openLine is a line with its time, as far as it is read. What was written over is let go, as a progress bar's line can grow for days.
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

// peek is as much of it as a person could look at.
func (o *openLine) peek() string { return string(o.text[:min(len(o.text), 4<<10)]) }

func (o *openLine) take() string {
	text := string(o.text)
	o.text = o.text[:0]
	return text
}
