package controller_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

func TestAJobSucceeds(t *testing.T) {
	t.Parallel()
	j := newWorld(t).submit(gang(1, `echo $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT, attempt $TRAINYARD_ATTEMPT`))
	j.becomes(kubeflowv1.JobSucceeded)
	if got := j.Logs("demo-master-0"); got != "0 of 2 at demo-master-0:23456, attempt 0\n" {
		t.Errorf("the master was told %q", got)
	}
	j.Eventually("the services are gone", func() error {
		if names := j.services(); len(names) > 0 {
			return fmt.Errorf("there are still %q", names)
		}
		return nil
	})
}

func TestAGangIsRetriedAsOftenAsItMay(t *testing.T) {
	t.Parallel()
	j := newWorld(t).submit(gang(2, `test $RANK = 2 && echo no more && exit 3; sleep 600`, func(pj *kubeflowv1.PyTorchJob) {
		pj.Spec.RunPolicy.BackoffLimit = new(int32(1))
	}))
	s := j.becomes(kubeflowv1.JobFailed)
	if s.Retries != 1 || s.Attempt != 1 || len(s.Attempts) != 2 || s.LastFailure == nil || *s.LastFailure.ExitCode != 3 {
		t.Errorf("status: %+v", s)
	}
	for _, word := range []string{"Worker 1", "demo-worker-1", "code 3", "backoffLimit 1", "no more"} {
		if message := newest(s).Message; !strings.Contains(message, word) {
			t.Errorf("%q does not say %q", message, word)
		}
	}
	j.comesToRest()
}

// comesToRest waits until none of the job's pods runs or waits.
func (j *training) comesToRest() {
	j.Helper()
	j.Eventually("nothing of "+j.name+" runs any more", func() error {
		for name, pod := range j.pods() {
			if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				return fmt.Errorf("%s is %s", name, pod.Status.Phase)
			}
		}
		return nil
	})
}
