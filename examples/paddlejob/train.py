"""The way the pods of a PaddleJob meet, over plain sockets: no PaddlePaddle needed to see what its variables are for.

`python -m paddle.distributed.launch train.py` reads the same variables. The launcher whose own address is PADDLE_MASTER serves there; all
launchers, the serving one too, send their name to it and get a rank once PADDLE_NNODES of them are there.
"""

import os
import socket
import threading
import time

host, port = os.environ["PADDLE_MASTER"].rsplit(":", 1)
nodes, me = int(os.environ["PADDLE_NNODES"]), socket.gethostname()


def serve():
    """Waits until all nodes have sent their names, then tells each its rank."""
    server, members = socket.create_server((host, int(port))), []
    while len(members) < nodes:
        connection = server.accept()[0]
        members.append((connection.makefile().readline().strip(), connection))
    for rank, (_, connection) in enumerate(sorted(members, key=lambda member: member[0])):
        connection.sendall(f"{rank}\n".encode())


def join():
    """Sends this node's name to the master, and waits for it if it does not listen yet."""
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(f"{me}\n".encode())
                return int(connection.makefile().readline())
        except (OSError, ValueError):
            time.sleep(0.2)


serves = host == socket.gethostbyname(me)  # the launcher decides in this way, too: others have a name in PADDLE_MASTER
if serves:
    thread = threading.Thread(target=serve)
    thread.start()
rank = join()
if serves:
    thread.join()
print(f"job {os.environ['PADDLE_JOB_ID']}: {me} is rank {rank} of {nodes}", flush=True)
