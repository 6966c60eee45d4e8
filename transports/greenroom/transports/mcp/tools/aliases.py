"""Older names of tools: what each is called now, and how its parameters read there.

A client written for one of the older systems calls these, so they stay callable; they are listed
under the profile of their system alone (`tool_profiles`), and every answer says what to call instead.
`ALIASES` is the whole truth; a name that a tool of today has as well (`told_by`) has its older
meaning where that parameter is given, and under a profile that says so also where nothing is
given that only the tool of today takes.
"""

from __future__ import annotations

import functools
from typing import Any, get_args, get_type_hints

import msgspec

from greenroom.actors import REQUESTS, parse_request
from greenroom.actors.core.validation.coercion import MOST_CHANGES
from greenroom.actors.memories.recall.older_calls import OLDER_SEARCHES, OlderCall

META_KEY = "greenroom/deprecated"
"""Under this key of ``_meta`` an answer tells the name's successor."""


class Alias(OlderCall, frozen=True, eq=False, kw_only=True):
    """An older name of a tool.

    Attributes:
        successor: The tool that carries it out.
        told_by: The parameter that tells this meaning from today's, where a tool has the name now.
        is_usual: Whether it is meant also without that parameter, unless another one tells that it is not.
    """

    successor: str
    told_by: str | None = None
    is_usual: bool = False

    @property
    def request(self) -> type[msgspec.Struct]:
        """The struct whose fields are its parameters, with the limits that the successor's have."""
        return REQUESTS[self.successor] if self.takes is None else _request(self)

    @property
    def meta(self) -> dict[str, Any]:
        """What ``_meta`` of its answers says."""
        hint = self.advice(self.successor)
        return {META_KEY: {"name": self.name, "successor": self.successor, "hint": hint}}

    def matches(self, arguments: bytes) -> bool:
        """Return whether a call with these arguments means the older tool."""
        if self.told_by is None:
            return True
        if self.told_by.encode() not in arguments and not self.is_usual:
            return False
        try:
            given = msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False  # it is refused for that, in today's words
        return self.told_by in given or (self.is_usual and given.keys() <= (self.takes or {}).keys())

    def parse(self, arguments: bytes) -> Any:
        """Return the successor's request for a call's arguments.

        Raises:
            Refusal: the arguments do not fit; it names the older parameter.
        """
        given = parse_request(self.request, arguments, most_changes=MOST_CHANGES)
        if self.takes is None:
            return msgspec.structs.replace(given, **self.fixed) if self.fixed else given
        return REQUESTS[self.successor](**self.translated(msgspec.structs.asdict(given)))


ALIASES = (
    *(
        Alias(
            **msgspec.structs.asdict(search),
            successor="memory_search",
            told_by="n_results" if search.name in REQUESTS else None,
        )
        for search in OLDER_SEARCHES
    ),
    Alias(name="omn_store_memory", successor="store_memory"),
    Alias(name="omn_retrieve_memory", successor="retrieve_memory"),
    Alias(name="omn_update_memory", successor="update_memory"),
    Alias(name="omn_forget_memory", successor="forget_memory"),
    Alias(name="omn_list_memories", successor="list_memories"),
    Alias(name="omn_memory_stats", successor="memory_stats"),
    Alias(name="omn_export_memories", successor="export_memories"),
    Alias(name="omn_import_memories", successor="import_memories"),
    Alias(name="omn_set_preferences", successor="set_preferences"),
    Alias(name="omn_create_session", successor="start_session"),
    Alias(name="omn_start_session", successor="start_session"),
    Alias(name="omn_restore_session", successor="restore_session"),
    Alias(name="omn_get_session_context", successor="get_session_context"),
    Alias(name="omn_migrate_session", successor="migrate_session"),
    Alias(name="omn_export_session", successor="export_session"),
    Alias(name="omn_end_session", successor="end_session"),
    Alias(name="omn_search_code_semantic", successor="search_code_semantic"),
    Alias(name="omn_semantic_search", successor="search_code_semantic"),
    Alias(name="omn_symbol_search", successor="symbol_search"),
    Alias(name="omn_outline", successor="outline"),
    Alias(name="omn_dependency_search", successor="dependency_search"),
    Alias(name="omn_similar_files", successor="similar_files"),
    Alias(name="omn_code_search", successor="code_search"),
    Alias(name="omn_read_file", successor="read_file"),
    Alias(name="omn_compress_text", successor="compress_text"),
    Alias(name="omn_get_stats", successor="get_stats"),
    Alias(name="omn_health_check", successor="health_check"),
    Alias(name="omn_record_workflow_step", successor="record_workflow_step"),
    Alias(name="omn_get_workflow_patterns", successor="get_workflow_patterns"),
    Alias(name="omn_suggest_next_action", successor="suggest_next_action"),
    Alias(name="omn_workflow_checkpoint", successor="workflow_checkpoint"),
    Alias(name="omn1_read", successor="read_file"),
)
"""Every older name."""


@functools.lru_cache(maxsize=64)  # each offer with other defaults has its own
def _request(alias: Alias) -> type[msgspec.Struct]:
    assert alias.takes is not None, "one with the same parameters has the successor's request"
    hints = get_type_hints(REQUESTS[alias.successor], include_extras=True)
    defaults = {field.name: field.default for field in msgspec.structs.fields(REQUESTS[alias.successor])}
    members: list[Any] = []
    for old, new in alias.takes.items():
        if old in alias.required:
            members.append((old, _without_none(hints[new])))
        else:
            members.append((old, hints[new], alias.defaults.get(old, defaults[new])))
    return msgspec.defstruct(
        f"Older_{alias.name}", members, frozen=True, kw_only=True, forbid_unknown_fields=True
    )


def _without_none(hint: Any) -> Any:
    """Return a type that admits null without it."""
    choices = get_args(hint)
    return choices[0] if len(choices) == 2 and choices[1] is type(None) else hint  # noqa: PLR2004
