"""The names of tool profiles: which tools a client is listed, by the job it does.

What each one lists is a matter of the protocol (`greenroom.transports`); a key only keeps the names.
"""

from typing import Final, Literal, get_args

ToolProfileName = Literal[
    "core", "all", "knowledge", "code", "shared-context", "services", "memory-search", "universal-memory"
]

TOOL_PROFILES: Final[tuple[str, ...]] = get_args(ToolProfileName)
