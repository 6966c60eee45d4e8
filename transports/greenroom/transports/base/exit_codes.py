"""The exit codes of `greenroom`, some from sysexits.h, and the errors behind them."""

from __future__ import annotations

import errno
import resource
from typing import Final

from greenroom.actors.search.embedding.errors import ModelMissingError
from greenroom.runtime import (
    GreenroomError,
    StoreDamagedError,
    StoreError,
    StoreFailedError,
    StoreIdleError,
    StoreOwnedError,
    StoreTooNewError,
)
from greenroom.transports.base.errors import FileAccessError

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
LEFT_OUT: Final = 3
DAMAGED: Final = 65
INTERNAL: Final = 70
NO_ACCESS: Final = 73
STORE_FAILED: Final = 74
OWNED: Final = 75
TOO_NEW: Final = 76
INTERRUPTED: Final = 130

MEANINGS: Final = {
    OK: "done; also after end of input, SIGINT or SIGTERM",
    FAILED: "the command was understood and could not be carried out",
    USAGE: "an option, a GREENROOM_ variable or the configuration file is wrong",
    LEFT_OUT: "`import` or `export` took what is sound and left out other records, which it names",
    DAMAGED: "the store is damaged, or `repair` did not find all of it; see `greenroom verify` and `restore`",
    INTERNAL: "a fault of this program",
    NO_ACCESS: "a folder or a file cannot be made, opened, read or written, or has no room",
    STORE_FAILED: "a write failed for another reason than space, so the server stopped",
    OWNED: "another process owns the folder, and none can attach or the command needs it for itself",
    TOO_NEW: "the store was written by a newer version of this program",
    INTERRUPTED: "interrupted before it had begun to serve, or a second time (143 after SIGTERM)",
}

# The first match counts: subclasses before their base, and the gravest first.
_CODES: Final[tuple[tuple[type[GreenroomError], int], ...]] = (
    (StoreOwnedError, OWNED),
    (StoreTooNewError, TOO_NEW),
    (StoreDamagedError, DAMAGED),
    (StoreFailedError, STORE_FAILED),
    (StoreIdleError, FAILED),
    (StoreError, NO_ACCESS),
    (FileAccessError, NO_ACCESS),
    (ModelMissingError, NO_ACCESS),
    (GreenroomError, FAILED),
)
_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})


def exit_code_for(errors: list[BaseException]) -> tuple[int, str] | None:
    """Return the exit code and the message for errors that were raised together.

    The gravest error decides. Return None if an error is unexpected.
    """
    verdicts = []
    for error in map(_as_known_error, errors):
        rank = next((n for n, (kind, _) in enumerate(_CODES) if isinstance(error, kind)), None)
        if rank is None:
            return None
        verdicts.append((rank, str(error)))
    rank, sentence = min(verdicts)
    return _CODES[rank][1], sentence


def _as_known_error(error: BaseException) -> BaseException:
    """Convert a lack of file descriptors to an error with a message."""
    if not isinstance(error, OSError) or error.errno not in _NO_DESCRIPTORS:
        return error
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return StoreError(
        f"there are not enough file descriptors ({error.strerror}; this process may have {most}); "
        "allow it more with `ulimit -n`"
    )
