package events

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/job"
)

var demo = Subject{
	ObjectReference: corev1.ObjectReference{Kind: "PyTorchJob", Namespace: "team", Name: "demo", UID: "5d9d"},
	Now:             time.Date(2026, 11, 15, 8, 0, 0, 1000, time.UTC),
}

func TestEventsOfADecision(t *testing.T) {
	all := Of(demo, job.Decision{Events: []job.Event{
		{Reason: "PyTorchJobCreated", Message: "PyTorchJob demo is created.", Routine: true},
		{Reason: "PyTorchJobRunning", Message: "PyTorchJob demo is running 100% well."},
		{Reason: "PyTorchJobFailed", Message: strings.Repeat("x", 2000), Warning: true},
	}})
	if len(all) != 2 {
		t.Fatalf("there are %d events", len(all))
	}
	if e := all[0]; e.Type != "Normal" || e.Reason != "PyTorchJobRunning" || e.Message != "PyTorchJob demo is running 100% well." {
		t.Errorf("the first is %v", e)
	}
	if e := all[1]; e.Type != "Warning" || len(e.Message) != maxMessageLength {
		t.Errorf("the second is a %s of %d bytes", e.Type, len(e.Message))
	}
}

// Old clients read the timestamps, the count and the source, new ones the event time and the controller.
func TestAnEventHasTheFieldsOfBothGenerations(t *testing.T) {
	e := demo.New(corev1.EventTypeNormal, "PyTorchJobResumed", "PyTorchJob demo is resumed.", "")
	if e.FirstTimestamp.IsZero() || e.LastTimestamp.IsZero() || e.Count != 1 || e.Source.Component != "pytorchjob-controller" {
		t.Errorf("an old client reads %v", e)
	}
	if e.EventTime.IsZero() || e.ReportingController != "pytorchjob-controller" || e.ReportingInstance == "" || e.Action == "" {
		t.Errorf("a new client reads %v", e)
	}
}

// Training Operator tells the exit code of a pod by an event of its own.
func TestAPodThatExitsIsToldAsTrainingOperatorDoes(t *testing.T) {
	exit, refused := &job.Failure{Pod: "demo-worker-1", ExitCode: 3}, &job.Failure{Pod: "demo-worker-1", Class: job.Refusal}
	for _, row := range []struct {
		sentence string
		event    job.Event
		want     string
	}{
		{"a retry", job.Event{Reason: "PyTorchJobRestarting", Failure: exit}, "Pod: team.demo-worker-1 exited with code 3"},
		{"the end", job.Event{Reason: "PyTorchJobFailed", Failure: exit}, "Pod: team.demo-worker-1 exited with code 3"},
		{"what follows from the same failure", job.Event{Reason: "PyTorchJobNodeAvoided", Failure: exit}, ""},
		{"a pod that did not exit", job.Event{Reason: "PyTorchJobRestarting", Failure: refused}, ""},
		{"no failure", job.Event{Reason: "PyTorchJobFailed"}, ""},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var got string
			for _, e := range Of(demo, job.Decision{Events: []job.Event{row.event}}) {
				if e.Reason == "ExitedWithCode" {
					got = e.Message
				}
			}
			if got != row.want {
				t.Errorf("it says %q, want %q", got, row.want)
			}
		})
	}
}

// The name makes it one event, however often it is sent.
func TestOnlyWhatIsTheSameHasTheSameName(t *testing.T) {
	decision := job.Decision{Events: []job.Event{{Reason: "PyTorchJobRestarting", Message: "PyTorchJob demo restarts."}}}
	name := func(change func(*job.Decision)) string {
		d := decision
		change(&d)
		return Of(demo, d)[0].Name
	}
	first := name(func(*job.Decision) {})
	if again := name(func(*job.Decision) {}); again != first {
		t.Errorf("one event has the names %s and %s", first, again)
	}
	for sentence, change := range map[string]func(*job.Decision){
		"another attempt": func(d *job.Decision) { d.Status.Attempt = 1 },
		"another retry":   func(d *job.Decision) { d.Status.Retries = 1 },
		"another edit":    func(d *job.Decision) { d.Status.ObservedGeneration = 2 },
	} {
		if name(change) == first {
			t.Errorf("%s has the same name", sentence)
		}
	}
}

// apiServer answers the first creations with errors.
type apiServer struct {
	client.Writer
	answers []error
	stored  chan *corev1.Event
}

func (s *apiServer) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	if len(s.answers) > 0 {
		err := s.answers[0]
		s.answers = s.answers[1:]
		return err
	}
	s.stored <- obj.(*corev1.Event)
	return nil
}

func TestAnEventIsTriedAgainWhereThatHelps(t *testing.T) {
	wait := retries
	retries.Duration = time.Millisecond
	defer func() { retries = wait }()
	outage := slices.Repeat([]error{apierrors.NewInternalError(context.DeadlineExceeded)}, 7) // which are two minutes
	server := &apiServer{answers: outage, stored: make(chan *corev1.Event, 1)}
	NewRecorder(server).store(t.Context(), demo.New(corev1.EventTypeNormal, "A", "", ""))
	if len(server.stored) != 1 {
		t.Fatal("the event was given up")
	}
	if e := <-server.stored; e.Reason != "A" {
		t.Errorf("stored is %v", e)
	}
	server.answers = []error{apierrors.NewForbidden(corev1.Resource("events"), "a", nil)}
	NewRecorder(server).store(t.Context(), demo.New(corev1.EventTypeNormal, "B", "", ""))
	if len(server.stored) > 0 {
		t.Error("an event was stored that the API server rejects")
	}
}

// What was recorded before the operator stops is stored.
func TestEventsThatWaitAreStoredAtTheEnd(t *testing.T) {
	server := &apiServer{stored: make(chan *corev1.Event, 2)}
	r := NewRecorder(server)
	r.Record(t.Context(), demo.New(corev1.EventTypeNormal, "A", "", ""), demo.New(corev1.EventTypeNormal, "B", "", ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Start(ctx); err != nil || len(server.stored) != 2 {
		t.Errorf("%d events are stored (%v)", len(server.stored), err)
	}
}
