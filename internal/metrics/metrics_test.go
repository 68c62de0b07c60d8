package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/trainyard/trainyard/internal/job"
)

func gather(t *testing.T, registry *prometheus.Registry) map[string]*dto.Metric {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.Metric{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetValue())
			}
			all[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m
		}
	}
	return all
}

func TestRecord(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := New(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.Record("team", "pytorch", job.Metric{Name: job.JobsCreated}, job.Metric{Name: job.JobsRestarted}, job.Metric{Name: job.JobsRestarted},
		job.Metric{Name: job.TimeToRunning, Seconds: 1.5})
	got := gather(t, registry)
	for name, want := range map[string]float64{
		"training_operator_jobs_created_total{pytorch,team}": 1, "training_operator_jobs_restarted_total{pytorch,team}": 2,
	} {
		if got[name].GetCounter().GetValue() != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if h := got["trainyard_job_time_to_running_seconds{pytorch,team}"].GetHistogram(); h.GetSampleSum() != 1.5 {
		t.Errorf("time to running: %v", h)
	}
}

func TestStates(t *testing.T) {
	now := time.Date(2026, 11, 16, 8, 0, 0, 0, time.UTC)
	registry := prometheus.NewRegistry()
	registry.MustRegister(States{Now: func() time.Time { return now }, List: func() []State {
		return []State{
			{"team", "pytorch", "Running", time.Time{}}, {"team", "pytorch", "Running", time.Time{}}, {"team", "pytorch", "Created", now.Add(-time.Minute)},
			{"team", "pytorch", "Restarting", now.Add(-time.Second)}, {"team", "jax", "Failed", time.Time{}},
		}
	}})
	got := gather(t, registry)
	for name, want := range map[string]float64{
		"trainyard_jobs{pytorch,team,Running}": 2, "trainyard_jobs{pytorch,team,Created}": 1,
		"trainyard_oldest_waiting_job_seconds{pytorch,team}": 60, "trainyard_oldest_waiting_job_seconds{jax,team}": 0,
	} {
		if m, ok := got[name]; !ok || m.GetGauge().GetValue() != want {
			t.Errorf("%s is %v, want %v", name, m, want)
		}
	}
}
