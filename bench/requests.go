package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"
)

// audited is a line of the API server's audit log.
type audited struct {
	Verb, UserAgent, Stage string
	ObjectRef              struct{ Resource, Subresource, Namespace string }
}

// requestsOf counts what a user agent asked for in a namespace, by verb and resource. Watches and the lists before them are not of one
// job.
func (w *world) requestsOf(agent, namespace string) (map[string]int, error) {
	count := map[string]int{}
	err := w.audited(agent, namespace, func(a audited) {
		if a.Verb != "watch" && a.Verb != "list" {
			count[strings.TrimRight(a.Verb+" "+a.ObjectRef.Resource+"/"+a.ObjectRef.Subresource, "/")]++
		}
	})
	return count, err
}

// awaitWatches returns when an operator watches jobs, pods and Services of the namespace.
func (w *world) awaitWatches(agent, namespace string) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		watched := map[string]bool{}
		err := w.audited(agent, namespace, func(a audited) { watched[a.ObjectRef.Resource] = true })
		if err != nil {
			return err
		}
		if watched["pytorchjobs"] && watched["pods"] && watched["services"] {
			return nil
		}
	}
	return errors.New("the operator does not watch the namespace; BENCH_LOG=1 shows its log")
}

func (w *world) audited(agent, namespace string, f func(audited)) error {
	file, err := os.Open(w.auditLog())
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a audited
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue // the last line may still be being written
		}
		if strings.HasPrefix(a.UserAgent, agent) && a.ObjectRef.Namespace == namespace {
			f(a)
		}
	}
	return lines.Err()
}
