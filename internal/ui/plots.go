package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/scalar"
	"github.com/trainyard/trainyard/internal/text"
	"github.com/trainyard/trainyard/internal/yard"
)

// numbers are those of a plot. One that is not a number is null.
type numbers []float64

// MarshalJSON writes null for what JSON does not have.
func (n numbers) MarshalJSON() ([]byte, error) {
	all := make([]*float64, len(n))
	for i := range n {
		if !math.IsNaN(n[i]) && !math.IsInf(n[i], 0) {
			all[i] = &n[i]
		}
	}
	return json.Marshal(all)
}

// milliseconds is a time as JavaScript has it.
func milliseconds(t time.Time) float64 { return float64(t.UnixMilli()) }

// podUse is what one pod used over time.
type podUse struct {
	Replica string  `json:"replica"`
	Attempt int32   `json:"attempt"`
	GPUs    int64   `json:"gpus"`
	Times   numbers `json:"times"`
	Cores   numbers `json:"cores"`
	Memory  numbers `json:"memory"`
	// GPU and GPUMemory are empty if it holds no GPU.
	GPU       numbers `json:"gpu"`
	GPUMemory numbers `json:"gpuMemory"`
}

// usage answers with what the pods of a job used.
func (j *jobs) usage(w http.ResponseWriter, r *http.Request) {
	found, ok := j.find(w, r)
	if !ok {
		return
	}
	uses, err := j.yard.Past.Usage(found.Job.Namespace, found.Job.UID)
	if err != nil {
		fail(w, err)
		return
	}
	pods, all := map[types.UID]*podUse{}, []*podUse{}
	for i := range found.Recorded.Pods {
		pod := &found.Recorded.Pods[i].Pod
		name, attempt := yard.ReplicaOf(pod)
		pods[pod.UID] = &podUse{Replica: name, Attempt: attempt, GPUs: gpusOf(found, pod), Times: numbers{}, Cores: numbers{}, Memory: numbers{}, GPU: numbers{}, GPUMemory: numbers{}}
		all = append(all, pods[pod.UID])
	}
	for _, use := range uses {
		if p := pods[use.Pod]; p != nil {
			p.Times, p.Cores, p.Memory = append(p.Times, milliseconds(use.Time)), append(p.Cores, use.Cores), append(p.Memory, float64(use.Memory))
			if p.GPUs > 0 {
				p.GPU, p.GPUMemory = append(p.GPU, use.GPU), append(p.GPUMemory, float64(use.GPUMemory))
			}
		}
	}
	answer(w, map[string]any{"pods": slices.DeleteFunc(all, func(p *podUse) bool { return len(p.Times) == 0 })})
}

// gpusOf is how many GPUs a pod of a role holds, of any maker. The record of a pod does not say it, but the template of its role does.
func gpusOf(found *yard.Job, pod *corev1.Pod) (n int64) {
	for role, template := range found.Templates {
		if !strings.EqualFold(role, pod.Labels[naming.LabelReplicaType]) || template == nil {
			continue
		}
		for _, c := range template.Spec.Containers {
			n += int64(amountOf(c.Resources.Limits).GPUs)
		}
	}
	return n
}

// maxCollections is how many logs the figures are kept of in memory, so that only new lines are read.
const maxCollections = 64

// collections are the figures of logs.
type collections struct {
	mu  sync.Mutex
	all map[logKey]*collection
}

type logKey struct {
	job types.UID
	log record.Log
}

// collection is the figures of one log up to a line.
type collection struct {
	mu   sync.Mutex
	next int64
	used time.Time
	scalar.Collection
}

// of is the collection of a log. The one that was not used for longest makes room for a new one.
func (c *collections) of(key logKey) *collection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[logKey]*collection{}
	}
	if c.all[key] == nil {
		if len(c.all) >= maxCollections {
			oldest := key
			for k, v := range c.all {
				if oldest == key || v.used.Before(c.all[oldest].used) {
					oldest = k
				}
			}
			delete(c.all, oldest)
		}
		c.all[key] = &collection{}
	}
	c.all[key].used = time.Now()
	return c.all[key]
}

// series is the course of one figure.
type series struct {
	Name   string  `json:"name"`
	Steps  numbers `json:"steps"`
	Times  numbers `json:"times"`
	Values numbers `json:"values"`
}

// run is what one run of a replica's container printed.
type run struct {
	Attempt int32    `json:"attempt"`
	Restart int32    `json:"restart"`
	Series  []series `json:"series"`
}

// scalars answers with the figures in the logs of one replica: the one that is named, else the first that has some.
func (j *jobs) scalars(w http.ResponseWriter, r *http.Request) {
	found, ok := j.find(w, r)
	if !ok {
		return
	}
	logs, err := j.yard.Past.Logs(found.Job.Namespace, found.Job.UID)
	if err != nil {
		fail(w, err)
		return
	}
	named, names := r.URL.Query().Get("replica"), []string{}
	byReplica := map[string][]record.Log{}
	for i, l := range logNames(found, logs) {
		if l.Training {
			byReplica[l.Replica] = append(byReplica[l.Replica], logs[i])
		}
	}
	for name := range byReplica {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	runs := []run{}
	for _, name := range names {
		if named != "" && name != named {
			continue
		}
		if runs, err = j.figures(r.Context(), found, byReplica[name]); err != nil {
			fail(w, err)
			return
		}
		if len(runs) > 0 {
			named = name
			break
		}
	}
	answer(w, map[string]any{"replicas": names, "replica": named, "runs": runs})
}

// figures are those of some logs.
func (j *jobs) figures(ctx context.Context, found *yard.Job, logs []record.Log) ([]run, error) {
	runs := []run{}
	for _, l := range logs {
		c := j.collections.of(logKey{found.Job.UID, l})
		one, err := c.read(ctx, j.yard.Past, found, l)
		if err != nil {
			return nil, err
		}
		if len(one.Series) > 0 {
			runs = append(runs, one)
		}
	}
	return runs, nil
}

// read takes the lines that the log has got since, and returns what there is. A line that has no end yet counts as it is now, and is read again
// the next time.
func (c *collection) read(ctx context.Context, past *record.Store, found *yard.Job, l record.Log) (run, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var open *record.Line
	err := past.Lines(found.Job.Namespace, found.Job.UID, l, c.next, func(line record.Line) bool {
		switch {
		case line.Open:
			open = &line
			return false
		case !line.Gap:
			c.Add(text.Visible(string(line.Text)), line.Time)
		}
		c.next = line.Number + 1
		return ctx.Err() == nil
	})
	now := c.Clone()
	if open != nil {
		now.Add(text.Visible(string(open.Text)), open.Time)
	}
	out := run{Attempt: l.Attempt, Restart: l.Restart, Series: []series{}}
	for _, s := range now.Series {
		copied := series{s.Name, s.Steps, make(numbers, len(s.Times)), s.Values}
		for i, t := range s.Times {
			copied.Times[i] = milliseconds(t)
		}
		out.Series = append(out.Series, copied)
	}
	return out, cmp.Or(err, ctx.Err())
}
