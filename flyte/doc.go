// Package flyte is the Go side of Flyte's Kubeflow plugins: the configurations a Flyte user writes in Python, the messages
// in which Flyte sends them, and the kubeflow.org/v1 jobs its backend creates from them.
//
// There are four forms of the same job, and conversions in both directions:
//
//	Elastic, PyTorch, TensorFlow ──CustomConfig──► Custom ──Struct, JSON──► TaskTemplate.custom
//	                            ◄─────Config─────        ◄──ParseCustom──
//	Custom + Pod = Task  ──────────Render────────► PyTorchJob, TFJob
//	                     ◄──────FromManifest──────
//
// A Custom is the plugin message with its task type and version. A Task is a Custom with the pod its replicas run, as read
// from a TaskTemplate by ReadTask, or built by hand. Rendering does what Flyte's backend does, also where Flyte 1 and Flyte 2
// differ (Dialect) and where the result is not what a user would expect. What a conversion loses is returned as a Warning.
// Decoding is strict: an unknown enum name, a fraction, an overflow or a negative number is an error that names the field.
//
// Task.Lint says what will surprise the author of a task. ReadPhase says which phase Flyte reads from a job's status.
//
// Every function is pure: the package uses no network.
package flyte
