"""Memories: a filtered list, lists that await a decision, and each memory with its history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec import UNSET

from greenroom.actors import (
    BrowseMemories,
    BrowseNamespaces,
    InspectMemory,
    ListForgotten,
    ListMemoryPairs,
    MemoryFilters,
    StoreMemory,
    parse_request,
)
from greenroom.actors.core.auth.namespaces import root_of
from greenroom.actors.core.auth.policy import usual_scope
from greenroom.actors.core.resources.resource_uris import memories_uri
from greenroom.actors.sessions.requests.hook_messages import kept_id
from greenroom.runtime import Refusal
from greenroom.transports.web.console.memory_scopes import readers_of
from greenroom.transports.web.console.rendering import json_text, memory_beginning, path_part
from greenroom.transports.web.console.view import Form, Place, Reader, View
from greenroom.transports.web.console.views.memory_pairs import shown_pairs
from greenroom.transports.web.console.views.text_differences import differences

SHOWN: Final = 100_000
"""The most characters of a content that a page shows without `whole`."""
LISTS: Final = {
    "duplicates": "Near-duplicates",
    "contradictions": "Contradictions",
    "stale": "Stale",
    "unreviewed": "Unreviewed",
    "forgotten": "Forgotten",
}
"""Lists of memories that await a decision, and of forgotten memories, by the end of their path."""
_WHY: Final = {
    "unused": "Not used for 90 days",
    "disliked": "Rated low",
    "expiring": "Expiring within 7 days",
}
_ORDER_OF: Final = {"unused": "untouched", "disliked": "worst", "expiring": "expiring"}
ORDERS: Final = {
    "newest": "newest first",
    "oldest": "oldest first",
    "untouched": "longest untouched first",
    "used": "most used first",
    "worst": "lowest rated first",
    "expiring": "expiring first",
}
TYPES: Final = ("semantic", "episodic", "procedural")
AGES: Final = {
    "day": "today",
    "week": "this week",
    "month": "this month",
    "year": "this year",
    "older": "older",
}


_MOST_OTHERS: Final = 30


class Choice(NamedTuple):
    """One value of a filter."""

    label: str
    memories: int
    query: Mapping[str, Any]  # the URL parameters after a click on this value
    chosen: bool  # whether this value is active now
    depth: int = 0  # the depth of this value in a tree


async def memories(reader: Reader, place: Place) -> View:
    """Return the list of memories, a list that awaits decisions, or one memory."""
    if not place.rest:
        return await _list(reader, place)
    if place.rest == "new":
        return await _new(reader, place)
    return await (_work_list(reader, place) if place.rest in LISTS else _memory(reader, place))


async def _work_list(reader: Reader, place: Place) -> View:
    """Return a list that awaits decisions, or the list of forgotten memories."""
    if place.rest in {"duplicates", "contradictions"}:
        kind: Any = "duplicates" if place.rest == "duplicates" else "conflicts"
        pairs = ListMemoryPairs(namespace=place.get("namespace"), kind=kind, cursor=place.get("cursor"))
        page = await reader.ask(pairs)
        others: list[str] = []
        if not page.pairs and not page.next_cursor:
            roots = (await reader.ask(BrowseNamespaces(limit=_MOST_OTHERS))).namespaces
            others = [each for each in roots if each != root_of(page.namespace)]
        return _paged("memory_pairs.html", place, page, shown=shown_pairs(page.pairs), others=others)
    if place.rest == "stale":
        why = place.get("why") or "unused"
        return await _list(reader, place, state=why, order=_ORDER_OF.get(why))
    if place.rest == "unreviewed":
        return await _list(reader, place, unreviewed=True)
    forgotten = ListForgotten(namespace=place.get("namespace"), cursor=place.get("cursor"))
    return _paged("memory_forgotten.html", place, await reader.ask(forgotten))


async def _list(
    reader: Reader,
    place: Place,
    *,
    state: str | None = None,
    order: str | None = None,
    unreviewed: bool | None = None,
) -> View:
    filters = MemoryFilters(
        tags=place.all("tag") or None,
        tag_match="all",
        kind=cast("Any", place.get("type")),
        author=place.name("author"),
        conversation_id=place.name("conversation"),
        superseded=place.get("superseded") is not None,
        unreviewed=unreviewed,
    )
    request = BrowseMemories(
        namespace=place.get("namespace"),
        filters=filters,
        text=place.get("q"),
        state=cast("Any", state),
        age=cast("Any", place.get("age")),
        order=cast("Any", place.get("order") or order or "newest"),
        cursor=place.get("cursor"),
    )
    page = await reader.ask(request)
    roots = await reader.ask(BrowseNamespaces())
    values = {
        "page": page,
        "roots": roots,
        "lists": LISTS,
        "work": place.rest,
        "why": _WHY,
        "state": state,
        "order": request.order,
        "orders": ORDERS,
        "types": TYPES,
        "ages": AGES,
        "crumbs": _crumbs(page.namespace),
        "facets": _facets(page.facets, page.namespace, place),
        "given": {**place.query, "cursor": None},
    }
    title = LISTS.get(place.rest, "Memories")
    return View("memories.html", title, values, topics=(memories_uri(page.namespace),))


def _paged(template: str, place: Place, page: Any, **more: Any) -> View:
    """Return a list in pages whose only filter is a namespace."""
    values = {
        "page": page,
        "lists": LISTS,
        "work": place.rest,
        "crumbs": _crumbs(page.namespace),
        "given": {**place.query, "cursor": None},
        **more,
    }
    return View(template, LISTS[place.rest], values, topics=(memories_uri(page.namespace),))


async def _memory(reader: Reader, place: Place) -> View:
    found = await reader.ask(InspectMemory(memory_id=place.rest))
    memory = found.memory
    text, number = _text(memory), place.number("version")
    values: dict[str, Any] = {
        "found": found,
        "memory": memory,
        "lists": LISTS,
        "work": "",
        "crumbs": _crumbs(memory.namespace),
        "text": text if place.get("whole") else text[:SHOWN],
        "is_cut": len(text) > SHOWN and not place.get("whole"),
        "metadata": _metadata(memory),
        "sessions": _sessions(memory),
        "types": TYPES,
        "compared": None,
        "given": {},
    }
    if number is not None:
        request = InspectMemory(memory_id=place.rest, version=number)
        older = (await reader.ask(request)).memory
        values["compared"] = {
            "older": older,
            "text": differences(_text(older), text),
            "fields": _changed_fields(older, memory),
        }
    title = memory_beginning(memory.content, memory.key).title
    return View("memory.html", title, values, topics=(memories_uri(memory.namespace),))


LONGEST_TYPED: Final = 20_000
"""The most characters of a text in the form for a new memory."""
SCOPES: Final = ("private", "shared", "public")


async def _new(
    reader: Reader, place: Place, typed: Mapping[str, str] | None = None, mistake: str = ""
) -> View:
    """Return the form for a new memory, or what was typed and its refusal."""
    reader.check_scope(StoreMemory)
    roots = await reader.ask(BrowseNamespaces())
    typed = {"namespace": place.get("namespace") or "", **(typed or {})}
    namespace, user = typed["namespace"], reader.who.user
    values = {
        "typed": typed,
        "mistake": mistake,
        "namespaces": roots.namespaces,
        "types": TYPES,
        "scopes": {scope: readers_of(scope, namespace, user) for scope in SCOPES},
        "usually": readers_of("private" if not namespace else usual_scope(namespace), namespace, user),
        "longest": LONGEST_TYPED,
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if mistake else HTTPStatus.OK
    return View("memory_new.html", "Add a memory", values, status=status)


async def _store(reader: Reader, place: Place, typed: Mapping[str, str]) -> str | View:
    """Store a memory that a person typed; return the path of its page."""
    reader.check_scope(StoreMemory)
    given: dict[str, Any] = {
        name: text for name in ("namespace", "kind", "scope", "key") if (text := typed.get(name))
    }
    tags = [tag for each in typed.get("tags", "").split(",") if (tag := each.strip())]
    content = typed.get("content", "").replace("\r\n", "\n").strip("\n")
    content = content if content.strip() else ""
    try:
        request = parse_request(StoreMemory, msgspec.json.encode({"content": content, "tags": tags, **given}))
        stored = await reader.ask(request)
    except Refusal as refusal:
        return await _new(reader, place, typed, str(refusal))
    return f"memories/{path_part(stored.memory_id)}"


store_form: Final = Form(("content", "tags", "kind", "namespace", "scope", "key"), _store)
"""The form for a new memory."""


def _text(memory: Any) -> str:
    """Return the content of a memory, or its value as indented JSON."""
    return memory.content if memory.content is not None else _pretty(memory.value)


def _metadata(memory: Any) -> str:
    """Return metadata as indented JSON; leave large metadata unchanged."""
    if memory.metadata is UNSET or len(bytes(memory.metadata)) <= SHOWN:
        return _pretty(memory.metadata)
    return bytes(memory.metadata).decode()


def _pretty(given: Any) -> str:
    return "" if given is UNSET else json_text(given, whole=True)


def _sessions(memory: Any) -> Mapping[str, str]:
    """Return the sessions that a memory or its metadata names, with their ids here."""
    found = {memory.session_id: memory.session_id} if memory.session_id else {}
    metadata = {} if memory.metadata is UNSET else msgspec.json.decode(bytes(memory.metadata))
    provenance = metadata.get("provenance")
    if not isinstance(provenance, dict):
        provenance = {}
    client, session = provenance.get("client"), provenance.get("session")
    if isinstance(client, str) and isinstance(session, str):  # from a hook, with the client's own session id
        found.setdefault(session, kept_id(client, session, root_of(memory.namespace)))
    for holder in (metadata, provenance):
        for name in ("session_id", "session"):
            if isinstance(named := holder.get(name), str) and named:
                found.setdefault(named, named)
    return found


def _changed_fields(older: Any, newer: Any) -> list[tuple[str, str, str]]:
    """Return the other fields in which two versions differ, with both values."""
    fields: dict[str, Callable[[Any], str]] = {
        "Tags": lambda each: ", ".join(each.tags),
        "Type": lambda each: each.kind,
        "Importance": lambda each: f"{each.importance:.3g}",
        "Expires": lambda each: "" if each.expires_at is None else each.expires_at.isoformat(),
        "Metadata": _metadata,
        "Reviewed": lambda each: "no" if each.unreviewed else "yes",
    }
    both = [(name, show(older), show(newer)) for name, show in fields.items()]
    return [each for each in both if each[1] != each[2]]


def _crumbs(namespace: str) -> list[tuple[str, str]]:
    """Return a namespace's root and each level below, each with its full name."""
    parts = namespace.split(":")
    names = [":".join(parts[:count]) for count in range(2, len(parts) + 1)]
    return [(name if at == 0 else parts[at + 1], name) for at, name in enumerate(names)]


def _facets(facets: Any, namespace: str, place: Place) -> dict[str, list[Choice]]:
    """Return the filters by heading; each value has the URL that switches it."""
    found = {
        "Namespaces": _tree(facets.by_namespace, namespace, place),
        "Types": _choices("type", facets.by_kind, place),
        "Ages": [
            choice._replace(label=AGES[choice.label])
            for choice in _choices("age", facets.by_age, place)
            if choice.memories or choice.chosen
        ],
        "Tags": _choices("tag", facets.by_tag, place),
        "Authors": _choices("author", facets.by_author, place),
    }
    return {title: choices for title, choices in found.items() if choices}


def _choices(name: str, counts: Mapping[str, int], place: Place) -> list[Choice]:
    chosen = place.all(name)
    missing = {value: 0 for value in chosen if value not in counts}
    return [
        Choice(value, count, _with(place, name, _toggle(chosen, value, name)), value in chosen)
        for value, count in {**counts, **missing}.items()
    ]


def _toggle(chosen: Sequence[str], value: str, name: str) -> list[str]:
    if value in chosen:
        return [each for each in chosen if each != value]
    return [*chosen, value] if name == "tag" else [value]


def _with(place: Place, name: str, values: list[str]) -> Mapping[str, Any]:
    return {**place.query, name: values, "cursor": None}


def _tree(counts: Mapping[str, int], namespace: str, place: Place) -> list[Choice]:
    """Return the namespaces below one, each with the number of memories there and below."""
    sums: dict[str, int] = {}
    above = namespace.count(":")
    for name, count in counts.items():
        parts = name.split(":")
        for depth in range(above + 1, len(parts) + 1):
            part = ":".join(parts[:depth])
            sums[part] = sums.get(part, 0) + count
    return [
        Choice(
            name if name == namespace else name.rpartition(":")[2],
            sums[name],
            _with(place, "namespace", [name]),
            name == namespace,
            min(name.count(":") - above, 6),
        )
        for name in sorted(sums)
    ]
