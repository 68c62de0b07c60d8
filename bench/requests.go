package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
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
