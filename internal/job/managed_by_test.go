package job

import "testing"

func TestHandsOff(t *testing.T) {
	for sentence, change := range map[string]func(*Job){
		"another controller manages the job": func(j *Job) { j.Policy.ManagedBy = ptr("kueue.x-k8s.io/multikueue") },
		"the job is being deleted":           func(j *Job) { j.Deleting = true },
	} {
		t.Run(sentence, func(t *testing.T) {
			if d := decide(newWorld(demo(1, change))); !idle(d) {
				t.Errorf("does something: %+v", d)
			}
		})
	}
	if d := decide(newWorld(demo(1, func(j *Job) { j.Policy.ManagedBy = ptr("kubeflow.org/training-operator") }))); len(d.CreatePods) == 0 {
		t.Error("does not run a job that names this controller")
	}
}
