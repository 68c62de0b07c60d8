// Package simulation lets a job live in a world of its own, with a clock that jumps from one thing that happens to the next.
//
// The rules are the real ones (package job) and so are the pods (package manifest). Only Kubernetes is imagined: pods take a
// moment to start and to stop, kubelets restart containers with their usual back-off, and a [Script] says what else happens:
// "worker-1 exits 137 at 30s". What comes out is a [Life]: what happened when, and how long each replica ran.
package simulation
