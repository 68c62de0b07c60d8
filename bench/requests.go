package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// audited is a line of the API server's audit log.
type audited struct {
	Verb, UserAgent, Stage string
	ObjectRef              struct{ Resource, Subresource, Namespace string }
}

// settleTime is how long a contender sends nothing when it has done all it had to.
const settleTime = 2 * time.Second

// requests are how many there were, by verb and resource.
type requests map[string]int

func (r requests) total() (n int) {
	for _, count := range r {
		n += count
	}
	return n
}

// since are those that came after others.
func (r requests) since(before requests) requests {
	after := requests{}
	for what, n := range r {
		if n > before[what] {
			after[what] = n - before[what]
		}
	}
	return after
}

func (r requests) and(more requests) requests {
	all := maps.Clone(r)
	for what, n := range more {
		all[what] += n
	}
	return all
}

// each is how many of each kind one of some jobs took.
func (r requests) each(jobs int) string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(r)) {
		all = append(all, fmt.Sprintf("%s %.1f", what, float64(r[what])/float64(jobs)))
	}
	return strings.Join(all, ", ")
}

// settledRequests are the requests when there come no more.
func (w *world) settledRequests(agent, namespace string) requests {
	for r := w.requestsOf(agent, namespace); ; {
		time.Sleep(settleTime)
		was := r
		if r = w.requestsOf(agent, namespace); r.total() == was.total() {
			return r
		}
	}
}

// requestsOf counts what a user agent has asked for in a namespace so far. Watches and the lists before them are not of one job.
func (w *world) requestsOf(agent, namespace string) requests {
	file, err := os.Open(w.auditLog())
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	all := requests{}
	for lines.Scan() {
		var a audited
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue // the last line may still be being written
		}
		if strings.HasPrefix(a.UserAgent, agent) && a.ObjectRef.Namespace == namespace && a.Verb != "watch" && a.Verb != "list" {
			all[strings.TrimRight(a.Verb+" "+a.ObjectRef.Resource+"/"+a.ObjectRef.Subresource, "/")]++
		}
	}
	return all
}
