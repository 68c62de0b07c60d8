"""Fits a line with DistributedDataParallel among however many workers there are, and saves a checkpoint after every step.

torchrun starts this script again in every worker whenever one joins or leaves. All of them then load the last checkpoint, so
that no step is lost, and divide the same points among the current workers. Next to the checkpoint, steps.txt has the number of
workers of each step. Each process trains on its own GPU if its pod has some.
"""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = int(os.environ.get("STEPS", "100"))
PAUSE = float(os.environ.get("SECONDS_PER_STEP", "0"))
# Each job has its own folder. The run id ends with the attempt, and the checkpoints are for all attempts.
JOB = os.environ["TORCHELASTIC_RUN_ID"].removesuffix("-" + os.environ.get("TRAINYARD_ATTEMPT", ""))
FOLDER = os.path.join(os.environ.get("CHECKPOINTS", "checkpoints"), JOB)
CHECKPOINT = os.path.join(FOLDER, "last.pt")
DEVICE = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")


def points(rank, workers, size=600):
    """The rank's share of the points on y = 3x - 1, which are the same however many workers there are."""
    random = torch.Generator().manual_seed(0)
    x = torch.rand(size, 1, generator=random)
    y = 3 * x - 1 + 0.01 * torch.randn(size, 1, generator=random)
    return x[rank::workers], y[rank::workers]


def save(model, optimizer, step, workers):
    """Replaces the checkpoint at once, so that a worker killed while it writes leaves the one before."""
    with open(os.path.join(FOLDER, "steps.txt"), "a") as steps:
        steps.write(f"{step} {workers}\n")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, CHECKPOINT + ".new")
    os.replace(CHECKPOINT + ".new", CHECKPOINT)


def wanted():
    """Reads two files next to the checkpoint: stop ends the training, busy keeps the CPU busy."""
    found = [os.path.exists(os.path.join(FOLDER, name)) for name in ("stop", "busy")]
    answer = torch.tensor(found, dtype=torch.int32, device=DEVICE)
    dist.broadcast(answer, 0)  # all must do the same
    return answer.tolist()


def pause(busy):
    """Makes a step take longer, by computing or by waiting."""
    end = time.monotonic() + PAUSE
    while busy and time.monotonic() < end:
        torch.rand(100, 100) @ torch.rand(100, 100)
    time.sleep(max(0, end - time.monotonic()))


def main():
    torch.set_num_threads(1)
    if DEVICE.type == "cuda":
        torch.cuda.set_device(DEVICE)
    backend = "nccl" if DEVICE.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=timedelta(minutes=1))  # for a worker that was removed before it started
    rank, workers = dist.get_rank(), dist.get_world_size()
    os.makedirs(FOLDER, exist_ok=True)
    model = DistributedDataParallel(torch.nn.Linear(1, 1).to(DEVICE))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    first = 0
    if os.path.exists(CHECKPOINT):
        saved = torch.load(CHECKPOINT, map_location=DEVICE)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"] + 1
    dist.barrier()  # nobody may replace it before all have loaded it
    print(f"rank {rank} of {workers}, from step {first}, on {DEVICE.type}", flush=True)

    x, y = (part.to(DEVICE) for part in points(rank, workers))
    for step in range(first, STEPS):
        stop, busy = wanted()
        if stop:
            break
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if rank == 0:
            save(model, optimizer, step, workers)
            print(f"step {step} by {workers}: loss {loss.item():.5f}", flush=True)
        pause(busy)

    dist.barrier()
    time.sleep(2)  # a process that exits early makes the last collective fail for the others
    weight, bias = (p.item() for p in model.parameters())
    print(f"rank {rank} is done: y = {weight:.2f}x {bias:+.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
