"""The process that begins others: one for each list of packages that clash with the worker's (gears/interpreters).

The worker may begin no process, so this one is there before the sandbox closes. It takes the name of a folder of
packages and a socket; what it begins closes the same walls around itself before it runs anything else, and serves the
socket. It ends with the worker, and all that it began ends with it.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from typing import NoReturn

from shardqa.worker import activity, sandbox
from shardqa.worker.installer import FOLDER, INDEX, NAME, NOTHING, VARIABLE, begin, end_with_parent, keep_alone

MAX_ORDER = 4096  # bytes
NICENESS = 5  # as the worker's


def start(environment: Mapping[str, str]) -> socket.socket | None:
    """The way to the starter; None where nothing may be installed. Before any thread begins."""
    if environment.get(VARIABLE, INDEX) == NOTHING:
        return None
    return begin(_serve, environment)


def _serve(way: socket.socket, environment: Mapping[str, str]) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while True:
        message, descriptors, _, _ = socket.recv_fds(way, MAX_ORDER, 1)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            folder, stall = json.loads(message)
            _begin(keep_alone(socket.socket(fileno=descriptors[0])), folder, stall, environment)
        os.close(descriptors[0])


def _begin(link: socket.socket, folder: str, stall: float, environment: Mapping[str, str]) -> NoReturn:
    sandbox.confine(environment)
    end_with_parent()  # again: another user has no such signal yet
    os.environ.pop(activity.VARIABLE, None)  # the page is the worker's
    os.nice(NICENESS)
    sys.stdout = sys.stderr
    if not NAME.fullmatch(folder):
        os._exit(1)
    from shardqa.worker.gears.interpreters import process

    process.serve(link, f"{os.path.realpath(FOLDER)}/{folder}", stall)
