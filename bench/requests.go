package main

import (
	"bufio"
	"encoding/json"
	"os"
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

// settledRequests is the number of requests when there come no more.
func (w *world) settledRequests(agent, namespace string) float64 {
	for n := w.requestsOf(agent, namespace); ; {
		time.Sleep(settleTime)
		was := n
		if n = w.requestsOf(agent, namespace); n == was {
			return n
		}
	}
}

// requestsOf counts what a user agent has asked for in a namespace so far. Watches and the lists before them are not of one job.
func (w *world) requestsOf(agent, namespace string) float64 {
	file, err := os.Open(w.auditLog())
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		var a audited
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue // the last line may still be being written
		}
		if strings.HasPrefix(a.UserAgent, agent) && a.ObjectRef.Namespace == namespace && a.Verb != "watch" && a.Verb != "list" {
			n++
		}
	}
	return float64(n)
}
