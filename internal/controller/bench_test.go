package controller_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/api/crds"
	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/testing/local"
)

const (
	gangSize = 2000
	// mostRestartRatio is how much longer the operator may take to restart a gang than the API server takes for the same requests.
	mostRestartRatio = 1.5
	benchNamespace   = "default"
)

// bench is an API server without nodes in this process, and an operator.
type bench struct {
	*testing.B
	client client.Client
	pods   kubernetes.Interface
	bare   []*corev1.Pod
}

// BenchmarkGangRestart lets a member of a gang of 2,000 pods fail, and measures how long it takes until the next attempt has all its
// pods. An administrator who deletes and creates as many pods, as many at a time, is what it is compared with.
func BenchmarkGangRestart(b *testing.B) {
	const rounds = 3
	w := startBench(b)
	first := w.attempt(0)
	w.create(gang(gangSize-1, "true"))
	first.wait()
	w.createBare()
	attempt := 0
	for range b.N {
		var bare, operator []time.Duration
		for range rounds {
			attempt++
			bare = append(bare, w.recreateBare())
			operator = append(operator, w.restart(attempt))
		}
		alone, taken := local.Median(bare, time.Duration.Seconds), local.Median(operator, time.Duration.Seconds)
		b.ReportMetric(alone, "bare-s")
		b.ReportMetric(taken, "operator-s")
		b.ReportMetric(taken/alone, "ratio")
		local.Report("%d pods deleted and created again: %.2f s", gangSize, alone)
		local.Report("a gang of %d pods restarted: %.2f s, %.2f times as long (at most %.1f: %s)", gangSize, taken, taken/alone, mostRestartRatio,
			local.Met(taken/alone <= mostRestartRatio))
	}
}

func startBench(b *testing.B) *bench {
	b.Helper()
	api, err := cluster.StartAPI(context.Background(), cluster.APIOptions{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(api.Stop)
	scheme, err := controller.Scheme()
	if err != nil {
		b.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	config := api.RESTConfig()
	config.QPS = -1
	w := &bench{B: b, pods: kubernetes.NewForConfigOrDie(config)}
	if w.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		b.Fatal(err)
	}
	w.install()
	mgr, err := newOperator(config, benchNamespace, prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

func (w *bench) install() {
	w.Helper()
	all, err := crds.All()
	if err != nil {
		w.Fatal(err)
	}
	for _, crd := range all {
		if err := w.client.Create(context.Background(), crd); err != nil {
			w.Fatal(err)
		}
	}
	w.until("the kinds are served", func() bool {
		return w.client.List(context.Background(), &kubeflowv1.PyTorchJobList{}) == nil && w.client.List(context.Background(), &trainer.TrainJobList{}) == nil
	})
}

func (w *bench) create(obj client.Object) {
	w.Helper()
	obj.SetNamespace(benchNamespace)
	if err := w.client.Create(context.Background(), obj); err != nil {
		w.Fatal(err)
	}
}

func (w *bench) until(what string, check func() bool) {
	w.Helper()
	for end := time.Now().Add(local.Timeout); !check(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("it does not come about that %s", what)
		}
	}
}

// arrivals counts the pods that are created with a label.
type arrivals struct {
	*bench
	watch.Interface
}

func (w *bench) arrivals(label string) arrivals {
	w.Helper()
	pods := w.pods.CoreV1().Pods(benchNamespace)
	now, err := pods.List(context.Background(), metav1.ListOptions{Limit: 1})
	if err != nil {
		w.Fatal(err)
	}
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.LabelSelector = label
		return pods.Watch(ctx, options)
	}}
	stream, err := toolswatch.NewRetryWatcherWithContext(context.Background(), now.ResourceVersion, watcher) // the API server ends watches that it finds slow
	if err != nil {
		w.Fatal(err)
	}
	return arrivals{w, stream}
}

func (w *bench) attempt(n int) arrivals {
	return w.arrivals(fmt.Sprintf("%s=%d", naming.LabelAttempt, n))
}

// wait returns when there are as many as a gang has.
func (a arrivals) wait() {
	a.Helper()
	defer a.Stop()
	for n, end := 0, time.After(local.Timeout); n < gangSize; {
		select {
		case e, open := <-a.ResultChan():
			if !open {
				a.Fatal("the watch has ended")
			}
			if e.Type == watch.Added {
				n++
			}
		case <-end:
			a.Fatalf("there are %d pods of %d", n, gangSize)
		}
	}
}

// restart lets the master fail, and measures the time until the next attempt has all its pods.
func (w *bench) restart(attempt int) time.Duration {
	w.Helper()
	ctx, next := context.Background(), w.attempt(attempt)
	master, err := w.pods.CoreV1().Pods(benchNamespace).Get(ctx, "demo-master-0", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	master.Status.Phase = corev1.PodFailed
	master.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "train", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, FinishedAt: metav1.NewTime(time.Now().Add(-time.Minute)),
	}}}}
	w.resetDelay()
	began := time.Now()
	if _, err := w.pods.CoreV1().Pods(benchNamespace).UpdateStatus(ctx, master, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	next.wait()
	return time.Since(began)
}

// resetDelay lets the next restart be the first in a row, which is not delayed.
func (w *bench) resetDelay() {
	w.Helper()
	w.until("the delay is reset", func() bool {
		job := &kubeflowv1.PyTorchJob{}
		if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: benchNamespace, Name: "demo"}, job); err != nil {
			return false
		}
		job.Status.RestartsInARow = 0
		return w.client.Status().Update(context.Background(), job) == nil
	})
}

// createBare creates pods like those of the gang, which nobody looks after.
func (w *bench) createBare() {
	w.Helper()
	model, err := w.pods.CoreV1().Pods(benchNamespace).Get(context.Background(), "demo-worker-0", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.bare = make([]*corev1.Pod, gangSize)
	for i := range w.bare {
		w.bare[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bare-%d", i), Labels: map[string]string{"bare": "true"}}, Spec: model.Spec}
	}
	w.inParallel(w.createPod)
}

// recreateBare measures how long the API server takes to delete and create them.
func (w *bench) recreateBare() time.Duration {
	w.Helper()
	began := time.Now()
	w.inParallel(func(pod *corev1.Pod) error {
		return w.pods.CoreV1().Pods(benchNamespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{})
	})
	next := w.arrivals("bare")
	w.inParallel(w.createPod)
	next.wait()
	return time.Since(began)
}

func (w *bench) createPod(pod *corev1.Pod) error {
	_, err := w.pods.CoreV1().Pods(benchNamespace).Create(context.Background(), pod, metav1.CreateOptions{})
	return err
}

// inParallel does something to each bare pod, as many at a time as the operator.
func (w *bench) inParallel(do func(*corev1.Pod) error) {
	w.Helper()
	const inFlight = 64
	pods := make(chan *corev1.Pod)
	var group sync.WaitGroup
	for range inFlight {
		group.Go(func() {
			for pod := range pods {
				if err := do(pod); err != nil {
					w.Error(err)
				}
			}
		})
	}
	for _, pod := range w.bare {
		pods <- pod
	}
	close(pods)
	group.Wait()
}
