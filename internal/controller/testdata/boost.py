"""A training with XGBoost itself: the Master runs its tracker, and all replicas grow the same trees from different data."""

import hashlib
import os
import socket
import time

import numpy
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker



def find_tracker():
    """Waits until the name of the Master is known. XGBoost retries a connection, but gives up at once without an address."""
    while True:
        try:
            return socket.getaddrinfo(os.environ["DMLC_TRACKER_URI"], None)
        except OSError:
            time.sleep(0.2)


rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
tracker = None
if rank == 0:
    tracker = RabitTracker(host_ip="0.0.0.0", n_workers=world, port=int(os.environ["MASTER_PORT"]), sortby="task")
    tracker.start(world)
find_tracker()
with collective.CommunicatorContext():  # finds the tracker by the variables DMLC_*
    data = numpy.random.default_rng(rank).random((100, 3))
    label = (data[:, 0] > 0.5).astype(int)
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 2, "nthread": 1}, xgboost.DMatrix(data, label), num_boost_round=3)
    trees = hashlib.sha256("".join(booster.get_dump()).encode()).hexdigest()[:16]
    print(f"rank {collective.get_rank()} of {collective.get_world_size()} is done, trees {trees}", flush=True)
if tracker:
    tracker.join()
