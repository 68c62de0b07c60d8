"""The four roles of a TFJob at work, over plain sockets: no TensorFlow needed to see what TF_CONFIG is for.

A parameter server holds the slope of a line. Chief and Workers ask for it, compute a gradient on points they make, and send it
back. The Evaluator looks on until the slope is right. The Chief decides when the training is over, which ends the job.
"""

import json
import os
import random
import socketserver
import socket
import time

config = json.loads(os.environ["TF_CONFIG"])
cluster, task = config["cluster"], config["task"]
me = f"{task['type']}-{task['index']}"


def ask(address, question):
    """Sends one line to a replica and returns its answer. A replica that is not there yet is waited for."""
    host, port = address.rsplit(":", 1)
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=10) as connection:
                connection.sendall((question + "\n").encode())
                return connection.makefile().readline().strip()
        except OSError:
            time.sleep(0.2)


def serve(answer):
    """Answers lines on this replica's own address, as the cluster has it, forever."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            self.wfile.write(f"{answer(self.rfile.readline().decode().split())}\n".encode())

    port = int(cluster[task["type"]][task["index"]].rsplit(":", 1)[1])
    socketserver.TCPServer.allow_reuse_address = True
    with socketserver.TCPServer(("", port), Handler) as server:
        server.serve_forever()


def hold_parameters():
    slope, seen = 0.0, set()

    def answer(question):
        nonlocal slope
        if question[0] == "add":
            slope += float(question[1])
            if question[2] not in seen:
                seen.add(question[2])
                print(f"{me}: {question[2]} has joined", flush=True)
        return slope

    serve(answer)


def train(steps):
    for _ in range(steps):
        slope = float(ask(cluster["ps"][0], "get"))
        x = random.random()
        ask(cluster["ps"][0], f"add {-0.1 * 2 * (slope * x - 3 * x) * x} {me}")


def evaluate():
    while abs(float(ask(cluster["ps"][0], "get")) - 3) > 0.05:
        time.sleep(0.2)


print(f"{me} of {json.dumps({role: len(members) for role, members in cluster.items()}, sort_keys=True)}", flush=True)
if task["type"] == "ps":
    hold_parameters()
elif task["type"] == "evaluator":
    evaluate()
    print(f"{me}: the slope is right", flush=True)
elif task["type"] == "worker":
    train(100)
    print(f"{me}: done", flush=True)
    serve(lambda question: f"{me} is done")
else:
    train(100)
    for worker in cluster.get("worker", []):
        print(f"{me}: {ask(worker, 'done?')}", flush=True)
    evaluate()
    print(f"{me}: the training is over", flush=True)
