// Package config is what a person installs on a cluster, as files for kustomize; they are embedded so that the command line
// installs the same. The tests build it by kustomize and by Helm, and read it.
package config

//go:generate go run ./gen

import "embed"

// Files are the folders of this package.
//
//go:embed crd default manager mpi rbac runtimes
var Files embed.FS
