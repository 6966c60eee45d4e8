"""A valid call of every operation.

A new operation needs a line here only where none of `VALUES` fits a parameter that must be given, nor any
value of its type (`support.wrong_types`). After what is `prepared`, and `in_order`, each finds what it is
about.
"""

from __future__ import annotations

from typing import Any, Final, get_type_hints

import msgspec
from support.wrong_types import sample

from greenroom.actors import API_REQUESTS, parse_request
from greenroom.actors.core.operations import OPERATIONS

SESSION: Final = "s"
MADE: Final = "made"
"""The session that `create_session` makes."""
ENDED: Final = "ended"
"""A session that has ended."""
KEY: Final = "k"
TEXT: Final = "hello"
"""What stands wherever words are free."""
VALUES: Final[dict[str, Any]] = {
    "session_id": SESSION,
    "key": KEY,
    **dict.fromkeys(("purpose", "content", "query", "task", "text"), TEXT),
    "sender": "alice",
    "start_time": "2000-01-01T00:00:00Z",
    "end_time": "2100-01-01T00:00:00Z",
    "symbol": "document_of",
    "target": "document_of",
    "pattern": "function document_of",
    "path": "a.py",
    "vendor_filter": "*",
    "to_tool": "zed",
    "command": "ls",
    "name": "n",
    "source": '{"key":"i","content":"x"}',
    "preferences": {"theme": "dark"},
    "scopes": ["memory:read"],
    "rating": 1,
}
"""What a parameter is given that must be there, by its name."""
_IN_SESSION: Final = {"session_id": SESSION}
_OWN: Final = {"key": KEY, "session_id": SESSION}
_MEMORY: Final = {"key": "m"}
ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "create_session": {"session_id": MADE},
    "update_session": {"status": "paused"},
    "reopen_session": {"session_id": ENDED},
    "record_context": {"recent_searches": [TEXT]},
    **dict.fromkeys(("search_context", "restore_session", "migrate_session", "export_session"), _IN_SESSION),
    **dict.fromkeys(("set_memory", "get_memory", "delete_memory"), _OWN),
    **dict.fromkeys(("retrieve_memory", "list_memory_versions", "rate_memory", "forget_memory"), _MEMORY),
    "store_memory": {**_MEMORY, "content": TEXT},
    "update_memory": {**_MEMORY, "content": f"{TEXT} again"},
    "memory_search": {"query": TEXT},
    "ingest_documents": {"texts": [{"path": "a.md", "text": TEXT}]},
    "read_file": {"path": VALUES["path"]},
    "workflow_checkpoint": {"state": {"a": 1}},
}
"""What is given besides."""
ABOUT_NOTHING: Final = frozenset(
    name
    for name, each in API_REQUESTS.items()
    if {"memory_id", "key_id", "browser", "corpus", "chunk_ids"}
    & {field.name for field in msgspec.structs.fields(each) if field.required}
)
"""Those that must be given an id which is drawn where something is made: the samples' ones are of nothing."""
_FIRST: Final = ("create_session", "set_memory", "store_memory", "ingest_documents")
_LAST: Final = ("delete_memory", "forget_memory", "end_session", "erase_user")


def arguments(name: str, text: str = TEXT, **other: Any) -> dict[str, Any]:
    """Return the arguments of a call that is valid, with these words for `TEXT` and other ones as given."""
    request, hints = API_REQUESTS[name], get_type_hints(API_REQUESTS[name], include_extras=True)
    given = {
        field.name: VALUES[field.name] if field.name in VALUES else sample(hints[field.name])
        for field in msgspec.structs.fields(request)
        if field.required or (field.name == "session_id" and OPERATIONS[name].route == "session")
    }
    return {key: _said(value, text) for key, value in (given | ARGUMENTS.get(name, {})).items()} | other


def request(name: str, **other: Any) -> Any:
    """Return a request that is valid, with other arguments as given."""
    return parse_request(API_REQUESTS[name], msgspec.json.encode(arguments(name, **other)))


def prepared() -> list[Any]:
    """Return the requests that make what the samples are about."""
    made = [request("create_session", session_id=each) for each in (SESSION, ENDED)]
    return [*made, request("end_session", session_id=ENDED)]


def in_order() -> list[str]:
    """Return all operations: those that make something first, those that remove it last."""
    return [*_FIRST, *(name for name in API_REQUESTS if name not in {*_FIRST, *_LAST}), *_LAST]


def _said(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {key: _said(each, text) for key, each in value.items()}
    if isinstance(value, list):
        return [_said(each, text) for each in value]
    return value.replace(TEXT, text) if isinstance(value, str) else value
