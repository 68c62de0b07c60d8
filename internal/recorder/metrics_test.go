package recorder

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/testing/promtool"
)

// TestMetrics lets a recorder lose a part of a log and fail to write, and Prometheus answer the queries of the dashboard about it.
func TestMetrics(t *testing.T) {
	s := newSite(t)
	c := s.container()
	s.sees(workerPod("1", corev1.PodRunning))
	s.writes(c, 10)
	file, err := os.OpenFile(c.path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(file, "%s stdout F a minute old\n", time.Now().UTC().Add(-time.Minute).Format(time.RFC3339Nano))
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s.step(time.Second)
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.r)
	series := func() map[string]float64 {
		t.Helper()
		exported, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		return promtool.Series(exported)
	}
	if got := series(); got["trainyard_recorder_streams{}"] != 1 || got["trainyard_recorder_lag_seconds{}"] < 60 || got["trainyard_recorder_gaps_total{}"] != 0 {
		t.Errorf("it exports %v", got)
	}
	if got := series()["trainyard_recorder_lag_seconds{}"]; got != 0 {
		t.Errorf("nothing was recorded since, and the lag is %v", got)
	}

	s.r.podChanged(workerPod("2", corev1.PodRunning), true)
	if err := os.RemoveAll(filepath.Join(s.dir, "logs")); err != nil {
		t.Fatal(err)
	}
	other := workerPod("3", corev1.PodRunning)
	other.UID = "p2"
	s.r.podChanged(other, true) // its log was never seen
	for range 100 {
		s.step(time.Second)
	}
	s.r.report(os.ErrPermission)
	s.r.prune(s.now)
	got := series()
	if got["trainyard_recorder_gaps_total{}"] != 1 || got["trainyard_recorder_write_errors_total{}"] != 1 || got["trainyard_recorder_streams{}"] != 0 ||
		got["trainyard_recorder_archive_bytes{}"] <= 0 || got["trainyard_recorder_archive_limit_bytes{}"] <= got["trainyard_recorder_archive_bytes{}"] {
		t.Errorf("it exports %v", got)
	}

	ours := func(text string) bool { return !strings.Contains(text, "trainyard_recorder_") }
	dashboard, err := os.ReadFile("../../charts/trainyard/dashboards/trainyard.json")
	if err != nil {
		t.Fatal(err)
	}
	promtool.Answers(t, got, slices.DeleteFunc(promtool.Expressions(t, dashboard), ours))
	for _, tested := range slices.DeleteFunc(promtool.Tested(t, "../../config/testdata/alerts.yaml"), ours) {
		if _, ok := got[tested+"{}"]; !ok {
			t.Errorf("an alert reads %s, which is not exported", tested)
		}
	}
}
