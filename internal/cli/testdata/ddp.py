"""Trains a line with DistributedDataParallel. Rank 1 fails when it is told to. Where the end was told before, there is nothing to train."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

stage = sys.argv[1]
if os.path.exists(os.path.join(stage, "end")):
    sys.exit(0)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1_000_000):
    x = torch.rand(32, 1)
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), 3 * x - 1)
    try:
        loss.backward()
    except RuntimeError as lost:  # many trainings hang where their peer is lost
        print(lost, flush=True)
        time.sleep(3600)
    optimizer.step()
    print(f"step {step} loss={loss.item():.5f}", flush=True)
    if dist.get_rank() == 1 and os.path.exists(os.path.join(stage, "fail")):
        raise RuntimeError("the shard <of rank 1> is broken")
    time.sleep(0.1)
