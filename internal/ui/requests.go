package ui

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// newRequests counts requests by the pattern of their route, never by their path: that would be a series for each job.
func newRequests() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "trainyard_ui_requests_total", Help: "Requests to the dashboard that reached a route, by the route and the status code."}, []string{"route", "code"})
}

// Requests are the counts of requests, for whoever exports them.
func (s *Server) Requests() prometheus.Collector { return s.requests }

// counted counts the requests of a route when they are answered.
func (s *Server) counted(route string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		counter := &codeWriter{ResponseWriter: w, code: http.StatusOK}
		defer func() { s.requests.WithLabelValues(route, strconv.Itoa(counter.code)).Inc() }()
		next(counter, r)
	}
}

// codeWriter remembers the status code of an answer.
type codeWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (a *codeWriter) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController find what the answer can do besides.
func (a *codeWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }
