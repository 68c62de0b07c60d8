package ui

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/testing/promtool"
)

func TestRequestsAreCountedByRoute(t *testing.T) {
	s := newSite(t)
	s.add(t, record.Summary{UID: "j1", Name: "demo", Created: day}, func(*record.Record) {})
	own := s.enter(t)
	s.get(t, own, "/api/v1/jobs")
	for _, uid := range []string{"j1", "j2", "j3"} {
		s.ask(t, http.MethodGet, "/api/v1/jobs/"+uid, func(r *http.Request) { r.AddCookie(own) })
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.server.Requests())
	exported, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := promtool.Series(exported)
	for series, want := range map[string]float64{
		`trainyard_ui_requests_total{code="200",route="GET /api/v1/jobs"}`: 1, `trainyard_ui_requests_total{code="200",route="GET /api/v1/jobs/{uid}"}`: 1,
		`trainyard_ui_requests_total{code="404",route="GET /api/v1/jobs/{uid}"}`: 2,
	} {
		if got[series] != want {
			t.Errorf("%s is %v, want %v: %v", series, got[series], want, got)
		}
	}
}
