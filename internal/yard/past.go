package yard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/record"
	terminal "github.com/trainyard/trainyard/internal/text"
)

// shortestID is how many characters of its UID identify a recorded job at least.
const shortestID = 4

// Look is the job with a name, like Find, or the last one that was recorded with that name or whose UID begins like that.
func (y *Yard) Look(ctx context.Context, name string) (*Job, error) {
	missing := fmt.Errorf("%w as %s in namespace %s", ErrNotFound, name, y.Namespace)
	if !y.Stopped {
		j, err := y.Find(ctx, name)
		if !errors.Is(err, ErrNotFound) {
			return j, err
		}
		missing = err
	}
	if y.Past == nil {
		return nil, missing
	}
	all, err := y.Past.Summaries()
	if err != nil {
		return nil, err
	}
	kind, bare, given := strings.Cut(name, "/")
	if !given {
		kind, bare = "", name
	}
	named := slices.IndexFunc(all, func(s record.Summary) bool {
		return s.Namespace == y.Namespace && s.Name == bare && (kind == "" || strings.EqualFold(strings.TrimSuffix(kind, "s"), s.Kind))
	})
	if named < 0 && len(name) >= shortestID {
		named = slices.IndexFunc(all, func(s record.Summary) bool { return strings.HasPrefix(string(s.UID), name) })
	}
	if named < 0 {
		return nil, missing
	}
	return y.Recall(all[named])
}

// Recall is a job as it was recorded.
func (y *Yard) Recall(s record.Summary) (*Job, error) {
	r, err := y.Past.Load(s.Namespace, s.UID)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", s.Name, err)
	}
	var meta metav1.TypeMeta
	if err := json.Unmarshal(r.Object, &meta); err != nil {
		return nil, fmt.Errorf("reading the record of job %s: %w", s.Name, err)
	}
	k := kinds.Of(schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind))
	if k == nil {
		return nil, fmt.Errorf("job %s is of a kind that this program does not know: %s %s", s.Name, meta.APIVersion, meta.Kind)
	}
	obj := k.New()
	if err := json.Unmarshal(r.Object, obj); err != nil {
		return nil, fmt.Errorf("reading the record of job %s: %w", s.Name, err)
	}
	j := &Job{Kind: k, Object: obj, Manifest: k.Read(obj), Gone: !s.Deleted.IsZero(), Recorded: r}
	j.Job.Deleting = j.Job.Deleting && !j.Gone
	j.Status.Attempts = nil
	for _, a := range r.Attempts {
		j.Status.Attempts = append(j.Status.Attempts, job.Attempt{Number: a.Number, Start: a.Start, End: a.End, Reason: a.Reason, Message: a.Message})
	}
	return j, nil
}

// PastJobs are the recorded jobs of a namespace, or of all namespaces if it is empty, the newest first. Those that the cluster has may
// be among them.
func (y *Yard) PastJobs(namespace string) ([]record.Summary, error) {
	if y.Past == nil {
		return nil, nil
	}
	all, err := y.Past.Summaries()
	return slices.DeleteFunc(all, func(s record.Summary) bool { return namespace != "" && s.Namespace != namespace }), err
}

// recordedPods are the pods that a job had when it was last recorded.
func recordedPods(j *Job) (pods []corev1.Pod) {
	for _, p := range j.Recorded.Pods {
		if p.Gone.IsZero() {
			pods = append(pods, p.Pod)
		}
	}
	return pods
}

// addRecorded adds the events of a record that are gone from the cluster.
func addRecorded(present []corev1.Event, r *record.Record) []corev1.Event {
	if r == nil {
		return present
	}
	for _, old := range r.Events {
		if !slices.ContainsFunc(present, func(e corev1.Event) bool { return e.UID == old.UID }) {
			present = append(present, old)
		}
	}
	return present
}

// recordedLogs starts to read the logs that were recorded, but for those that the cluster still has, or the end of them: of each present pod, the
// present run of a container and the one before. It also returns all logs that are recorded.
func (y *Yard) recordedLogs(ctx context.Context, j *Job, q LogQuery, present []corev1.Pod) (sources []*source, all []record.Log, _ error) {
	if y.Past == nil {
		return nil, nil, nil
	}
	r := j.Recorded
	if r == nil {
		var err error
		if r, err = y.Past.Load(j.Job.Namespace, j.Job.UID); errors.Is(err, record.ErrNone) {
			return nil, nil, nil // it has just been created
		} else if err != nil {
			return nil, nil, err
		}
	}
	all, err := y.Past.Logs(j.Job.Namespace, j.Job.UID)
	if err != nil {
		return nil, nil, err
	}
	logs := slices.DeleteFunc(slices.Clone(all), func(l record.Log) bool { return !q.wantsLog(j, r, l) })
	if q.Previous || q.Tail != nil {
		logs = lastRuns(logs, q)
	}
	logs = slices.DeleteFunc(logs, func(l record.Log) bool {
		return slices.ContainsFunc(present, func(p corev1.Pod) bool { return p.UID == l.Pod && l.Restart >= restarts(&p, l.Container)-1 })
	})
	for _, l := range logs {
		sources = append(sources, y.openRecorded(ctx, j, l, q))
	}
	return sources, all, nil
}

// recorded is which entries of a recorded log are wanted.
func (q LogQuery) recorded() (query record.Query) {
	if q.Since > 0 {
		query.Since = time.Now().Add(-q.Since)
	}
	if q.Tail != nil {
		query.Tail = max(1, *q.Tail)
	}
	return query
}

// wantsLog reports whether a recorded log is one of those that are asked for.
func (q LogQuery) wantsLog(j *Job, r *record.Record, l record.Log) bool {
	if q.Replica != "" && !strings.EqualFold(q.Replica, l.Replica) || q.Attempt != nil && *q.Attempt != l.Attempt {
		return false
	}
	if q.Tail != nil && q.Attempt == nil && l.Attempt != j.Status.Attempt {
		return false
	}
	for i := range r.Pods {
		if pod := &r.Pods[i].Pod; pod.UID == l.Pod {
			return l.Container == cmp.Or(q.Container, ContainerOf(j, pod))
		}
	}
	return q.Container == "" || q.Container == l.Container
}

// lastRuns are the last runs of the containers of each replica in an attempt, or, for --previous, those before the last.
func lastRuns(logs []record.Log, q LogQuery) []record.Log {
	type replica struct {
		attempt int32
		name    string
		pod     types.UID
	}
	last := map[replica]int32{}
	for _, l := range logs {
		key := replica{l.Attempt, l.Replica, l.Pod}
		last[key] = max(last[key], l.Restart)
	}
	return slices.DeleteFunc(logs, func(l record.Log) bool {
		want := last[replica{l.Attempt, l.Replica, l.Pod}]
		if q.Previous {
			want--
		}
		return l.Restart != want
	})
}

// openRecorded starts to read a recorded log.
func (y *Yard) openRecorded(ctx context.Context, j *Job, l record.Log, q LogQuery) *source {
	lines := make(chan Line, 100)
	out := &source{lines: lines}
	query := q.recorded()
	emit := func(line Line) error {
		if line.Time.Before(query.Since) {
			return nil
		}
		select {
		case lines <- line:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	go func() {
		defer close(lines)
		tail := &lastLines{limit: q.Tail, emit: emit}
		join := &joined{line: Line{Replica: l.Replica, Attempt: l.Attempt}, emit: tail.add}
		err := y.Past.ReadLog(j.Job.Namespace, j.Job.UID, l, query, join.add)
		if err == nil {
			err = join.end()
		}
		if err == nil {
			err = tail.end()
		}
		if err != nil && ctx.Err() == nil {
			out.err = err
		}
	}()
	return out
}

// joined makes lines of entries: a line has the time of its first part.
type joined struct {
	line Line
	text []byte
	open bool
	emit func(Line) error
}

func (j *joined) add(e record.Entry) error {
	if e.IsGap() {
		if err := j.end(); err != nil {
			return err
		}
		gap := j.line
		gap.Time, gap.Text = e.Time, "("+string(e.Text)+")"
		return j.emit(gap)
	}
	if !j.open {
		j.line.Time, j.open = e.Time, true
	}
	j.text = append(j.text, e.Text...)
	if e.Partial {
		return nil
	}
	return j.end()
}

// end emits a line that has begun.
func (j *joined) end() error {
	if !j.open {
		return nil
	}
	line := j.line
	line.Text = terminal.Visible(string(j.text))
	j.text, j.open = j.text[:0], false
	return j.emit(line)
}

// lastLines emits the last lines only, or all if there is no limit.
type lastLines struct {
	limit *int64
	lines []Line
	emit  func(Line) error
}

func (t *lastLines) add(line Line) error {
	if t.limit == nil {
		return t.emit(line)
	}
	t.lines = append(t.lines, line)
	if over := len(t.lines) - int(*t.limit); over > 0 {
		t.lines = slices.Delete(t.lines, 0, over)
	}
	return nil
}

func (t *lastLines) end() error {
	for _, line := range t.lines {
		if err := t.emit(line); err != nil {
			return err
		}
	}
	return nil
}
