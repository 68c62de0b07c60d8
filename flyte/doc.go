// Package flyte is the Go side of Flyte's Kubeflow plugins: the configurations a Flyte user writes in Python, the messages
// Flyte carries them in, and the kubeflow.org/v1 jobs its backend makes of them.
//
// There are four forms of the same job, and a road between each two neighbours, both ways:
//
//	Elastic, PyTorch, TensorFlow ──CustomConfig──► Custom ──Struct, JSON──► TaskTemplate.custom
//	                            ◄─────Config─────        ◄──ParseCustom──
//	Custom + Pod = Task  ──────────Render────────► PyTorchJob, TFJob
//	                     ◄──────FromManifest──────
//
// A Custom is the plugin message with its task type and version. A Task is a Custom with the pod its replicas run, as read
// from a TaskTemplate by ReadTask, or put together by hand. Rendering follows Flyte's backend, also where Flyte 1 and Flyte 2
// differ (Dialect) and where they do not do what one would wish; what gets lost on a road is never lost in silence but comes
// back as a Warning. Decoding is strict: an unknown enum name, a fraction, an overflow or a negative number is an error that
// names the field.
//
// Task.Lint says what will surprise the author of a task. ReadPhase says what Flyte will make of a job's status.
//
// The package talks to nobody: every function is pure.
package flyte
