#!/usr/bin/python3
"""A remote shell for mpirun, without keys: rsh.py serve, and rsh.py HOST COMMAND...

The guests share a network with nobody else.
"""

import socket
import subprocess
import sys
import threading
import time

PORT = 7777


def serve():
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", PORT))
    listener.listen(8)
    while True:
        threading.Thread(target=run, args=listener.accept()[:1], daemon=True).start()


def run(caller):
    with caller, caller.makefile("r") as lines:
        command = lines.readline()
        subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=caller.fileno(), stderr=caller.fileno())


def reach(host):
    """A connection to the server, which may have started just now."""
    for _ in range(300):
        try:
            return socket.create_connection((host, PORT))
        except ConnectionRefusedError:
            time.sleep(0.2)
    sys.exit(f"no remote shell on {host}")


def call(host, words):
    with reach(host) as peer:
        peer.sendall((" ".join(words) + "\n").encode())
        while part := peer.recv(1 << 16):
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()


if sys.argv[1] == "serve":
    serve()
else:
    call(sys.argv[1], sys.argv[2:])
