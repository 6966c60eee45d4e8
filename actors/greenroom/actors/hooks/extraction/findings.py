"""The line of an output that tells its error."""

from __future__ import annotations

import re
from typing import Final

from greenroom.actors.hooks.findings import on_a_line

LONGEST: Final = 200
"""Characters of an error's line that are kept."""
_MOST: Final = 20_000
_LINE: Final = 400
_FIRST_OF: Final = (
    r"(?i:(?:\S{1,200}[:(][0-9]+[,:0-9)]*:? ?)?(?:fatal |compile )?error(?: ?\[?[A-Z]*[0-9]+\]?)?: .+)",
    r".{0,200}: (?:command not found|not found|No such file or directory|Permission denied)\b.*",
    r"(?:\w+: )?\S{1,200}:[0-9]+:[0-9]+: .+",
    r"(?:panic|fatal|FATAL|ERR!|npm ERR!|npm error|FAILED|--- FAIL|FAIL|Error|ERROR|error)\b:? .+",
    r"(?i:.{0,100}(?:No module named|Cannot find module|Missing script|Unknown command)\b.*)",
    r"make: \*\*\* .+",
)
_LAST_OF: Final = (
    r"E {3,}((?:[\w.]+\.)?\w*(?:Error|Exception|Warning)\b.*)",
    r"((?:[\w.$]+\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt)\b(?:: .*)?)",
)
_RAISED, _THROWN = (re.compile(each) for each in _LAST_OF)
_PATTERNS: Final = (
    (-1, _RAISED),
    (0, re.compile(f"({_FIRST_OF[0]})")),
    (-1, _THROWN),
    *((0, re.compile(f"({each})")) for each in _FIRST_OF[1:]),
)
"""The most telling first: its first line that fits says what is wrong, of a traceback the last one."""
_ASSERTS: Final = re.compile(r"\bassert\b|AssertionError")
"""What a test expected says nothing without the test."""
_CANNOT_RUN: Final = re.compile(
    r"not found|no module named|cannot find module|missing script|unknown command|not recognized|no such file"
    r"|unrecognized (?:option|argument|command)|no such command|unknown option",
    re.IGNORECASE,
)


def error_line(output: str) -> str:
    """Return the line that tells an error, of at most `LONGEST` characters; "" if there is none."""
    lines = [
        line.rstrip() if line.startswith("E ") else line.strip() for line in output[-_MOST:].splitlines()
    ]
    lines = [line for line in lines if 0 < len(line) <= _LINE and not _ASSERTS.search(line)]
    for which, pattern in _PATTERNS:
        found = [match[1] for line in lines if (match := pattern.fullmatch(line))]
        if found:
            return on_a_line(found[which], LONGEST)
    return ""


def cannot_run(error: str) -> bool:
    """Return whether an error says that a command could not even start."""
    return _CANNOT_RUN.search(error) is not None
