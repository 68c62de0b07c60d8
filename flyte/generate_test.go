package flyte

import (
	"math"

	"pgregory.net/rapid"
)

var (
	anyCount  = rapid.Int32Range(1, math.MaxInt32)
	anyImage  = rapid.SampledFrom([]string{"", "trainer:1", "registry.example/team/träiner:v2<&>"})
	anyAmount = rapid.SampledFrom([]string{"", "1", "500m", "2Gi", "64M"})

	anyRunPolicy = rapid.Custom(func(t *rapid.T) RunPolicy {
		return RunPolicy{
			CleanPodPolicy:          rapid.SampledFrom([]CleanPodPolicy{"", CleanPodNone, CleanPodAll, CleanPodRunning, "ALL"}).Draw(t, "clean"),
			TTLSecondsAfterFinished: rapid.Ptr(rapid.Int32Range(0, math.MaxInt32), true).Draw(t, "ttl"),
			ActiveDeadlineSeconds:   rapid.Ptr(anyCount, true).Draw(t, "deadline"),
			BackoffLimit:            rapid.Ptr(rapid.Int32Range(0, 10), true).Draw(t, "backoff"),
		}
	})

	anyResources = rapid.Custom(func(t *rapid.T) Resources {
		return Resources{
			CPU:              anyAmount.Draw(t, "cpu"),
			Memory:           anyAmount.Draw(t, "memory"),
			GPU:              rapid.SampledFrom([]string{"", "1", "8"}).Draw(t, "gpu"),
			EphemeralStorage: anyAmount.Draw(t, "storage"),
		}
	})

	anyGroup = rapid.Custom(func(t *rapid.T) Group {
		return Group{
			Replicas: rapid.Int32Range(0, 100).Draw(t, "replicas"),
			Replica: Replica{
				Image:         anyImage.Draw(t, "image"),
				Requests:      anyResources.Draw(t, "requests"),
				Limits:        anyResources.Draw(t, "limits"),
				RestartPolicy: rapid.SampledFrom([]RestartPolicy{"", RestartNever, RestartOnFailure, RestartAlways}).Draw(t, "restart"),
			},
		}
	})

	anyElastic = rapid.Custom(func(t *rapid.T) Elastic {
		least := rapid.Int32Range(1, 1000).Draw(t, "min")
		nnodes := NNodes{Min: least, Max: rapid.Int32Range(least, 2000).Draw(t, "max")}
		if rapid.Bool().Draw(t, "fixed") {
			nnodes = Nodes(least)
		}
		nnodes.Text = nnodes.Min != nnodes.Max || (least == 1 && rapid.Bool().Draw(t, "text"))
		e := NewElastic(nnodes, anyCount.Draw(t, "nproc"))
		e.RdzvBackend = rapid.SampledFrom([]string{"", "c10d", "etcd", "etcd-v2"}).Draw(t, "backend")
		e.MaxRestarts = rapid.Int32Range(0, 100).Draw(t, "restarts")
		e.RunPolicy = rapid.Ptr(anyRunPolicy, true).Draw(t, "policy")
		return e
	})

	anyPyTorch = rapid.Custom(func(t *rapid.T) PyTorch {
		return PyTorch{
			Master:    anyGroup.Draw(t, "master").Replica,
			Worker:    anyGroup.Draw(t, "worker"),
			RunPolicy: rapid.Ptr(anyRunPolicy, true).Draw(t, "policy"),
		}
	})

	anyTensorFlow = rapid.Custom(func(t *rapid.T) TensorFlow {
		return TensorFlow{
			Chief:     anyGroup.Draw(t, "chief"),
			PS:        anyGroup.Draw(t, "ps"),
			Worker:    anyGroup.Draw(t, "worker"),
			Evaluator: anyGroup.Draw(t, "evaluator"),
			RunPolicy: rapid.Ptr(anyRunPolicy, true).Draw(t, "policy"),
		}
	})

	anyConfig = rapid.OneOf(
		rapid.Map(anyElastic, func(e Elastic) Config { return e }),
		rapid.Map(anyPyTorch, func(p PyTorch) Config { return p }),
		rapid.Map(anyTensorFlow, func(t TensorFlow) Config { return t }),
	)
)
