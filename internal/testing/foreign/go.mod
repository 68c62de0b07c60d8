// Modules whose files the tests read, and programs that they build with the dependencies that the modules themselves name. They are a module of
// their own, so that their many dependencies are not ours.
module github.com/trainyard/trainyard/internal/testing/foreign

go 1.26.0

require (
	github.com/kubeflow/trainer/v2 v2.3.0
	sigs.k8s.io/kueue v0.19.2
)
