"""A task as flyte-sdk runs it in each pod of an Elastic: the task's function, in nproc_per_node processes, under torch's elastic agent.

Flyte's entrypoint knows the configuration from the task itself. It reads one variable that the operator sets, the rendezvous: PET_RDZV_ENDPOINT.
Where a pod has GPUs, one for each process, they are used.
"""

import os
import socket

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing import Std
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from torch.nn.parallel import DistributedDataParallel

# Torch 1.13 cannot leave the output alone under Python 3.11; later ones have no such settings.
OUTPUT = {"redirects": Std.OUT, "tee": Std.OUT} if torch.__version__.startswith("1.") else {}


def train(steps):
    """The task: fits y = 3x - 1, each process on points of its own, and returns the loss."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    x = torch.rand(256, 1, generator=torch.Generator().manual_seed(rank)).to(device)
    model = DistributedDataParallel(torch.nn.Linear(1, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), 3 * x - 1)
        loss.backward()
        optimizer.step()
    print(f"{socket.gethostname()}: rank {rank} of {world}, loss {loss.item():.5f}, on {device.type}", flush=True)
    dist.destroy_process_group()
    return loss.item()


def main():
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as flyte-sdk does where a pod has several processes
    config = LaunchConfig(
        run_id=os.environ.get("FLYTE_INTERNAL_EXECUTION_ID", "flyte-task"),
        min_nodes=2,
        max_nodes=2,
        nproc_per_node=2,
        rdzv_backend="c10d",
        rdzv_endpoint=os.environ.get("PET_RDZV_ENDPOINT", "localhost:0"),
        rdzv_configs={"timeout": 900, "join_timeout": 900},
        max_restarts=3,
        monitor_interval=3,
        start_method="spawn",
        **OUTPUT,
    )
    losses = elastic_launch(config, train)(100)
    if 0 in losses:
        print(f"the task returns {losses[0]:.5f}", flush=True)
    else:
        print("the task's result is that of the pod with rank 0", flush=True)


if __name__ == "__main__":
    main()
