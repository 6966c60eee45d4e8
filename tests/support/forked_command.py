"""A command of `greenroom` in a process that was forked, not started: this asks for it and ends as it ended.

Imports nearly nothing, since each command waits for it. See `support.forking`.
"""

import array
import marshal
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

door, module, *arguments = sys.argv[1:]
asked = socket(AF_UNIX, SOCK_STREAM)
asked.connect(door)
descriptors = array.array("i", [0, 1, 2, os.open(".", os.O_RDONLY)])
told = marshal.dumps((False, False, module, arguments, dict(os.environ)))
asked.sendmsg([len(told).to_bytes(8, "big")], [(SOL_SOCKET, SCM_RIGHTS, descriptors)])
asked.sendall(told)
code = int.from_bytes(asked.recv(2), "big", signed=True)
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
