"""Fits a line with DistributedDataParallel on data it makes, and saves a checkpoint after every epoch.

A replica that is started again continues from the last checkpoint: the operator restarts all replicas of a PyTorchJob together
when one of them fails, so all of them read the same one. It trains on a GPU where its pod has one.
"""

import os
import signal
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

EPOCHS = int(os.environ.get("EPOCHS", "10"))
PAUSE = float(os.environ.get("SECONDS_PER_EPOCH", "0"))
LOST = int(os.environ.get("LOSE_WORKER_AT", "-1"))  # for the demo: rank 1 dies in this epoch of its first attempt
CHECKPOINT = os.path.join(os.environ.get("CHECKPOINTS", "checkpoints"), "last.pt")


def make_data(rank, size=256):
    """The rank's own part of the points on y = 3x - 1, with a little noise."""
    random = torch.Generator().manual_seed(rank)
    x = torch.rand(size, 1, generator=random)
    return x, 3 * x - 1 + 0.01 * torch.randn(size, 1, generator=random)


def save(model, optimizer, epoch):
    """Replaces the checkpoint in one step, so that a replica killed while it writes leaves the one before."""
    os.makedirs(os.path.dirname(CHECKPOINT), exist_ok=True)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, CHECKPOINT + ".new")
    os.replace(CHECKPOINT + ".new", CHECKPOINT)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank, attempt = dist.get_rank(), os.environ.get("TRAINYARD_ATTEMPT", "0")
    model = DistributedDataParallel(torch.nn.Linear(1, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    first = 0
    if os.path.exists(CHECKPOINT):
        saved = torch.load(CHECKPOINT, map_location=device)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["epoch"] + 1
    print(f"rank {rank} of {dist.get_world_size()}, attempt {attempt}, from epoch {first}, on {device.type}", flush=True)

    x, y = (part.to(device) for part in make_data(rank))
    for epoch in range(first, EPOCHS):
        for _ in range(10):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        time.sleep(PAUSE)
        if rank == 0:
            save(model, optimizer, epoch)
            print(f"epoch {epoch}: loss {loss.item():.5f}", flush=True)
        if rank == 1 and attempt == "0" and epoch == LOST:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.barrier()

    weight, bias = (p.item() for p in model.parameters())
    print(f"rank {rank} is done: y = {weight:.2f}x {bias:+.2f}", flush=True)
    assert abs(weight - 3) < 0.1 and abs(bias + 1) < 0.1, "the training has not converged"
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
