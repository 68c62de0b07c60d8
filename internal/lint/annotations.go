package lint

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/manifest/traceid"
)

var restartPolicies = []string{"Never", "OnFailure", "Always", "ExitCode"}

// ourAnnotations are our annotations on jobs, which values have a meaning, and how to say that.
var ourAnnotations = []struct {
	key   string
	known func(value string) bool
	use   string
}{
	{kubeflowv1.AnnotationRestartPolicy, oneOf(restartPolicies...), strings.Join(restartPolicies, ", ")},
	{kubeflowv1.AnnotationRestartScope, oneOf("Job", "Replica"), "Job, Replica"},
	{kubeflowv1.AnnotationAvoidNodes, oneOf("Prefer", "Require", "Off"), "Prefer, Require, Off"},
	{kubeflowv1.AnnotationOnNodeMaintenance, oneOf("Move", "Stay"), "Move, Stay"},
	{kubeflowv1.AnnotationMaxDisruptions, isNumber, "a number from 0"},
	{kubeflowv1.AnnotationTTL, isNumber, "a number from 0"},
	{kubeflowv1.AnnotationFinishWithin, isDuration, "a duration such as 90s or 5m"},
	{traceid.Annotation, traceid.Valid, "the format of W3C's Trace Context, 00-TRACE-SPAN-01"},
}

func oneOf(values ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(values, value) }
}

func isNumber(value string) bool {
	n, err := strconv.ParseInt(value, 10, 32)
	return err == nil && n >= 0
}

func isDuration(value string) bool {
	d, err := time.ParseDuration(value)
	return err == nil && d >= 0
}

// adviseAnnotations warns of our annotations that have no effect. The API server has no rules for annotations, and the operator
// ignores what it does not know.
func (c *checker) adviseAnnotations() {
	isTrainJob := c.object.GetKind() == trainer.TrainJobKind
	known := map[string]bool{}
	for _, a := range ourAnnotations {
		known[a.key] = true
		switch value, set := c.object.GetAnnotations()[a.key]; {
		case set && isTrainJob && a.key == kubeflowv1.AnnotationRestartPolicy:
			c.warn("metadata.annotations", "%s has no effect on a TrainJob", a.key)
		case set && !a.known(value):
			c.warn("metadata.annotations", "%s: %q has no effect: use %s", a.key, value, a.use)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.object.GetAnnotations())) {
		if strings.HasPrefix(key, "trainyard.dev/") && !known[key] {
			c.warn("metadata.annotations", "%s has no effect on a job: it is none of our annotations", key)
		}
	}
}
