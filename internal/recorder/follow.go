package recorder

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/record"
)

const (
	// DefaultStreams is how many logs are followed at once. The API server does not limit such requests by itself.
	DefaultStreams = 1000
	// maxReads is how many logs are read at once that are not followed: those of containers that have ended, and those for which there is no
	// stream. The latter are read every pollInterval.
	maxReads     = 32
	pollInterval = 15 * time.Second
	// goneWait is how long the log of a pod that is gone is read on: its node may not answer any more.
	goneWait = 30 * time.Second
	// A log that cannot be read is read again after minRetry, and each time later, up to maxRetry.
	minRetry, maxRetry = 200 * time.Millisecond, 15 * time.Second
)

// follower reads the logs of the pods that are being recorded from the API server. It has a request for each container that runs. A request
// that ends is continued at the last entry that is recorded.
type follower struct {
	store *record.Store
	api   corev1client.PodsGetter
	limit int
	// ctx ends all requests, requests waits for them.
	ctx      context.Context
	stop     context.CancelFunc
	requests sync.WaitGroup

	mu   sync.Mutex // guards what follows, and the fields of pods and runs
	pods map[types.UID]*followedPod
	// streams is how many logs are followed now, reads how many are read.
	streams, reads int
}

func newFollower(store *record.Store, api corev1client.PodsGetter, limit int) *follower {
	ctx, stop := context.WithCancel(context.Background())
	return &follower{store: store, api: api, limit: limit, ctx: ctx, stop: stop, pods: map[types.UID]*followedPod{}}
}

// followedPod are the logs of a pod.
type followedPod struct {
	podState
	runs map[runKey]*run
	// cause is why the rest of its logs is missing, if it is gone. goneAt is when it was seen to be.
	cause  string
	goneAt time.Time
}

// runKey is a run of a container: one that is restarted in its pod has several.
type runKey struct {
	container string
	restart   int32
}

// run is the log of a run. While it is busy, a goroutine has its writer.
type run struct {
	runKey
	writer *record.LogWriter
	busy   bool
	cancel context.CancelFunc
	// clean says that the log was read to its end: a request that follows a container ends with it. tail is a line there that had no end. done says
	// that the log is complete, or what is missing of it is a gap.
	clean, done bool
	tail        []byte
	due         time.Time
	wait        time.Duration
	failed      error
}

// watch reads the logs of a pod from now on.
func (f *follower) watch(job types.UID, pod *corev1.Pod, gone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pods[pod.UID]
	if p == nil {
		p = &followedPod{podState: podState{job: job}, runs: map[runKey]*run{}, cause: "the pod was deleted before its log was read to the end"}
		f.pods[pod.UID] = p
	}
	p.pod, p.gone = pod, p.gone || gone
	if p.gone && p.goneAt.IsZero() {
		p.goneAt = time.Now()
	}
	for _, status := range p.statuses() {
		p.discover(status)
	}
}

// discover adds the runs of a container that its status tells of. Of earlier runs, kubelet has only the last: the one before that stands for all
// that are lost.
func (p *followedPod) discover(c corev1.ContainerStatus) {
	if c.State.Running == nil && c.State.Terminated == nil && c.LastTerminationState.Terminated == nil {
		return // it has not run yet
	}
	for key, r := range p.runs {
		if key.container == c.Name && key.restart < c.RestartCount-2 && r.done {
			delete(p.runs, key)
		}
	}
	for restart := max(0, c.RestartCount-2); restart <= c.RestartCount; restart++ {
		if key := (runKey{c.Name, restart}); p.runs[key] == nil {
			p.runs[key] = &run{runKey: key}
		}
	}
}

// lose records that the logs of a pod are gone which was deleted while nothing was recorded.
func (f *follower) lose(job types.UID, pod *corev1.Pod, _ time.Time) error {
	f.watch(job, pod, true)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods[pod.UID].cause = "the pod was deleted while the recorder did not run"
	return nil
}

// task is what can be done for a run now.
type task struct {
	pod *followedPod
	run *run
	how how
}

// how a log is read.
type how int

const (
	follow   how = iota // until the container ends
	poll                // as far as it is written
	final               // to its end: the container has ended
	previous            // to its end: the container was restarted since
	giveUp              // not at all: what is missing is a gap
)

// read starts the requests that are due: first for containers that have ended, then for replicas that failed, then for the first replica of
// each role. It returns what keeps a log from being recorded.
func (f *follower) read(now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var tasks []task
	var failed error
	for _, p := range f.pods {
		for _, r := range p.runs {
			if r.failed != nil && (failed == nil || r.failed.Error() < failed.Error()) {
				failed = r.failed
			}
			if r.busy && p.gone && time.Since(p.goneAt) > goneWait {
				r.cancel()
			}
			if !r.busy && !r.done && !now.Before(r.due) {
				tasks = append(tasks, task{p, r, p.how(r)})
			}
		}
	}
	slices.SortFunc(tasks, func(a, b task) int {
		return cmp.Or(cmp.Compare(b.how, a.how), cmp.Compare(a.rank(), b.rank()), a.pod.pod.CreationTimestamp.Compare(b.pod.pod.CreationTimestamp.Time))
	})
	for _, t := range tasks {
		f.start(t)
	}
	return failed
}

// how says how a run's log can be read now.
func (p *followedPod) how(r *run) how {
	if p.gone {
		return giveUp
	}
	for _, c := range p.statuses() {
		if c.Name != r.container {
			continue
		}
		running := c.State.Running != nil || c.State.Terminated != nil
		switch {
		case r.restart == c.RestartCount && c.State.Running != nil && !p.over():
			return follow
		case r.restart == c.RestartCount:
			return final
		case r.restart == c.RestartCount-1 && running && c.LastTerminationState.Terminated != nil:
			return previous
		}
	}
	return giveUp
}

// rank orders what is followed if not everything can be.
func (t task) rank() int {
	switch {
	case t.run.restart > 0:
		return 0
	case t.pod.pod.Labels[naming.LabelReplicaIndex] == "0":
		return 1
	}
	return 2
}

// start begins a task if there is room for another request.
func (f *follower) start(t task) {
	if t.how == follow && f.streams >= f.limit {
		t.how = poll
	}
	count := &f.reads
	switch {
	case t.how == follow:
		count = &f.streams
	case f.reads >= maxReads:
		return
	}
	*count++
	t.run.busy = true
	pod, job, log, cause := t.pod.pod, t.pod.job, t.pod.log(t.run.container, t.run.restart), t.pod.cause
	if !t.pod.gone {
		cause = "the container was restarted again before its log was read to the end"
	}
	ctx, cancel := context.WithCancel(f.ctx)
	t.run.cancel = cancel
	f.requests.Go(func() {
		defer cancel()
		var err error
		if t.run.writer == nil {
			t.run.writer, err = f.store.WriteLog(pod.Namespace, job, log)
		}
		switch {
		case err != nil:
		case t.how == giveUp:
			err = t.run.giveUp(cause)
		default:
			err = f.request(ctx, pod, t.run, t.how)
		}
		if err == nil && t.how >= final {
			err = t.run.writer.Finish()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		*count--
		t.run.end(t.how, err, time.Now())
	})
}

// giveUp ends a log of which nothing more can be read. It is complete if the last request came to its end, or if an earlier process has finished it.
func (r *run) giveUp(cause string) error {
	switch {
	case r.clean && len(r.tail) == 0 || r.writer.Finished():
		return nil
	case !r.clean:
		r.tail = record.GapEntry(time.Now(), cause)
	}
	if err := r.writer.Write(r.tail); err != nil {
		return err
	}
	r.clean, r.tail = true, nil
	return nil
}

// end takes the result of a task.
func (r *run) end(how how, err error, now time.Time) {
	r.busy, r.failed = false, nil
	switch {
	case err == nil:
		r.clean, r.done, r.wait = how != poll, how >= final, minRetry
		if how == poll {
			r.wait = pollInterval
		}
	default:
		if !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, errOther) {
			r.failed = err
		}
		r.wait = min(max(2*r.wait, minRetry), maxRetry)
	}
	r.due = now.Add(r.wait)
	if r.wait == pollInterval {
		r.wait = minRetry
	}
}

// errOther says that a pod or a container of the same name has taken the place of the one whose log is wanted.
var errOther = errors.New("the log is of another pod or of another run of its container")

// errNoLog says that kubelet answers with a sentence instead of a log: it has removed the log.
var errNoLog = errors.New("this is not a log")

// request reads a log, from the last entry that is recorded on.
func (f *follower) request(ctx context.Context, pod *corev1.Pod, r *run, how how) error {
	options := &corev1.PodLogOptions{Container: r.container, Timestamps: true, Follow: how == follow, Previous: how == previous}
	if last, _ := r.writer.Last(); !last.IsZero() {
		options.SinceTime = &metav1.Time{Time: last} // whole seconds, so that the last entry comes again
	}
	pods := f.api.Pods(pod.Namespace)
	stream, err := pods.GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close() //nolint:errcheck // it was only read
	// The API server finds logs by name. It has opened this one, so it is the right one if the name still means the same.
	now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if now.UID != pod.UID || restartsOf(now, r.container) != restartsOf(pod, r.container) {
		return errOther
	}
	tail, err := copyLog(r.writer, stream)
	if errors.Is(err, errNoLog) {
		return err // it is gone, and as far as we know it had nothing new
	}
	r.clean, r.tail = false, tail
	if err == nil && how >= final && len(tail) > 0 {
		err = r.writer.Write(tail)
	}
	return err
}

func restartsOf(pod *corev1.Pod, container string) int32 {
	for _, c := range (podState{pod: pod}).statuses() {
		if c.Name == container {
			return c.RestartCount
		}
	}
	return 0
}

// maxText is how much text an entry has. Longer lines have several, as runtimes write them.
const maxText = 16 << 10

// copyLog records what the API server sends: lines with their times. A line that has no end is returned: if the container still runs, it is read
// again from its beginning.
func copyLog(w *record.LogWriter, stream io.Reader) (tail []byte, _ error) {
	known, convert := newKnown(w), converter{}
	for buffer := make([]byte, 8<<10); ; {
		n, err := stream.Read(buffer)
		entries, convertErr := convert.add(buffer[:n])
		if writeErr := writeNew(w, &known, entries); writeErr != nil {
			return nil, writeErr
		}
		switch {
		case convertErr != nil:
			return nil, convertErr
		case errors.Is(err, io.EOF):
			fresh, _ := known.skip(convert.end())
			return fresh, nil
		case err != nil:
			return nil, err
		}
	}
}

// writeNew writes the entries that are not recorded yet.
func writeNew(w *record.LogWriter, known *known, entries []byte) error {
	fresh, lost := known.skip(entries)
	if lost {
		first, _ := record.ParseEntry(firstLine(fresh))
		fresh = append(record.GapEntry(first.Time, "the log was not read for a while, and kubelet has removed the lines of this time meanwhile"), fresh...)
	}
	if len(fresh) == 0 {
		return nil
	}
	return w.Write(fresh)
}

// converter makes entries of lines with their times. It cuts long lines at the same places each time, so that a line which is read again is known.
type converter struct {
	time string
	text []byte
}

func (c *converter) add(more []byte) (entries []byte, _ error) {
	for len(more) > 0 {
		part, rest, ended := bytes.Cut(more, []byte{'\n'})
		c.text, more = append(c.text, part...), rest
		if c.time == "" {
			stamp, text, ok := bytes.Cut(c.text, []byte{' '})
			switch {
			case !ok && !ended && len(stamp) < len(time.RFC3339Nano)+10:
				return entries, nil // the time is not complete yet
			case !ok && !ended || !isTime(string(stamp)):
				return entries, fmt.Errorf("%w: %.100q", errNoLog, c.text)
			}
			c.time, c.text = string(stamp), append([]byte(nil), text...)
		}
		for len(c.text) > maxText {
			entries = c.entry(entries, "P", c.text[:maxText])
			c.text = append(c.text[:0], c.text[maxText:]...)
		}
		if ended {
			entries = c.entry(entries, "F", c.text)
			c.time, c.text = "", c.text[:0]
		}
	}
	return entries, nil
}

// end is the line that has no end.
func (c *converter) end() []byte {
	if c.time == "" {
		return nil
	}
	return c.entry(nil, "F", c.text)
}

func (c *converter) entry(entries []byte, tag string, text []byte) []byte {
	entries = append(entries, c.time+" stdout "+tag+" "...)
	return append(append(entries, text...), '\n')
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

// settle marks the pods of a job whose logs are complete, and reports whether it changed the record.
func (f *follower) settle(j *job, _ time.Time) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	complete := j.summary.Over()
	for uid, pod := range j.pods {
		if p := f.pods[uid]; !pod.Complete && p != nil && p.complete() {
			delete(f.pods, uid)
			pod.Complete, changed = true, true
		}
		complete = complete && pod.Complete
	}
	changed = changed || complete != j.summary.Complete
	j.summary.Complete = complete
	return changed
}

func (p *followedPod) complete() bool {
	if !p.over() {
		return false
	}
	for _, r := range p.runs {
		if !r.done {
			return false
		}
	}
	return true
}

// drain ends all requests and seals the logs. Another process can continue them.
func (f *follower) drain(time.Time) (failed error) {
	f.stop()
	f.requests.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pods {
		for _, r := range p.runs {
			if r.writer != nil && !r.done {
				failed = errors.Join(failed, r.writer.Close())
			}
		}
	}
	return failed
}

// watched is how many pods' logs are not complete yet.
func (f *follower) watched() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.pods)
}
