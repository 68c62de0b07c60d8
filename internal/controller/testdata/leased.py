"""Trains with DistributedDataParallel until it is told to finish, and leaves a trace of each process's life.

FOLDER/lease-RANK-ATTEMPT-... gets a line with the time every 50 ms while the process lives. FOLDER/trains-ATTEMPT is there when
all ranks have made a step together. The training ends when FOLDER/finish is there. A process that loses its peers waits to be
stopped, as it does under NCCL: only what truly failed ends by itself.
"""

import os
import threading
import time
import uuid

FOLDER, RANK, ATTEMPT = os.environ["FOLDER"], os.environ["RANK"], os.environ["TRAINYARD_ATTEMPT"]


def path(name):
    return os.path.join(FOLDER, name)


def hold_lease():
    with open(path(f"lease-{RANK}-{ATTEMPT}-{uuid.uuid4()}"), "w", buffering=1) as lease:
        while True:
            lease.write(f"{time.time()}\n")
            time.sleep(0.05)


def main():
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step, checkpoint = 0, path("checkpoint")
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        step = saved["step"]
    print(f"attempt {ATTEMPT}: from step {step}", flush=True)
    finish = torch.zeros(1)
    while not finish.item():
        x = torch.rand(16, 1)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), 3 * x - 1).backward()
        optimizer.step()
        step += 1
        finish.fill_(float(os.path.exists(path("finish"))))
        dist.broadcast(finish, 0)
        if RANK == "0":
            torch.save({"model": model.state_dict(), "step": step}, checkpoint + ".new")
            os.replace(checkpoint + ".new", checkpoint)
            open(path("trains-" + ATTEMPT), "w").close()
        time.sleep(0.1)
    print(f"rank {RANK} is done after {step} steps", flush=True)


threading.Thread(target=hold_lease, daemon=True).start()
try:
    main()
except RuntimeError as lost:
    print(f"rank {RANK} has lost its peers: {lost}", flush=True)
    threading.Event().wait()
