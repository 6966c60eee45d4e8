"""A program that has the fixture imported, with the SDK, and forks servers at pipes.

A suite starts dozens, and to import all that anew for each would be most of its time. Who starts this
is at the other end of a Unix socket, whose descriptor is the argument. A message carries the pipes
that a server reads and writes, and one to which its exit code is written, as a byte.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from contextlib import suppress

import trio
from conformance import extension as extension  # and the SDK with it
from conformance import fixture

_ends: dict[int, int] = {}  # where it is written how a process ended


def main() -> None:
    """Fork until nobody can ask any more."""
    gc.freeze()  # or each server collects at its end what was imported, which takes longer than all else
    signal.signal(signal.SIGCHLD, _tell_ends)
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        while passed := socket.recv_fds(asked, 1, 3)[1]:
            source, sink, end = passed
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # until it is known whose end it is
            server = os.fork()
            if not server:
                break
            _ends[server] = end
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            os.close(source)
            os.close(sink)
        else:
            return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    for each in (end, *_ends.values()):
        os.close(each)
    for pipe, place in ((source, 0), (sink, 1)):
        os.dup2(pipe, place)
        os.close(pipe)
    trio.run(fixture.serve, "stdio")


def _tell_ends(*_: object) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            server, status = ended
            end = _ends.pop(server)
            os.write(end, bytes([os.waitstatus_to_exitcode(status) & 0xFF]))
            os.close(end)


if __name__ == "__main__":
    main()
