"""Output of commands: results on standard output, messages on standard error."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False  # see `greenroom.runtime.base.lazy`
if TYPE_CHECKING:
    from typing import Any


def prepare() -> None:
    """Make the standard streams safe to use.

    Closed standard descriptors are opened on the null device. Otherwise the store's file could get the number
    of a closed one, and a message to standard error would go into the file. Paths with undecodable bytes are
    printed with escapes.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is the closed one
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def say(text: str) -> bool:
    """Print a result; return whether its reader (`head`, a pager) still reads."""
    if sys.stdout is None:
        return False
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise the interpreter would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def remark(text: str) -> None:
    """Print a message to standard error, beside the result."""
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")


def complain(command: str, sentence: str, code: int) -> int:
    """Print why a command failed; return the exit code."""
    remark(f"greenroom {command}: {sentence}")
    return code


def say_json(value: object) -> None:
    """Print a value as ASCII JSON, which cannot contain terminal escapes."""
    import json  # noqa: PLC0415 - hooks do not need it, and start their guard first

    import msgspec  # noqa: PLC0415 - as above

    def encode(each: object) -> Any:
        return json.loads(bytes(each)) if isinstance(each, msgspec.Raw) else str(each)

    say(json.dumps(msgspec.to_builtins(value, enc_hook=encode), indent=2))
