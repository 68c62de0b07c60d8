package controller

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/events"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/metrics"
)

func TestBatchesDouble(t *testing.T) {
	for _, row := range []struct {
		sentence string
		n        int
		fails    int // from this call on; -1 for never
		calls    int
	}{
		{"nothing to do", 0, -1, 0},
		{"all goes well", 10, -1, 10},
		{"an answer that is the same for all costs one call", 100, 0, 1},
		{"the batch in which something fails is the last", 100, 5, 7},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var mu sync.Mutex
			var done []int
			err := inBatches(row.n, func(i int) error {
				mu.Lock()
				defer mu.Unlock()
				done = append(done, i)
				if row.fails >= 0 && i >= row.fails {
					return errors.New("no")
				}
				return nil
			})
			slices.Sort(done)
			if len(done) != row.calls || len(slices.Compact(done)) != row.calls || (err != nil) != (row.fails >= 0) {
				t.Errorf("%d calls, want %d; error %v", len(done), row.calls, err)
			}
		})
	}
}

// However many there are, the API server gets no more than maxInFlight at the same time.
func TestBatchesHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		err := inBatches(1000, func(int) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			now--
			return nil
		})
		if most != maxInFlight || err != nil {
			t.Errorf("%d at the same time, want %d; error %v", most, maxInFlight, err)
		}
	})
}

// scaling is a client with which only a scale can be written.
type scaling struct {
	client.Client
	scale scale
}

func (s *scaling) SubResource(string) client.SubResourceClient { return &s.scale }

// scale keeps what is written to it, and gives its answer.
type scale struct {
	client.SubResourceClient
	answer error
	patch  string
}

func (s *scale) Patch(_ context.Context, _ client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := patch.Data(nil)
	s.patch = string(data)
	return errors.Join(err, s.answer)
}

// The size of a job is only written on the version of it that names none.
func TestASizeOverwritesNobodys(t *testing.T) {
	jobs := schema.GroupResource{Resource: "pytorchjobs"}
	at := func(version string) manifest.Object {
		return &kubeflowv1.PyTorchJob{ObjectMeta: metav1.ObjectMeta{Name: "demo", ResourceVersion: version}}
	}
	for _, row := range []struct {
		sentence     string
		newest       manifest.Object
		answer       error
		patch        string
		again, error bool
	}{
		{"on the version it was decided on", nil, nil, `{"metadata":{"resourceVersion":"7"},"spec":{"replicas":2}}`, false, false},
		{"on the one that was recorded", at("8"), nil, `{"metadata":{"resourceVersion":"8"},"spec":{"replicas":2}}`, false, false},
		{"a job that has changed is looked at again", nil, apierrors.NewConflict(jobs, "demo", errors.New("it was scaled")),
			`{"metadata":{"resourceVersion":"7"},"spec":{"replicas":2}}`, true, false},
		{"trouble of the API server is told", nil, apierrors.NewInternalError(errors.New("etcd")),
			`{"metadata":{"resourceVersion":"7"},"spec":{"replicas":2}}`, false, true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			api := &scaling{scale: scale{answer: row.answer}}
			p := &pass{
				Reconciler: &Reconciler{client: api}, memory: &memory{newest: row.newest}, stored: at("7"), obj: at("7"),
				manifest: &manifest.Manifest{Job: job.Job{
					Name: "demo", Roles: []job.Role{{Name: "Worker", Replicas: 2}}, Elastic: &job.Elastic{Role: "Worker", Min: 1, Max: 4},
				}},
			}
			again, err := p.create(t.Context(), job.Decision{SizeJob: true})
			if api.scale.patch != row.patch || again != row.again || p.unsure != row.again || (err != nil) != row.error {
				t.Errorf("wrote %s; look again %v, past the cache %v; error %v", api.scale.patch, again, p.unsure, err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	terminating := apierrors.NewForbidden(pods, "demo-worker-0", errors.New("the namespace is terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, row := range []struct {
		sentence          string
		answer            error
		told, good, error bool
	}{
		{"422 is for good", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "demo-worker-0", nil), true, true, false},
		{"a quota may pass", apierrors.NewForbidden(pods, "demo-worker-0", errors.New("exceeded quota")), true, false, false},
		{"a name may become free", apierrors.NewAlreadyExists(pods, "demo-worker-0"), true, false, false},
		{"a namespace that goes takes the job with it", terminating, false, false, false},
		{"trouble of the API server is not the job's", apierrors.NewInternalError(errors.New("etcd")), false, false, true},
		{"nor is a time-out", apierrors.NewTimeoutError("slow", 1), false, false, true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			p := &pass{memory: &memory{}, at: time.Unix(100, 0)}
			told, err := p.rejected(errors.Join(&rejection{object: "pod demo-worker-0", error: row.answer}))
			if told != row.told || (err != nil) != row.error {
				t.Fatalf("told %v, error %v", told, err)
			}
			if told && (p.rejection.Invalid != row.good || p.rejection.Object != "pod demo-worker-0" || p.rejection.Times != 1) {
				t.Errorf("%+v", p.rejection)
			}
		})
	}
}

// deleting is an API server that keeps how a deletion was requested, gives its answer, and counts the events that it gets.
type deleting struct {
	client.Client
	answer error
	asked  client.DeleteOptions
	events int
}

func (d *deleting) Create(context.Context, client.Object, ...client.CreateOption) error {
	d.events++
	return nil
}

func (d *deleting) Delete(_ context.Context, _ client.Object, options ...client.DeleteOption) error {
	d.asked.ApplyOptions(options)
	return d.answer
}

// deletingPass is a pass with an API server to delete from, and the numbers it counts.
func deletingPass(t *testing.T, api *deleting) (*pass, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	numbers, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	return &pass{
		Reconciler: &Reconciler{kind: kinds.All[0], client: api, metrics: numbers, recorder: events.NewRecorder(api), now: func() time.Time { return time.Unix(100, 0) }},
		memory:     &memory{deleted: map[types.UID]time.Time{}},
		obj:        &kubeflowv1.PyTorchJob{}, manifest: &manifest.Manifest{Job: job.Job{Kind: "PyTorchJob", Name: "demo"}}, at: time.Unix(100, 0),
	}, registry
}

// A deletion that the API server answered with an error is requested again by the next pass.
func TestAFailedDeletionIsRequestedAgain(t *testing.T) {
	api := &deleting{answer: apierrors.NewInternalError(errors.New("etcd"))}
	p, _ := deletingPass(t, api)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "demo-worker-0", UID: "u1"}}
	for _, force := range []bool{false, true} {
		if p.deletePod(t.Context(), job.Deletion{Pod: pod, Force: force}) == nil {
			t.Error("the error is lost")
		}
		api.answer, api.asked = nil, client.DeleteOptions{}
		if err := p.deletePod(t.Context(), job.Deletion{Pod: pod, Force: force}); err != nil || api.asked.Preconditions == nil {
			t.Errorf("force %v: requested again %v, error %v", force, api.asked.Preconditions != nil, err)
		}
		api.answer = apierrors.NewInternalError(errors.New("etcd"))
	}
}

// A job whose TTL has passed is counted by the pass that deleted it.
func TestADeletedJobIsCountedOnce(t *testing.T) {
	jobs := schema.GroupResource{Resource: "pytorchjobs"}
	for _, row := range []struct {
		sentence string
		answer   error
		want     float64
	}{
		{"we deleted it", nil, 1},
		{"it is gone already", apierrors.NewNotFound(jobs, "demo"), 0},
		{"another of its name is there", apierrors.NewConflict(jobs, "demo", errors.New("another UID")), 0},
		{"nobody knows", apierrors.NewInternalError(errors.New("etcd")), 0},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			p, numbers := deletingPass(t, &deleting{answer: row.answer})
			_ = p.deleteJob(t.Context())
			if n := counted(t, numbers, "training_operator_jobs_deleted_total"); n != row.want {
				t.Errorf("%v are counted, want %v", n, row.want)
			}
		})
	}
}

// counted is the sum of a counter.
func counted(t *testing.T, numbers *prometheus.Registry, name string) (n float64) {
	t.Helper()
	families, err := numbers.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// The next pass is as far away as the clock says when this one ends, not when it began.
func TestWhenTheNextPassIs(t *testing.T) {
	p, _ := deletingPass(t, &deleting{})
	began := p.at
	p.now = func() time.Time { return began.Add(4 * time.Second) }
	for _, row := range []struct {
		sentence string
		decision job.Decision
		created  time.Time // of a child that the cache does not show
		refused  bool
		want     time.Duration
	}{
		{"nothing is due", job.Decision{}, time.Time{}, false, 0},
		{"a timer", job.Decision{RequeueAt: began.Add(10 * time.Second)}, time.Time{}, false, 6 * time.Second},
		{"a timer that passed meanwhile", job.Decision{RequeueAt: began.Add(time.Second)}, time.Time{}, false, time.Millisecond},
		{"a child that the cache may never show", job.Decision{RequeueAt: began.Add(time.Hour)}, began, false, cacheLagLimit - 3*time.Second},
		{"a deletion may be lost", job.Decision{DeleteJob: true}, time.Time{}, false, deleteRetryWait + time.Second},
		{"the rules should know of a rejection", job.Decision{RequeueAt: began.Add(time.Hour)}, time.Time{}, true, conflictWait},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			p.created = map[types.UID]createdChild{}
			if !row.created.IsZero() {
				p.created["u1"] = createdChild{at: row.created}
			}
			if wait := p.next(row.decision, 0, row.refused); wait != row.want {
				t.Errorf("in %s, want %s", wait, row.want)
			}
		})
	}
}

// Each event of a job, each deletion and each failure behind it is a line that can be searched.
func TestWhatIsLogged(t *testing.T) {
	var lines []string
	ctx := ctrllog.IntoContext(t.Context(), funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}))
	p, numbers := deletingPass(t, &deleting{})
	failure := &job.Failure{Replica: job.Replica{Role: "Worker"}, Pod: "demo-worker-0", Node: "n1", Class: job.Disruption, Reason: "Evicted"}
	ctx = withCounts(ctx, job.Status{Attempt: 2, Retries: 1, Disruptions: 3})
	p.log(ctx, job.Decision{Events: []job.Event{{Reason: "Restarting", Message: "is restarting", Failure: failure}}})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "demo-worker-0", UID: "u1"}, Spec: corev1.PodSpec{NodeName: "n1"}}
	for range 2 { // the second is not requested
		if err := p.deletePod(ctx, job.Deletion{Pod: pod, Force: true, Why: "its node n1 is gone"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.deleteJob(ctx); err != nil {
		t.Fatal(err)
	}
	const counts = `"attempt":2,"retries":1,"disruptions":3`
	want := []string{
		`{"logger":"","level":0,"msg":"job event",` + counts + `,"reason":"Restarting","message":"is restarting","replica":"Worker 0","pod":"demo-worker-0","node":"n1","class":"Disruption","cause":"Evicted"}`,
		`{"logger":"","level":0,"msg":"deleted pod",` + counts + `,"pod":"demo-worker-0","node":"n1","force":true,"why":"its node n1 is gone"}`,
		`{"logger":"","level":0,"msg":"deleted job",` + counts + `,"why":"its ttlSecondsAfterFinished has passed"}`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the lines are\n%s", strings.Join(lines, "\n"))
	}
	if n := counted(t, numbers, "trainyard_pods_force_deleted_total"); n != 1 {
		t.Errorf("%v forced deletions are counted", n)
	}
}

func TestHowPodsAreDeleted(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "demo-worker-0", UID: "u1", ResourceVersion: "7"}}
	uid, version, now := pod.UID, pod.ResourceVersion, int64(0)
	for _, row := range []struct {
		sentence string
		deletion job.Deletion
		answer   error
		want     client.DeleteOptions
		events   int
		error    bool
	}{
		{"by its UID", job.Deletion{Pod: pod}, nil, client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}, 0, false},
		{"only as it was read", job.Deletion{Pod: pod, Unchanged: true}, nil,
			client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}, 0, false},
		{"it has changed, and stays", job.Deletion{Pod: pod, Unchanged: true}, apierrors.NewConflict(pods, pod.Name, errors.New("it has a node")),
			client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}, 0, false},
		{"by force, and reported", job.Deletion{Pod: pod, Force: true}, nil,
			client.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}}, 1, false},
		{"by force, and gone already", job.Deletion{Pod: pod, Force: true}, apierrors.NewNotFound(pods, pod.Name),
			client.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}}, 0, false},
		{"an error of the API server is returned", job.Deletion{Pod: pod}, apierrors.NewInternalError(errors.New("etcd")),
			client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}, 0, true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			api := &deleting{answer: row.answer}
			p, _ := deletingPass(t, api)
			if err := p.deletePod(t.Context(), row.deletion); (err != nil) != row.error {
				t.Errorf("error %v", err)
			}
			stopped, cancel := context.WithCancel(t.Context())
			cancel()
			if err := p.recorder.Start(stopped); err != nil { // it stores what waits
				t.Fatal(err)
			}
			if !reflect.DeepEqual(api.asked, row.want) || api.events != row.events {
				t.Errorf("requested %+v, want %+v; %d events", api.asked, row.want, api.events)
			}
		})
	}
}
