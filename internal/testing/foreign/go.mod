// Modules whose files the tests read and whose code they do not build. They are a module of their own, so that their many
// dependencies are not ours.
module github.com/trainyard/trainyard/internal/testing/foreign

go 1.26.0

require github.com/kubeflow/trainer/v2 v2.3.0
