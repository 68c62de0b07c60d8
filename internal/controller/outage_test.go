package controller_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// outage is an API server that answers reads, and fails writes while it is down.
type outage struct {
	down   atomic.Bool
	failed atomic.Int32 // writes
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (o *outage) send(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if r.Method == http.MethodGet || !o.down.Load() {
		return next.RoundTrip(r)
	}
	o.failed.Add(1)
	return nil, fmt.Errorf("%s %s: the store has no leader", r.Method, r.URL.Path)
}

// The operator tries a failed write again later each time, and never later than fifteen seconds: after twelve tries it makes no
// difference whether the outage lasts for half a minute or for twenty. When it is over, the job runs within thirty seconds.
func TestTheOperatorActsSoonAfterAnOutage(t *testing.T) {
	t.Parallel()
	w := withoutOperator(t)
	server := &outage{}
	config := w.asInstalled()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) { return server.send(r, next) })
	})
	mgr, err := newOperator(config, w.Namespace, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	server.down.Store(true)
	w.start(mgr)
	j := w.submit(gang(1, "sleep 600"))
	w.Eventually("twelve writes have failed", func() error {
		if n := server.failed.Load(); n < 12 {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
	if s := j.status(); len(s.Conditions) > 0 {
		t.Errorf("the status is\n%s", describe(s))
	}
	server.down.Store(false)
	over := metav1.Now()
	s := j.becomes(kubeflowv1.JobRunning)
	if late := s.StartTime.Sub(over.Time); late > 30*time.Second || s.Attempt != 0 || s.Restarts != 0 {
		t.Errorf("it started %s after the outage, and the status is\n%s", late, describe(s))
	}
}
