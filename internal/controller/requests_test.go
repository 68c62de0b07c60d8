package controller

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// requests counts what the world's operator has asked of the API server, watches and the lists they begin with left out.
func (w *world) requests() map[string]int {
	w.Helper()
	file, err := os.Open(local.AuditLog(w))
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	count := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Verb, UserAgent string
			ObjectRef       struct{ Resource, Subresource string }
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			w.Fatal(err)
		}
		if line.UserAgent == "operator-of-"+w.Namespace && line.ObjectRef.Resource != "" && line.Verb != "watch" && line.Verb != "list" {
			count[line.Verb+" "+line.ObjectRef.Resource+line.ObjectRef.Subresource]++
		}
	}
	return count
}

func TestRequestsOfOneJob(t *testing.T) {
	w := newWorld(t)
	w.submit(gang(3, `sleep 2`))
	w.until(kubeflowv1.JobSucceeded)
	count := w.requests()
	total := 0
	for _, request := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%s: %d", request, count[request])
		if request != "create events" && request != "delete services" && request != "delete pods" {
			total += count[request]
		}
	}
	if total > 9 {
		t.Errorf("%d requests for a job of 4 pods", total)
	}
}
