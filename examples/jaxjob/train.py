"""A data-parallel training over plain sockets, to see what the variables of a JAXJob are for: no JAX needed.

With JAX the same variables are read by `jax.distributed.initialize()`, and the sum of gradients is a `jax.lax.psum`. Here the
coordinator, process 0, takes the gradient of every process, and sends the sum back to all.
"""

import os
import random
import socket
import time

host, port = os.environ["JAX_COORDINATOR_ADDRESS"].rsplit(":", 1)
processes, me = int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"])


def connect():
    """Connects to the coordinator, and waits for it if it does not listen yet."""
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=60)
        except OSError:
            time.sleep(0.2)


def accept():
    """Waits until all other processes are connected."""
    server = socket.create_server(("", int(port)))
    return [server.accept()[0] for _ in range(processes - 1)]


peers = [connection.makefile("rw") for connection in (accept() if me == 0 else [connect()])]


def total(value):
    """The sum of the values of all processes."""
    if me == 0:
        value += sum(float(peer.readline()) for peer in peers)
    for peer in peers:
        print(value, file=peer, flush=True)
    return value if me == 0 else float(peers[0].readline())


print(f"process {me} of {processes}, coordinator {host}:{port}", flush=True)
slope = 0.0
for step in range(200):
    x = random.random()
    slope -= 0.1 * total(2 * (slope * x - 3 * x) * x) / processes
print(f"process {me} is done: y = {slope:.2f}x", flush=True)
