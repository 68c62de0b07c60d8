"""The way replicas of an XGBoostJob meet, over plain sockets: no XGBoost needed to see what its variables are for.

With XGBoost the Master starts a RabitTracker at MASTER_ADDR and MASTER_PORT, and every replica joins it by its RANK. Here the Master
listens there itself. Each replica makes a histogram of its part of the data, as boosting does for each split; the Master adds them up.
"""

import json
import os
import random
import socket
import time

address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
workers = [name for name in os.environ.get("WORKER_ADDRS", "").split(",") if name]


def histogram():
    """How many of this replica's values are in each of ten bins."""
    bins = [0] * 10
    for _ in range(1000):
        bins[int(random.random() * 10)] += 1
    return bins


def send(bins):
    """Sends a histogram to the Master, and waits for it if it does not listen yet."""
    while True:
        try:
            with socket.create_connection(address, timeout=60) as connection:
                connection.sendall((json.dumps([rank, bins]) + "\n").encode())
                return connection.makefile().readline().strip()
        except OSError:
            time.sleep(0.2)


print(f"rank {rank} of {world}, master {address[0]}:{address[1]}", flush=True)
if rank > 0:
    print(f"rank {rank}: {send(histogram())}", flush=True)
else:
    for name in workers:
        while True:  # the name of a pod resolves as soon as it has an address
            try:
                socket.getaddrinfo(name, int(os.environ["WORKER_PORT"]))
                break
            except OSError:
                time.sleep(0.2)
    print(f"workers: {len(workers)} found", flush=True)
    total, server = histogram(), socket.create_server(("", address[1]))
    for _ in range(world - 1):
        connection, _ = server.accept()
        sender, bins = json.loads(connection.makefile().readline())
        total = [a + b for a, b in zip(total, bins)]
        connection.sendall(b"taken\n")
        print(f"rank {sender} has sent {sum(bins)} values", flush=True)
    print(f"done: {sum(total)} values in {len(total)} bins", flush=True)
