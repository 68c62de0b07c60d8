package flyte

import (
	"fmt"
	"strings"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins/kubeflow"
)

// CleanPodPolicy says which pods are removed when a job has ended. The constants are the documented spellings; ParseCleanPodPolicy
// also accepts others.
type CleanPodPolicy string

// The clean pod policies, spelled as flyte-sdk documents them.
const (
	// CleanPodNone keeps every pod as it is, even running ones.
	CleanPodNone CleanPodPolicy = "None"
	// CleanPodAll removes every pod.
	CleanPodAll CleanPodPolicy = "all"
	// CleanPodRunning stops what still runs and keeps finished pods for their logs.
	CleanPodRunning CleanPodPolicy = "Running"
)

const cleanPodPrefix = "CLEANPOD_POLICY_"

// ParseCleanPodPolicy accepts "None", "all" and "Running" in any letter case, and Flyte's enum names.
func ParseCleanPodPolicy(s string) (CleanPodPolicy, error) {
	switch strings.TrimPrefix(strings.ToUpper(s), cleanPodPrefix) {
	case "NONE":
		return CleanPodNone, nil
	case "ALL":
		return CleanPodAll, nil
	case "RUNNING":
		return CleanPodRunning, nil
	}
	return "", fmt.Errorf("clean pod policy %q is unknown: want None, all or Running", s)
}

// message is the enum value; p is known to be one of the constants.
func (p CleanPodPolicy) message() kubeflow.CleanPodPolicy {
	return kubeflow.CleanPodPolicy(kubeflow.CleanPodPolicy_value[cleanPodPrefix+strings.ToUpper(string(p))])
}

func cleanPodPolicyOf(m kubeflow.CleanPodPolicy) (CleanPodPolicy, error) {
	return ParseCleanPodPolicy(m.String())
}

// RunPolicy is how long a job may run, how often it is retried and what is left of it. A nil or empty field is unset: the
// operator's default applies. If there is a RunPolicy without a CleanPodPolicy, Flyte sends None.
type RunPolicy struct {
	// CleanPodPolicy says which pods are removed when the job has ended.
	CleanPodPolicy CleanPodPolicy
	// TTLSecondsAfterFinished is how long the finished job object is kept. Flyte cannot send 0.
	TTLSecondsAfterFinished *int32
	// ActiveDeadlineSeconds is how long the job may be active, from its start time; at least 1. It applies to the whole job,
	// whatever the restart policy.
	ActiveDeadlineSeconds *int32
	// BackoffLimit is how many retries are allowed before the job has failed. Flyte cannot send 0. Only restarts are retries: an
	// Elastic, which Flyte never restarts, also needs the annotation trainyard.dev/restart-policy.
	BackoffLimit *int32
}

// message returns nil for a nil policy: then nothing is sent and the operator's defaults apply.
func (p *RunPolicy) message() (*kubeflow.RunPolicy, []Warning, error) {
	if p == nil {
		return nil, nil, nil
	}
	var (
		m        kubeflow.RunPolicy
		warnings []Warning
	)
	if p.CleanPodPolicy == "" {
		warnings = append(warnings, warn(ZeroLost, "runPolicy.cleanPodPolicy",
			"unset, but a run policy is given, so Flyte asks for None: pods that still run are left running"))
	} else {
		policy, err := ParseCleanPodPolicy(string(p.CleanPodPolicy))
		if err != nil {
			return nil, nil, fmt.Errorf("runPolicy.cleanPodPolicy: %w", err)
		}
		m.CleanPodPolicy = policy.message()
	}
	if p.ActiveDeadlineSeconds != nil && *p.ActiveDeadlineSeconds < 1 {
		return nil, nil, fmt.Errorf("runPolicy.activeDeadlineSeconds: %d is not a deadline: want at least 1", *p.ActiveDeadlineSeconds)
	}
	for _, f := range []struct {
		name string
		from *int32
		to   *int32
	}{
		{"ttlSecondsAfterFinished", p.TTLSecondsAfterFinished, &m.TtlSecondsAfterFinished},
		{"activeDeadlineSeconds", p.ActiveDeadlineSeconds, &m.ActiveDeadlineSeconds},
		{"backoffLimit", p.BackoffLimit, &m.BackoffLimit},
	} {
		switch {
		case f.from == nil:
		case *f.from < 0:
			return nil, nil, fmt.Errorf("runPolicy.%s: %d is negative", f.name, *f.from)
		case *f.from == 0:
			warnings = append(warnings, zeroLost("runPolicy."+f.name))
		default:
			*f.to = *f.from
		}
	}
	return &m, warnings, nil
}

// zeroMeans says what a policy's author gets instead of the zero.
var zeroMeans = map[string]string{
	"runPolicy.ttlSecondsAfterFinished": "the finished job is never deleted",
	"runPolicy.activeDeadlineSeconds":   "the job has no deadline",
	"runPolicy.backoffLimit":            "there is no retry limit",
}

func zeroLost(path string) Warning {
	return warn(ZeroLost, path, "Flyte's message cannot distinguish 0 from unset: %s", zeroMeans[path])
}

func runPolicyOf(m *kubeflow.RunPolicy) (*RunPolicy, error) {
	if m == nil {
		return nil, nil
	}
	clean, err := cleanPodPolicyOf(m.GetCleanPodPolicy())
	if err != nil {
		return nil, fmt.Errorf("runPolicy.cleanPodPolicy: %w", err)
	}
	return &RunPolicy{
		CleanPodPolicy:          clean,
		TTLSecondsAfterFinished: unlessZero(m.GetTtlSecondsAfterFinished()),
		ActiveDeadlineSeconds:   unlessZero(m.GetActiveDeadlineSeconds()),
		BackoffLimit:            unlessZero(m.GetBackoffLimit()),
	}, nil
}

func unlessZero(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return new(n)
}
