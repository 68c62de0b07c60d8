#!/bin/bash
# Shows what Trainyard is for: a training of two replicas loses one of them and still finishes. Leaves nothing behind.
# TRAINYARD names the program, if it is not the one that `make build` builds.
set -euo pipefail
cd "$(dirname "$0")/.."
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
mkdir "$data/checkpoints"

say() { printf '\033[1m# %s\033[0m\n' "$*"; }
say "trainyard run starts a whole Kubernetes in one process, submits a PyTorchJob of two replicas and follows it."
say "In epoch 3 a worker kills itself. Look for the restart and its cause: both replicas start again from the last checkpoint."
say "That is one of the three retries that --retries allows. Worker 0 reports an error first, because its peer is gone."
echo
"${TRAINYARD:-bin/trainyard}" run --data-dir "$data/cluster" --nodes 2 --retries 3 --deadline 10m \
	--env EPOCHS=8 --env CHECKPOINTS="$data/checkpoints" --env LOSE_WORKER_AT=3 \
	-- /usr/bin/python3 examples/pytorch-ddp/train.py
echo
say "Exit code 0: the job succeeded. The cluster, its pods and its network are gone. Nothing is left on this machine."
