// Package simulation runs a job in a simulated cluster, with a clock that jumps from one event to the next.
//
// The rules are the real ones (package job) and so are the pods (package manifest). Only Kubernetes is simulated: pods take a
// moment to start and to stop, kubelets restart containers with their usual back-off, and a [Script] says what else happens:
// "worker-1 exits 137 at 30s". The result is a [Life]: what happened when, and how long each replica ran.
package simulation
