package procrun

import (
	"testing"
	"time"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestGracePeriods(t *testing.T) {
	for _, row := range []struct {
		name, annotation string
		limit, want      time.Duration
	}{
		{"a pod that says nothing has Kubernetes' 30 s", "", 0, 30 * time.Second},
		{"a pod has what it says", "3600", 0, time.Hour},
		{"a pod may have none", "0", 0, 0},
		{"the runtime may limit it", "3600", time.Second, time.Second},
		{"the runtime's limit does not lengthen it", "1", time.Minute, time.Second},
		{"the longest that Kubernetes takes does not overflow", "9223372036854775807", 0, maxGracePeriod},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &container{config: &v1.ContainerConfig{}}
			if row.annotation != "" {
				c.config.Annotations = map[string]string{gracePeriodAnnotation: row.annotation}
			}
			if got := (&Runtime{config: Config{GraceLimit: row.limit}}).gracePeriod(c); got != row.want {
				t.Errorf("it has %s, want %s", got, row.want)
			}
		})
	}
}
