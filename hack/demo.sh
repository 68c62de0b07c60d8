#!/bin/bash
# Shows the local cluster: starts it, lets two pods train together on it, and stops it. Leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/.."
data=$(mktemp -d)
export KUBECONFIG=$data/kubeconfig
kubectl="bin/trainyard kubectl"
say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
finish() {
	[ -z "${cluster:-}" ] || kill -TERM "$cluster" 2>/dev/null && wait "$cluster" || true
	rm -rf "$data"
}
trap finish EXIT

say "A whole Kubernetes, in one process"
bin/trainyard up --data-dir "$data" &
cluster=$!
until [ -s "$KUBECONFIG" ]; do
	kill -0 "$cluster" 2>/dev/null || exit 1
	sleep 0.1
done
$kubectl get nodes -o wide

say "Two pods, each a process of this machine with a network of its own, form a torch process group"
$kubectl apply -f examples/all-reduce/all-reduce.yaml
$kubectl wait --for=condition=complete job/all-reduce --timeout=120s
$kubectl get pods -o wide
$kubectl logs -l job-name=all-reduce --prefix

say "Stop it: processes, network and mounts are gone"
