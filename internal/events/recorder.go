package events

import (
	"cmp"
	"context"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// instance is the process that reports the events.
var instance = func() string {
	host, _ := os.Hostname()
	return cmp.Or(host, "trainyard-operator")
}()

const (
	// queued is how many events may wait. If the API server is away for long, later ones are lost.
	queued = 4096
	// writers is how many events are stored at the same time.
	writers = 4
	// lastMoment is how long events that still wait when the operator stops may take.
	lastMoment = time.Second
)

// retries is how an event is tried again that the API server could not store: for about two minutes.
// A Cap would end the tries when it is reached.
var retries = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 8}

// Recorder stores events in the background. It uses the core API: the newer one refuses the fields that old clients read. The
// recorders of client-go write the fields of one generation only.
type Recorder struct {
	client client.Writer
	queue  chan *corev1.Event
}

// NewRecorder is a recorder that stores nothing before it is started.
func NewRecorder(c client.Writer) *Recorder {
	return &Recorder{client: c, queue: make(chan *corev1.Event, queued)}
}

// Record takes events to be stored. It never blocks.
func (r *Recorder) Record(ctx context.Context, events ...*corev1.Event) {
	for _, e := range events {
		select {
		case r.queue <- e:
		default:
			logLost(ctx, e, "too many wait")
		}
	}
}

// Start stores events until ctx ends, and then those that wait, for a moment.
func (r *Recorder) Start(ctx context.Context) error {
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case e := <-r.queue:
					if ctx.Err() != nil { // of two cases that are ready, either is chosen
						r.Record(ctx, e)
						return
					}
					r.store(ctx, e)
				}
			}
		})
	}
	group.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastMoment)
	defer cancel()
	for last.Err() == nil {
		select {
		case e := <-r.queue:
			_ = r.client.Create(last, e)
		default:
			return nil
		}
	}
	return nil
}

// store writes one event, and tries again where that may help.
func (r *Recorder) store(ctx context.Context, e *corev1.Event) {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, retries, func(ctx context.Context) (bool, error) {
		last = r.client.Create(ctx, e.DeepCopy())
		switch {
		case last == nil, apierrors.IsAlreadyExists(last):
			last = nil
			return true, nil
		case apierrors.IsInvalid(last), apierrors.IsForbidden(last), apierrors.IsNotFound(last): // the namespace may be going
			return false, last
		}
		return false, nil
	})
	if err != nil && last != nil && ctx.Err() == nil {
		logLost(ctx, e, last.Error())
	}
}

func logLost(ctx context.Context, e *corev1.Event, why string) {
	ctrllog.FromContext(ctx).Info("an event is lost", "namespace", e.InvolvedObject.Namespace, "name", e.InvolvedObject.Name, "reason", e.Reason, "message", e.Message, "why", why)
}
