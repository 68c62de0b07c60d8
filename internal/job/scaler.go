package job

import "k8s.io/apimachinery/pkg/api/equality"

// ScalerAction is what to do about the job's autoscaler.
type ScalerAction string

// What can be done about an autoscaler.
const (
	KeepScaler   ScalerAction = ""
	CreateScaler ScalerAction = "Create"
	UpdateScaler ScalerAction = "Update"
	DeleteScaler ScalerAction = "Delete"
	// SizeJob: write the present number of replicas into the job, so that an autoscaler finds one.
	SizeJob ScalerAction = "Size"
)

// keepScaler gives a running job the autoscaler it asks for.
func (p *pass) keepScaler() {
	want, have := p.Job.Scaler, p.Observed.Scaler
	switch {
	case want == nil || !p.next().Finishing.IsZero():
		p.dropScaler()
	case p.Job.Unsized:
		p.Decision.Scaler = SizeJob
	case have == nil:
		p.Decision.Scaler = CreateScaler
	case !owned(have, p.Job) || have.DeletionTimestamp != nil:
		p.wait("the HorizontalPodAutoscaler %s belongs to something else", have.Name)
	case !equality.Semantic.DeepEqual(have.Spec.MinReplicas, want.MinReplicas) || have.Spec.MaxReplicas != want.MaxReplicas ||
		!equality.Semantic.DeepEqual(have.Spec.Metrics, want.Metrics):
		p.Decision.Scaler = UpdateScaler
	}
}

// dropScaler takes the autoscaler from a job that has none to want, which it would keep editing otherwise.
func (p *pass) dropScaler() {
	if have := p.Observed.Scaler; have != nil && owned(have, p.Job) && have.DeletionTimestamp == nil {
		p.Decision.Scaler = DeleteScaler
	}
}
