package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// demo is a valid job, as a PyTorchJob with one Master and the given number of Workers would be: a gang.
func demo(workers int32, changes ...func(*Job)) Job {
	j := Job{
		Kind: "PyTorchJob", Namespace: "default", Name: "demo", UID: "j1", Generation: 1, Manager: "kubeflow.org/training-operator",
		Roles: []Role{
			{Name: "Master", Replicas: 1, RestartPolicy: RestartOnFailure, Container: "pytorch"},
			{Name: "Worker", Replicas: workers, RestartPolicy: RestartOnFailure, Container: "pytorch"},
		},
		Policy:   RunPolicy{CleanPodPolicy: CleanRunning},
		Success:  Success{Role: "Master", Rule: SuccessAll},
		Scope:    ScopeJob,
		Children: []Child{service("demo")},
	}
	for _, change := range changes {
		change(&j)
	}
	return j
}

func service(name string) Child {
	return Child{ChildKind: Services, Object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// autoscaled gives the job an autoscaler with these bounds, none where high is 0.
func autoscaled(j *Job, low *int32, high int32) {
	j.Children = slices.DeleteFunc(slices.Clone(j.Children), func(c Child) bool { return c.ChildKind == Autoscalers })
	if high > 0 {
		j.Children = append(j.Children, Child{ChildKind: Autoscalers, Object: &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: j.Name}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: low, MaxReplicas: high},
		}})
	}
}

// placedTogether lets the scheduler place so many replicas together, with 0 all that the job cannot train without.
func placedTogether(j *Job, minAvailable int32) {
	j.Gang = &Gang{Group: PodGroups, MinAvailable: &minAvailable}
	j.Children = append(slices.Clone(j.Children), Child{ChildKind: PodGroups, Object: &schedulingv1beta1.PodGroup{}})
}

// autoscaler is the one that the job wants, nil if it wants none.
func autoscaler(children []Child) *autoscalingv2.HorizontalPodAutoscaler {
	for _, c := range children {
		if c.ChildKind == Autoscalers {
			return c.Object.(*autoscalingv2.HorizontalPodAutoscaler)
		}
	}
	return nil
}

func ptr[T any](v T) *T { return &v }

// set changes the job as one word of a story says: "backoffLimit=2", "elastic=1:4", "Worker=3", "suspend=true".
func set(j *Job, word string) error {
	name, value, _ := strings.Cut(word, "=")
	number, _ := strconv.ParseInt(value, 10, 64)
	switch name {
	case "backoffLimit":
		j.Policy.BackoffLimit = ptr(int32(number))
	case "activeDeadlineSeconds":
		j.Policy.ActiveDeadlineSeconds = &number
	case "maxDisruptions":
		j.Policy.MaxDisruptions = ptr(int32(number))
	case "leavesNodes":
		j.LeavesNodes = value == "true"
	case "finishWithin":
		j.Policy.FinishWithin = Seconds(number)
		j.role("Worker").MayFinish = true
	case "ttlSecondsAfterFinished":
		j.Policy.TTLSecondsAfterFinished = ptr(int32(number))
	case "cleanPodPolicy":
		j.Policy.CleanPodPolicy = CleanPodPolicy(value)
	case "suspend":
		j.Policy.Suspend = value == "true"
	case "managedBy":
		j.Policy.ManagedBy = &value
	case "unsized":
		j.Unsized = value == "true"
	case "queue":
		j.Queue = value
	case "misstated":
		j.Misstated = value == "true"
	case "missing":
		j.Missing = value
	case "invalid":
		j.Invalid = value
	case "gang": // gang=0: all that the job cannot train without are placed together
		placedTogether(j, int32(number))
	case "scheduleTimeoutSeconds":
		j.ScheduleTimeoutSeconds = ptr(int32(number))
	case "scope":
		j.ScopeOverride = Scope(value)
	case "restartPolicy":
		for i := range j.Roles {
			j.Roles[i].RestartPolicy = RestartPolicy(value)
		}
	case "elastic":
		var low, high int32
		if _, err := fmt.Sscanf(value, "%d:%d", &low, &high); err != nil {
			return fmt.Errorf("elastic %q: %w", value, err)
		}
		j.Elastic = &Elastic{Role: "Worker", Min: low, Max: high, Anchored: true}
		j.Scope, j.Success = ScopeReplica, Success{Role: "Worker", Rule: SuccessAny}
	case "scaler":
		autoscaled(j, nil, int32(number))
	case "success":
		role, rule, _ := strings.Cut(value, ":")
		j.Success = Success{Role: role, Rule: SuccessRule(rule)}
	default:
		return setReplicas(j, name, int32(number))
	}
	return nil
}

func setReplicas(j *Job, role string, replicas int32) error {
	if r := j.role(role); r != nil {
		r.Replicas = replicas
		return nil
	}
	return fmt.Errorf("no policy and no role %q", role)
}

// A TrainJob has steps: a dataset and then a model are fetched before the nodes train. The launcher, where there is one,
// waits for the nodes to be ready, the evaluation for them to be complete.
func steps(j *Job) {
	j.Kind, j.Trains = "TrainJob", "node"
	j.Roles = []Role{
		{Name: "dataset", Replicas: 1, RestartPolicy: RestartOnFailure, Container: "dataset"},
		{Name: "model", Replicas: 1, RestartPolicy: RestartOnFailure, Container: "model", After: []Dependency{{"dataset", MilestoneComplete}}},
		{Name: "launcher", RestartPolicy: RestartOnFailure, Container: "node", After: []Dependency{{"node", MilestoneReady}}},
		{Name: "node", Replicas: 2, RestartPolicy: RestartOnFailure, Container: "node", After: []Dependency{{"model", MilestoneComplete}}},
		{Name: "evaluate", RestartPolicy: RestartOnFailure, Container: "node", After: []Dependency{{"node", MilestoneComplete}}},
	}
	j.Success = Success{Rule: SuccessAll}
}

// A TFJob restarts replicas alone.
func tensorflow(j *Job) {
	j.Kind, j.Scope = "TFJob", ScopeReplica
	j.Roles = []Role{
		{Name: "Chief", RestartPolicy: RestartOnFailure, Container: "tensorflow"},
		{Name: "PS", RestartPolicy: RestartOnFailure, Container: "tensorflow"},
		{Name: "Worker", Replicas: 2, RestartPolicy: RestartOnFailure, Container: "tensorflow"},
	}
	j.Success = Success{Role: "Worker", Rule: SuccessFirst}
}
