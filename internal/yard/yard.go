// Package yard finds jobs: it asks a cluster's API server for jobs of any kind, their pods, events and logs. What
// follows something over time survives restarts of pods and outages of the API server. What the cluster no longer has, or does not
// serve because it is stopped, comes from the record.
package yard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/record"
)

// Yard is a namespace of a cluster.
type Yard struct {
	client.WithWatch
	Core      kubernetes.Interface
	Namespace string
	// TargetFlags are what a person adds to a command to reach the cluster, DefaultNamespace is the namespace that commands then use.
	TargetFlags      []string
	DefaultNamespace string
	// Past is what was recorded of the cluster's jobs, nil if that is not known. Stopped says that the cluster is not running: there is
	// only the past, by Look and Recall and for the jobs that these return.
	Past    *record.Store
	Stopped bool
}

// Job is a job as the API server has it.
type Job struct {
	Kind   kinds.Adapter
	Object manifest.Object
	*manifest.Manifest
	// Gone says that the job is deleted: this is its last state.
	Gone bool
	// Kueue is what Kueue knows about the job, nil if it is not asked or knows nothing.
	Kueue *Workload
	// Recorded is where the job comes from if it does not come from the API server.
	Recorded *record.Record
}

// ErrNotFound says that there is no such job.
var ErrNotFound = errors.New("there is no such job")

// Open connects to a cluster's namespace.
func Open(config *rest.Config, namespace string) (*Yard, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent = -1, "trainyard"
	config.WarningHandler = rest.NoWarnings{}
	scheme, err := controller.Scheme()
	if err != nil {
		return nil, err
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &Yard{WithWatch: c, Core: core, Namespace: namespace}, nil
}

// Find is the job with a name, "demo" or, if jobs of two kinds have that name, "pytorchjob/demo".
func (y *Yard) Find(ctx context.Context, name string) (*Job, error) {
	kind, bare, given := strings.Cut(name, "/")
	if !given {
		kind, bare = "", name
	}
	var found []*Job
	var unavailable error // of the last kind that this person cannot see
	available := false    // at least one kind
	for _, k := range kinds.All {
		if kind != "" && !strings.EqualFold(strings.TrimSuffix(kind, "s"), k.Name()) {
			continue
		}
		obj := k.New()
		err := y.Get(ctx, client.ObjectKey{Namespace: y.Namespace, Name: bare}, obj)
		switch {
		case err == nil:
			available = true
			found = append(found, &Job{Kind: k, Object: obj, Manifest: k.Read(obj)})
		case isUnavailable(err):
			unavailable = err
		case apierrors.IsNotFound(err):
			available = true
		default:
			return nil, fmt.Errorf("looking for job %s: %w", bare, err)
		}
	}
	if !available && unavailable != nil {
		return nil, unavailable
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w as %s in namespace %s", ErrNotFound, name, y.Namespace)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("jobs of two kinds have the name %s: use %s/%[1]s", name, strings.ToLower(found[0].Kind.Name()))
}

// Jobs are the jobs of the namespace, or of all namespaces if it is empty, that the options select, sorted by name.
func (y *Yard) Jobs(ctx context.Context, namespace string, options ...client.ListOption) ([]*Job, error) {
	var jobs []*Job
	var unavailable error
	available := false
	for _, k := range kinds.All {
		list, err := y.newList(k)
		if err != nil {
			return nil, err
		}
		if err := y.List(ctx, list, append([]client.ListOption{client.InNamespace(namespace)}, options...)...); isUnavailable(err) {
			unavailable = err
			continue
		} else if err != nil {
			return nil, fmt.Errorf("listing %ss: %w", k.Name(), err)
		}
		available = true
		objects, err := meta.ExtractList(list)
		if err != nil {
			return nil, fmt.Errorf("listing %ss: %w", k.Name(), err)
		}
		for _, obj := range objects {
			o := obj.(manifest.Object)
			jobs = append(jobs, &Job{Kind: k, Object: o, Manifest: k.Read(o)})
		}
	}
	if !available && unavailable != nil {
		return nil, unavailable
	}
	slices.SortStableFunc(jobs, func(a, b *Job) int {
		return strings.Compare(a.Job.Namespace+"/"+a.Job.Name, b.Job.Namespace+"/"+b.Job.Name)
	})
	return jobs, nil
}

// isUnavailable reports whether a cluster does not have a kind, or this person may not see its jobs. Jobs of other kinds can still be
// found.
func isUnavailable(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsForbidden(err) }

func (y *Yard) newList(k kinds.Kind) (client.ObjectList, error) {
	gvk, err := y.GroupVersionKindFor(k.New())
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	list, err := y.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	return list.(client.ObjectList), nil
}

// Submit creates a job.
func (y *Yard) Submit(ctx context.Context, k kinds.Adapter, obj *unstructured.Unstructured) (*Job, error) {
	if err := y.Create(ctx, obj, client.FieldOwner("trainyard"), client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		return nil, err
	}
	created := k.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, created); err != nil {
		return nil, fmt.Errorf("reading job %s: %w", obj.GetName(), err)
	}
	return &Job{Kind: k, Object: created, Manifest: k.Read(created)}, nil
}

// Apply creates an object that is not a job, or updates it.
func (y *Yard) Apply(ctx context.Context, obj *unstructured.Unstructured) error {
	err := y.WithWatch.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("trainyard"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}

// Pods are the pods of a job, sorted by name.
func (y *Yard) Pods(ctx context.Context, j *Job) ([]corev1.Pod, error) {
	if j.Recorded != nil {
		return recordedPods(j), nil
	}
	var pods corev1.PodList
	if err := y.List(ctx, &pods, client.InNamespace(j.Job.Namespace), Selector(j)); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", j.Job.Name, err)
	}
	mine := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		owner := metav1.GetControllerOf(&p)
		return owner == nil || owner.UID != j.Job.UID
	})
	slices.SortFunc(mine, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return mine, nil
}

// Selector finds the pods of a job by their labels.
func Selector(j *Job) client.MatchingLabels {
	return client.MatchingLabels{naming.LabelJobName: j.Job.Name, naming.LabelOperatorName: naming.OperatorName(j.Kind.Name())}
}
