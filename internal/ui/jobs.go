package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/yard"
)

// jobs answers questions about recorded jobs.
type jobs struct {
	yard    *yard.Yard
	cluster Cluster

	collections collections
}

// pageSize is how many jobs or lines one answer has at most.
const pageSize = 1000

// row is a job in the list.
type row struct {
	record.Summary
	Outcome string  `json:"outcome"`
	Seconds float64 `json:"seconds"`
}

func rowOf(s record.Summary, running bool) row {
	d, _ := s.Duration(running, time.Now())
	return row{s, s.Outcome(running), d.Seconds()}
}

// list answers with the jobs that the filters select, the newest first: q is a part of a name, kind or namespace, state an outcome.
func (j *jobs) list(w http.ResponseWriter, r *http.Request) {
	all, err := j.yard.Past.Summaries()
	if err != nil {
		fail(w, err)
		return
	}
	if all, err = visible(r.Context(), all); err != nil {
		http.Error(w, sentence(err), http.StatusServiceUnavailable)
		return
	}
	query := r.URL.Query()
	q, state := strings.ToLower(query.Get("q")), query.Get("state")
	from, limit := number(query.Get("from"), 0), min(number(query.Get("limit"), pageSize), pageSize)
	running, rows, total := j.cluster.Running(), []row{}, int64(0)
	states := map[string]int{}
	for _, s := range all {
		text := strings.ToLower(s.Namespace + "/" + s.Name + " " + s.Kind + " " + string(s.UID))
		if !strings.Contains(text, q) {
			continue
		}
		outcome := s.Outcome(running)
		states[outcome]++
		if state != "" && !strings.EqualFold(state, outcome) {
			continue
		}
		if total >= from && int64(len(rows)) < limit {
			rows = append(rows, rowOf(s, running))
		}
		total++
	}
	answer(w, map[string]any{"jobs": rows, "total": total, "states": states, "running": running})
}

// find is the job of a request. If there is none, it has answered.
func (j *jobs) find(w http.ResponseWriter, r *http.Request) (*yard.Job, bool) {
	all, err := j.yard.Past.Summaries()
	if err != nil {
		fail(w, err)
		return nil, false
	}
	at := indexOf(all, types.UID(r.PathValue("uid")))
	if at < 0 {
		http.Error(w, "There is no record of this job.", http.StatusNotFound)
		return nil, false
	}
	found, err := j.yard.Recall(all[at])
	if errors.Is(err, record.ErrNone) {
		http.Error(w, "The record of this job was removed.", http.StatusNotFound)
		return nil, false
	}
	if err != nil {
		fail(w, err)
		return nil, false
	}
	return found, true
}

func indexOf(all []record.Summary, uid types.UID) int {
	return slices.IndexFunc(all, func(s record.Summary) bool { return s.UID == uid })
}

// replica is a pod in the timeline.
type replica struct {
	Name     string    `json:"name"`
	Attempt  int32     `json:"attempt"`
	Pod      types.UID `json:"pod"`
	Node     string    `json:"node"`
	Phase    string    `json:"phase"`
	Created  time.Time `json:"created"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	ExitCode *int32    `json:"exitCode,omitempty"`
	// Stopped says that it ended because its pod was deleted.
	Stopped  bool   `json:"stopped,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Restarts int32  `json:"restarts"`
}

// happening is an event.
type happening struct {
	Time    time.Time `json:"time"`
	Who     string    `json:"who"`
	Warning bool      `json:"warning"`
	Text    string    `json:"text"`
	Times   int32     `json:"times"`
}

// logName is a log that can be asked for.
type logName struct {
	Attempt   int32     `json:"attempt"`
	Replica   string    `json:"replica"`
	Container string    `json:"container"`
	Restart   int32     `json:"restart"`
	Pod       types.UID `json:"pod"`
	Training  bool      `json:"training"`
}

// show answers with everything about a job but its logs.
func (j *jobs) show(w http.ResponseWriter, r *http.Request) {
	found, ok := j.find(w, r)
	if !ok {
		return
	}
	s, err := j.yard.Story(r.Context(), found, time.Now())
	if err != nil {
		fail(w, err)
		return
	}
	summary, running := found.Recorded.Summary, j.cluster.Running()
	if running && summary.Deleted.IsZero() {
		s.Now = time.Now() // the record is not written while nothing changes
	}
	s.TargetFlags = j.cluster.Flags
	if summary.Namespace != corev1.NamespaceDefault {
		s.TargetFlags = slices.Concat(s.TargetFlags, []string{"-n", summary.Namespace})
	}
	manifest, err := manifestOf(found)
	if err != nil {
		fail(w, err)
		return
	}
	logs, err := j.yard.Past.Logs(found.Job.Namespace, found.Job.UID)
	if err != nil {
		fail(w, err)
		return
	}
	events, err := j.happenings(r, found)
	if err != nil {
		fail(w, err)
		return
	}
	actions, roles := j.choices(found, summary)
	if c := callerOf(r.Context()); c != nil {
		actions = c.allowed(r.Context(), actions, summary)
	}
	answer(w, map[string]any{
		"job": rowOf(summary, running), "why": s.Why(), "ready": found.Status.Ready, "retryLimit": found.Job.Policy.BackoffLimit, "failure": found.Status.LastFailure,
		"attempts": found.Recorded.Attempts, "replicas": replicas(found), "events": events, "logs": logNames(found, logs), "manifest": manifest,
		"updated": found.Recorded.Updated, "running": running, "actions": actions, "roles": roles,
	})
}

func manifestOf(found *yard.Job) (string, error) {
	content, err := found.Written()
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(content)
	return string(text), err
}

func replicas(found *yard.Job) []replica {
	all := []replica{}
	for _, p := range found.Recorded.Pods {
		name, attempt := yard.ReplicaOf(&p.Pod)
		out := replica{
			Name: name, Attempt: attempt, Pod: p.Pod.UID, Node: p.Pod.Spec.NodeName, Phase: string(p.Pod.Status.Phase), Created: p.Pod.CreationTimestamp.Time,
			Ended: p.Gone, Reason: p.Pod.Status.Reason,
		}
		container := yard.ContainerOf(found, &p.Pod)
		for _, c := range p.Pod.Status.ContainerStatuses {
			if c.Name == container {
				out.state(c)
				end, failure := c.State.Terminated, found.Status.LastFailure
				out.Stopped = end != nil && p.Stopped(end) && !(failure != nil && failure.Pod == p.Pod.Name && failure.Time.Equal(end.FinishedAt.Time))
			}
		}
		all = append(all, out)
	}
	return all
}

// state takes over what a container's status says.
func (r *replica) state(c corev1.ContainerStatus) {
	r.Restarts = c.RestartCount
	switch {
	case c.State.Running != nil:
		r.Started = c.State.Running.StartedAt.Time
	case c.State.Terminated != nil:
		end := c.State.Terminated
		r.Started, r.Ended, r.ExitCode, r.Reason = end.StartedAt.Time, end.FinishedAt.Time, &end.ExitCode, end.Reason
	}
}

func (j *jobs) happenings(r *http.Request, found *yard.Job) ([]happening, error) {
	events, err := j.yard.Events(r.Context(), found)
	all := []happening{}
	for _, e := range events {
		who := strings.TrimPrefix(e.Name, found.Job.Name+"-")
		text := strings.TrimPrefix(e.Text, found.Kind.Name()+" "+found.Job.Name+" ")
		all = append(all, happening{e.Time, who, e.Type == corev1.EventTypeWarning, text, e.Times})
	}
	return all, err
}

func logNames(found *yard.Job, logs []record.Log) []logName {
	all := []logName{}
	for _, l := range logs {
		training := true
		for i := range found.Recorded.Pods {
			if pod := &found.Recorded.Pods[i].Pod; pod.UID == l.Pod {
				training = l.Container == yard.ContainerOf(found, pod)
			}
		}
		all = append(all, logName{l.Attempt, l.Replica, l.Container, l.Restart, l.Pod, training})
	}
	return all
}

func number(text string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return n
	}
	return otherwise
}

func answer(w http.ResponseWriter, value any) {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(value); err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text.Bytes()) // the browser may be gone
}

func fail(w http.ResponseWriter, err error) {
	http.Error(w, fmt.Sprintf("The record cannot be read: %v", err), http.StatusInternalServerError)
}
