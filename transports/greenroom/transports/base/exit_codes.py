"""Which exit code an error on purpose stands for, in this process or told over the control socket."""

from __future__ import annotations

import errno
import resource
from typing import Final

from greenroom.actors.embedding.errors import ModelMissingError
from greenroom.runtime import (
    GreenroomError,
    StoreDamagedError,
    StoreError,
    StoreFailedError,
    StoreIdleError,
    StoreOwnedError,
    StoreTooNewError,
)
from greenroom.transports.base import exits


class NoAccessError(GreenroomError):
    """A file that a command needs cannot be opened, read or made; the sentence says which and why."""


# Leaves stand before their base, and the gravest before the others, for the first match counts.
_CODES: Final[tuple[tuple[type[GreenroomError], int], ...]] = (
    (StoreOwnedError, exits.OWNED),
    (StoreTooNewError, exits.TOO_NEW),
    (StoreDamagedError, exits.DAMAGED),
    (StoreFailedError, exits.STORE_FAILED),
    (StoreIdleError, exits.FAILED),
    (StoreError, exits.NO_ACCESS),
    (NoAccessError, exits.NO_ACCESS),
    (ModelMissingError, exits.NO_ACCESS),
    (GreenroomError, exits.FAILED),
)
_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})


def judge(errors: list[BaseException]) -> tuple[int, str] | None:
    """The exit code and the sentence for errors that came together.

    Returns:
        Those of the gravest one, or None when any of them was not on purpose.
    """
    verdicts = []
    for error in map(_on_purpose, errors):
        rank = next((n for n, (kind, _) in enumerate(_CODES) if isinstance(error, kind)), None)
        if rank is None:
            return None
        verdicts.append((rank, str(error)))
    rank, sentence = min(verdicts)
    return _CODES[rank][1], sentence


def _on_purpose(error: BaseException) -> BaseException:
    """The want of descriptors, which can come from anywhere, as an error with a sentence."""
    if not isinstance(error, OSError) or error.errno not in _NO_DESCRIPTORS:
        return error
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return StoreError(
        f"there are not enough file descriptors ({error.strerror}; this process may have {most}); "
        "allow it more with `ulimit -n`"
    )
