"""Starts a program with connected sockets among its descriptors: launch.py SOCKET COUNT PROGRAM [ARGS…]

Node can neither make a socketpair nor pass on a descriptor that it has accepted. A connection to the test's own
socket is the same to the worker.
"""
import os
import socket
import sys

FIRST = 3

path, count, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
lanes = []
for _ in range(count):
    lane = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    lane.connect(path)
    lanes.append(os.dup2(lane.fileno(), FIRST + 50 + len(lanes), inheritable=False))
for index, lane in enumerate(lanes):
    os.dup2(lane, FIRST + index, inheritable=True)
os.environ["ONEHOP_LANES"] = f"{FIRST}-{FIRST + count - 1}"
os.execvp(command[0], command)
