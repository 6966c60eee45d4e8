"""The exit codes of `greenroom`: 0, 1, 2, and the system's conventional ones (sysexits.h)."""

from __future__ import annotations

from typing import Final

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
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
    DAMAGED: "the store is damaged, or `repair` did not find all of it; see `greenroom verify` and `restore`",
    INTERNAL: "a fault of this program",
    NO_ACCESS: "a folder or a file cannot be made, opened, read or written, or has no room",
    STORE_FAILED: "a write failed for another reason than space, so the server stopped",
    OWNED: "another process owns the folder, and none can attach or the command needs it for itself",
    TOO_NEW: "the store was written by a newer version of this program",
    INTERRUPTED: "interrupted before it had begun to serve, or a second time (143 after SIGTERM)",
}
