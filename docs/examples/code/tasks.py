"""Ten tasks about Greenroom's own source, and the line that must be read for each."""

from typing import Literal, NamedTuple


class Task(NamedTuple):
    """A task.

    Attributes:
        query: A question, or the name of a symbol.
        path: The file that has the line.
        line: What must be read.
        about: What is looked for: where something is done, a symbol's definition, or its callers.
    """

    query: str
    path: str
    line: str
    about: Literal["question", "definition", "callers"] = "question"


TASKS = (
    Task(
        "Where is a request refused that a web page of another origin sends?",
        "transports/auth/origin_check.py",
        "if not _origin_passes(value, allowed):",
    ),
    Task(
        "Which names of files are left out since they may hold secrets?",
        "actors/knowledge/ingest/files/secret_files.py",
        "def is_secret_file(",
    ),
    Task(
        "Where is the memory of a process that parses files limited?",
        "actors/knowledge/ingest/parsing/parser_process.py",
        "_limit(resource.RLIMIT_AS, MAX_MEMORY)",
    ),
    Task(
        "How long must a client wait whose rate limit has no token left?",
        "actors/core/keys/rate_limits.py",
        "wait = full_at - now - self._room",
    ),
    Task(
        "When is an actor that fails again and again put into quarantine?",
        "runtime/base/supervision.py",
        "return Quarantine(len(failures))",
    ),
    Task(
        "How is a row of the audit journal linked to the one before it?",
        "runtime/journal/chain.py",
        "return hmac.digest(self.link, before + number.to_bytes(NUMBER_BYTES) + row",
    ),
    Task(
        "What if an idempotency key comes again with other arguments?",
        "runtime/kernel/idempotency.py",
        "if first.idempotency != request:",
    ),
    Task("TokenBucket", "actors/core/keys/rate_limits.py", "self._interval = _MINUTE / rate", "definition"),
    Task(
        "resolve_file",
        "actors/knowledge/workspaces/places.py",
        "root = max((each for each in roots if is_below(path, each)), key=len, default=None)",
        "definition",
    ),
    Task(
        "check_root",
        "actors/knowledge/workspaces/tools/workspace_of.py",
        "found[check_root(each, closed)] = None",
        "callers",
    ),
)
