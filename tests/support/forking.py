"""A process that has imported the commands of `greenroom`, and forks each one that a test starts.

A command takes 0.4 seconds of a processor to import what it runs, and often a tenth of that to do what a
test asks. Forked it is the same program, with the arguments, environment, folder and standard streams of
whoever asks; on Linux it is also their child, to be waited for and killed like any other. How Python itself
starts, what is imported for what, and what only the parent of a process may do with it (limits) is tested
on `harness.PROGRAM`.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import marshal
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from typing import Any, Final, NamedTuple

from greenroom.transports.ops.cli.catalogue import COMMANDS, runner_of

COMMAND = "greenroom.transports.cli"
PROGRAM = "greenroom.transports.ops.cli"
BENCHMARKS = "bench"
"""The modules that can be run, as by `python -m`; that of the command imports `PROGRAM`."""
PARSER = "greenroom.actors.knowledge.ingest.parsing.parser_process"
"""What the product itself starts to parse a file; see `real_parsers`."""

_PR_SET_CHILD_SUBREAPER = 36  # of Linux
_asking: dict[int, socket.socket] = {}  # who is told how a process ended


class _Told(NamedTuple):
    """What a fork is to be: whether with a session of its own, and what it runs."""

    has_session: bool
    module: str
    arguments: list[str]
    environment: dict[str, str]


def _settings_of_python(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what an environment tells the interpreter, but for bytecode, of which a fork writes little."""
    names = (name for name in environment if name.startswith("PYTHON") and name != "PYTHONDONTWRITEBYTECODE")
    return {name: environment[name] for name in names}


_INTERPRETER: Final = _settings_of_python(os.environ)
"""What the environment tells the interpreter that forks, whatever a test tells others."""


@functools.cache
def forked_program(module: str = COMMAND) -> list[str]:
    """Return what stands before a command's arguments to have it forked, by a process that ends with ours."""
    return [*_shim(), module]


@functools.cache
def _shim() -> list[str]:
    door = _opened_door()
    with door:
        forking = subprocess.Popen(
            [sys.executable, __file__, str(door.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[door.fileno()],
            env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
            | _INTERPRETER,
        )
    atexit.register(forking.communicate)
    return _have_forked(door.name)


def _opened_door() -> _Door:
    folder = Path(tempfile.mkdtemp(prefix="forking-"))
    atexit.register(rmtree, folder)
    return _Door(str(folder / "door"))


class _Door(socket.socket):
    def __init__(self, name: str) -> None:
        super().__init__(socket.AF_UNIX)
        self.name = name
        self.bind(name)
        self.listen(64)


def _have_forked(door: str) -> list[str]:
    """Have `subprocess` ask for each forked program itself, where forks can be its children."""
    _Forked.shim = [sys.executable, "-ISs", str(Path(__file__).parent / "forked_command.py"), door]
    return _Forked.shim


class _Forked(subprocess.Popen[Any]):
    """A process that is forked if its command says so; any other is started as ever."""

    shim: list[str] = []  # noqa: RUF012 - of all
    """What stands before the arguments of what is forked, once there is what forks."""
    prefix: list[str] | None = None
    """What else is forked: all modules of Greenroom and its benchmarks that this starts. See `all_forked`."""
    parses: list[str] = [sys.executable, "-P", "-m", PARSER]  # noqa: RUF012 - likewise
    """How a process that parses is started, which is forked where something else was, too."""

    def _execute_child(self, args: Any, *rest: Any) -> None:
        is_one = isinstance(args, (str, bytes, os.PathLike))
        module, arguments = self._module_of([] if is_one else [os.fspath(each) for each in args])
        if module is None:
            super()._execute_child(args, *rest)  # type: ignore[misc]  # private, and the same in all versions
            return
        executable, preexec, _, passed, cwd, given, *_ = rest
        environment = dict(os.environ if given is None else given)
        if executable or preexec or passed or _settings_of_python(environment) != _INTERPRETER:
            started = args if module == PARSER else [sys.executable, "-m", module, *arguments]
            super()._execute_child(started, *rest)  # type: ignore[misc]
            return
        read, _, _, written, _, errors = rest[9:15]
        told = _Told(bool(rest[20]), module, arguments, environment)
        streams = [standard if each == -1 else each for standard, each in enumerate((read, written, errors))]
        try:
            self.pid = _fork(self.shim[-1], streams, cwd or ".", told)
        finally:
            self._close_pipe_fds(*rest[9:15])  # type: ignore[attr-defined]
        self._child_created = True

    def _module_of(self, command: list[str]) -> tuple[str | None, list[str]]:
        if self.shim and command[: len(self.shim)] == self.shim:
            return command[len(self.shim)], command[len(self.shim) + 1 :]
        if self.shim and command[:4] == self.parses:
            return PARSER, command[4:]
        if command[:2] == self.prefix and command[2].partition(".")[0] in {"greenroom", BENCHMARKS}:
            return command[2], command[3:]
        return None, []


@contextmanager
def all_forked() -> Iterator[None]:
    """Have all modules of Greenroom and its benchmarks forked that are started by `python -m`."""
    _shim()
    _Forked.prefix = [sys.executable, "-m"]
    try:
        yield
    finally:
        _Forked.prefix = None


@contextmanager
def real_parsers() -> Iterator[None]:
    """Have processes that parse started and not forked, for what looks at them or at the memory they have."""
    parses, _Forked.parses = _Forked.parses, []
    try:
        yield
    finally:
        _Forked.parses = parses


def _start_by_fork() -> None:
    if sys.platform == "linux":
        subprocess.Popen = _Forked  # type: ignore[misc]  # trio starts its processes by it, too


if __name__ != "__main__":
    # At once: who writes `subprocess.Popen([*forked_program(), ...])` takes the class before there is a shim.
    _start_by_fork()

_subreaper = threading.Lock()


def _fork(door: str, streams: list[int], folder: Any, told: _Told) -> int:
    """Have a program forked and become its parent; return its process's id."""
    system = ctypes.CDLL(None)
    with _subreaper, socket.socket(socket.AF_UNIX) as asking:
        here = os.open(folder, os.O_RDONLY)
        try:
            # The fork's own parent ends at once, so that it becomes a child of the nearest process above
            # that asks for those; and we ask no longer than that takes.
            system.prctl(_PR_SET_CHILD_SUBREAPER, 1)
            asking.connect(door)
            data = marshal.dumps((True, *told))
            socket.send_fds(asking, [len(data).to_bytes(8, "big")], [*streams, here])
            asking.sendall(data)
            process = int.from_bytes(asking.recv(8), "big")
        finally:
            system.prctl(_PR_SET_CHILD_SUBREAPER, 0)
            os.close(here)
    if not process:
        raise OSError("what forks programs has ended")
    return process


def main(door: socket.socket) -> None:
    """Fork whatever is asked for, until standard input is closed."""
    signal.signal(signal.SIGCHLD, _tell_ends)
    ends: list[Any] = [door, 0]
    while door in select.select(ends, [], [])[0]:
        asking = door.accept()[0]
        size, descriptors, *_ = socket.recv_fds(asking, 8, 4)
        with asking.makefile("rb") as source:
            is_adopted, *told = marshal.loads(source.read(int.from_bytes(size, "big")))  # noqa: S302 - ours
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # until it is known whose end it is
        child = _orphan(asking) if is_adopted else os.fork()
        if not child:
            break
        if is_adopted:
            asking.close()
        else:
            _asking[child] = asking
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        for each in descriptors:
            os.close(each)
    else:
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    for end in (door, asking, *_asking.values()):
        end.close()
    _asking.clear()
    _become(descriptors, _Told(*told))


def _orphan(asking: socket.socket) -> int:
    """Fork a process whose parent has ended, and tell who asks its id; return 0 in the process."""
    told, tells = os.pipe()
    between = os.fork()
    if not between:
        process = os.fork()
        if process:
            os.write(tells, process.to_bytes(8, "big"))
            os._exit(0)
        os.close(told)
        os.close(tells)
        return 0
    os.waitpid(between, 0)
    asking.sendall(os.read(told, 8))
    os.close(told)
    os.close(tells)
    return between


def _become(descriptors: list[int], told: _Told) -> None:
    """Take the standard streams, folder, arguments and environment of who asks, and run the module."""
    if told.has_session:
        os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup, under which the tests may run, has ignored
    *streams, folder = descriptors
    os.fchdir(folder)
    for place, each in enumerate(streams):
        os.dup2(each, place)
    for each in descriptors:
        os.close(each)
    sys.stdin, sys.stdout = (open(place, mode, closefd=False) for place, mode in enumerate("rw"))  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv[1:] = told.arguments
    if told.module == PARSER:
        del sys.path[0]  # it is started with -P
        del sys.modules[PARSER]  # or Python warns of a module that is run and was imported before
    else:
        sys.path[0] = str(Path.cwd())
    os.environ.clear()
    os.environ.update(told.environment)
    time.tzset()
    if told.module == BENCHMARKS:
        _fork_all()
    runpy.run_module(told.module, run_name="__main__", alter_sys=True)


def _fork_all() -> None:
    """Have what this process starts forked, too, by a process that is a fork of it now."""
    leash, held = os.pipe()
    with _opened_door() as door:
        if os.fork():
            os.close(leash)
            _have_forked(door.name)
            _start_by_fork()
            _Forked.prefix = [sys.executable, "-m"]
            return
        atexit.unregister(rmtree)
        os.close(held)
        os.dup2(leash, 0)
        os.close(leash)
        main(door)
        sys.exit()


def _tell_ends(*_: object) -> None:
    for child in list(_asking):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            with _asking.pop(child) as asking, suppress(BrokenPipeError):  # who asked may have been killed
                asking.sendall(os.waitstatus_to_exitcode(status).to_bytes(2, "big", signed=True))


if __name__ == "__main__":
    # A bridge imports the SDK, which a server imports only when it needs it.
    for name in {"offline", *(runner_of(command)[0] for command in COMMANDS)} - {"bridge"}:
        import_module(f"{PROGRAM}.commands.{name}")
    import_module(PARSER)
    import_module(f"{PROGRAM}.parsing")  # for each command, and only when one runs
    import_module(f"{PROGRAM}.main")
    gc.freeze()  # or each process collects at its end what was imported here
    main(socket.socket(fileno=int(sys.argv[1])))
