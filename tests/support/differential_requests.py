"""Requests of clients, proper, careless and hostile, for the differential test.

What stands first in a choice is what a failing example shrinks to.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

ENVELOPE = "io.modelcontextprotocol/"
VERSION, INFO, CAPABILITIES = (
    f"{ENVELOPE}protocolVersion",
    f"{ENVELOPE}clientInfo",
    f"{ENVELOPE}clientCapabilities",
)
MODERN = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
PROPER = {VERSION: MODERN, INFO: {"name": "tester", "version": "1"}, CAPABILITIES: {}}

CURSOR, MESSAGE, SESSION, MEMORY = "@cursor", "@message", "@session", "@memory"
"""They stand for what the server said last: a cursor, a message's, a made-up session's, a memory's id."""

FRESH = "@fresh"
"""An id that no other request of the conversation has."""

Message = dict[str, Any]


# -- values ------------------------------------------------------------------------------------------

texts = st.sampled_from(
    ["", "s", "k", "é", "\0", "a b", "../..", "@", "x" * 300, "\U0001f600", "7"]
) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.sampled_from([0, 1, -1, 7, 50, 1_000, 2**31, 2**53 + 1, 10**20, 0.5, 1.0, -0.0, 1e308])
scalars: st.SearchStrategy[Any] = st.none() | st.booleans() | numbers | texts
odd: st.SearchStrategy[Any] = scalars | st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
uris = st.sampled_from(
    [
        *["session://s", "agent://tester/memory"] * 4,
        "agent://other/memory",
        "session://gone",
        "session://" + SESSION,
        "session://s/",
        "file:///etc/passwd",
        "",
        "no uri",
        "session://é",
    ]
)
cursors = st.sampled_from([CURSOR, "", "x", "W10="])


def mostly(
    right: st.SearchStrategy[Any], wrong: st.SearchStrategy[Any], *, odds: int = 5
) -> st.SearchStrategy[Any]:
    """Return values of the first kind, and one in so many of the second."""
    return st.integers(0, odds - 1).flatmap(lambda dice: wrong if dice == odds - 1 else right)


def members(
    required: dict[str, st.SearchStrategy[Any]], optional: dict[str, st.SearchStrategy[Any]] | None = None
) -> st.SearchStrategy[Message]:
    """Return objects that are mostly right: now and then a member is missing, odd or one too many."""
    right = st.fixed_dictionaries(required, optional=optional or {})
    names = st.sampled_from([*required, *(optional or {}), "more", "_meta"]) | texts

    @st.composite
    def wrong(draw: st.DrawFn) -> Message:
        made = dict(draw(right))
        name = draw(names)
        if draw(st.booleans()):
            made[name] = draw(odd)
        else:
            made.pop(name, None)
        return made

    return mostly(right, wrong())


# -- params of the methods ---------------------------------------------------------------------------

sessions = mostly(st.just("s"), st.sampled_from([SESSION, "gone", ""]))
keys = mostly(st.just("k"), st.sampled_from(["k2", "", "é"]))
limits = st.sampled_from([50, 1, 2, 0, -1, 10_000])
namespaces = mostly(st.just("team:crew"), st.sampled_from(["user:other", "user", "", "project:p:q"]))
memories = mostly(st.just(MEMORY), texts)
queries = mostly(st.sampled_from(["hello", "harbour"]), texts)
ARGUMENTS: dict[str, st.SearchStrategy[Message]] = {
    "get_memory": members({"key": keys}, {"session_id": sessions}),
    "set_memory": members(
        {"key": keys, "value": odd},
        {"session_id": sessions, "expires_in": numbers, "idempotency_key": st.sampled_from(["once", ""])},
    ),
    "add_message": members(
        {"session_id": sessions, "content": mostly(st.just("hello world"), texts)},
        {
            "visibility": st.sampled_from(["public", "private", "agent_only", "secret"]),
            "metadata": odd,
            "parent_message_id": st.sampled_from([MESSAGE, 1]),
            "idempotency_key": st.just("once"),
        },
    ),
    "get_messages": members(
        {"session_id": sessions},
        {"limit": limits, "cursor": cursors, "since_id": st.sampled_from([MESSAGE, 0])},
    ),
    "get_session": members({"session_id": sessions}),
    "create_session": members(
        {"purpose": texts}, {"session_id": sessions, "metadata": odd, "project_id": texts}
    ),
    "list_sessions": members({}, {"limit": limits, "cursor": cursors, "status": texts}),
    "update_session": members(
        {"session_id": sessions}, {"status": st.sampled_from(["paused", "terminated", "x"]), "state": odd}
    ),
    "search_context": members(
        {"session_id": sessions, "query": mostly(st.just("hello"), texts)}, {"limit": limits}
    ),
    "store_memory": members(
        {"content": mostly(st.just("hello harbour"), texts)},
        {"key": keys, "namespace": namespaces, "metadata": odd, "expected_version": st.sampled_from([0, 1])},
    ),
    "update_memory": members(
        {"content": texts}, {"memory_id": memories, "key": keys, "namespace": namespaces}
    ),
    "memory_search": members(
        {"query": queries}, {"limit": limits, "namespace": namespaces, "time_expr": texts}
    ),
    "retrieve_memory": members({"query": queries}, {"n_results": limits, "limit": limits, "key": keys}),
    "omn_retrieve_memory": members({"query": queries}, {"limit": limits}),
    "recall_memory": members({"query": queries}, {"n_results": limits, "time_expr": texts}),
    "exact_match_retrieve": members({"content": queries}),
    "list_memories": members({}, {"limit": limits, "cursor": cursors, "max_tokens": limits}),
    "forget_memory": members({"memory_id": memories}, {"confirm": st.booleans()}),
    "search_by_sender": members({"session_id": sessions, "sender": st.sampled_from(["tester", "nobody"])}),
    "search_by_timerange": members(
        {"session_id": sessions, "start": texts | st.just("2020-01-01T00:00:00Z"), "end": texts}
    ),
    "list_memory": members({}, {"limit": limits, "cursor": cursors, "prefix": keys}),
    "delete_memory": members({"key": keys}),
    "hold": members({"text": texts}),
}
FREQUENT = ("get_memory", "set_memory", "add_message", "get_messages", "hold")
odd_names = st.sampled_from(["", "get_memry", "GET_MEMORY", "é", "x" * 300, "get_memory "]) | texts
extras = {
    "task": st.sampled_from([{}, {"ttl": 5}]) | odd,
    "inputResponses": st.just({}) | odd,
    "requestState": st.just("state") | odd,
}


@st.composite
def call_params(draw: st.DrawFn) -> Message:
    """Return params of ``tools/call``."""
    name = draw(mostly(st.sampled_from(FREQUENT) | st.sampled_from([*ARGUMENTS]), odd_names, odds=12))
    arguments = ARGUMENTS.get(name, st.just({}))
    made: Message = {"name": name, "arguments": draw(arguments)}
    change = draw(st.integers(0, 11))
    if change == 11:
        made[draw(st.sampled_from(["name", "arguments", "more", *extras]))] = draw(odd)
    elif change == 10:
        del made[draw(st.sampled_from(["name", "arguments"]))]
    elif change == 9:
        made |= draw(st.fixed_dictionaries({}, optional=extras))
    elif change == 8:
        made["arguments"] = draw(odd)
    return made


versions = st.sampled_from([*HANDSHAKE, MODERN, "2024-10-07", "1999-01-01", "", "2025-11-25 "])
flags: st.SearchStrategy[Any] = st.just({}) | st.just({"listChanged": True}) | odd
icons = st.lists(
    members(
        {"src": st.just("https://example.org/a.png")},
        {"mimeType": texts, "sizes": st.lists(texts, max_size=2), "theme": st.sampled_from(["light", "dim"])},
    ),
    max_size=2,
)
infos = members(
    {"name": mostly(st.just("tester"), texts), "version": st.just("1")},
    {
        "title": texts,
        "description": texts,
        "websiteUrl": st.just("https://example.org") | texts,
        "icons": icons,
    },
)
capabilities = mostly(
    st.sampled_from(
        [{}, {"roots": {"listChanged": True}, "sampling": {}}, {"elicitation": {}, "experimental": {}}]
    ),
    members(
        {},
        {
            "roots": flags,
            "sampling": members({}, {"tools": flags, "context": flags}),
            "elicitation": members({}, {"form": flags, "url": flags}),
            "experimental": st.dictionaries(texts, flags, max_size=2) | odd,
            "extensions": st.dictionaries(texts, flags, max_size=2) | odd,
            "tasks": members({}, {"list": flags, "cancel": flags, "requests": flags}),
        },
    ),
)
filters = members(
    {}, {"resourceSubscriptions": st.lists(uris, max_size=3), "toolsListChanged": st.booleans(), "more": odd}
)
pages = members({}, {"cursor": cursors})
references = st.sampled_from(
    [
        {"type": "ref/resource", "uri": "session://{session_id}"},
        {"type": "ref/resource", "uri": "agent://{agent_id}/memory"},
        {"type": "ref/prompt", "name": "p"},
        {"type": "ref/prompt", "name": "p", "title": 5},
        {"type": "ref/other"},
    ]
)
PARAMS: dict[str, st.SearchStrategy[Message]] = {
    "ping": members({}),
    "tools/call": call_params(),
    "tools/list": pages,
    "resources/read": members({"uri": uris}),
    "resources/list": pages,
    "resources/templates/list": pages,
    "resources/subscribe": members({"uri": uris}),
    "resources/unsubscribe": members({"uri": uris}),
    "subscriptions/listen": members({"notifications": filters}),
    "server/discover": members({}),
    "initialize": members({"protocolVersion": versions, "capabilities": capabilities, "clientInfo": infos}),
    "completion/complete": members(
        {"ref": references, "argument": members({"name": st.just("session_id"), "value": texts})},
        {"context": odd},
    ),
    "logging/setLevel": members({"level": st.sampled_from(["info", "loud"])}),
    "prompts/list": pages,
    "prompts/get": members({"name": texts}, {"arguments": odd}),
    "roots/list": members({}),
    "sampling/createMessage": members({"messages": odd, "maxTokens": numbers}),
    "elicitation/create": members({"message": texts, "requestedSchema": odd}),
    "tasks/list": pages,
    "tasks/get": members({"taskId": texts}),
    "rpc.discover": members({}),
    "notifications/initialized": members({}),
    "notifications/cancelled": members({"requestId": st.just(1)}),
}
odd_methods = st.sampled_from(["", "tools/cal", "Tools/call", " ping", "x" * 200, "x" * 201]) | texts
HOT = (
    "resources/subscribe",
    "subscriptions/listen",
    "ping",
    "tools/list",
    "resources/read",
    "resources/list",
)
methods = mostly(
    st.sampled_from(["tools/call"] * 9 + [*HOT]), mostly(st.sampled_from([*PARAMS]), odd_methods), odds=4
)

# -- `_meta` -----------------------------------------------------------------------------------------

MISSING: Any = object()
tokens: st.SearchStrategy[Any] = st.sampled_from([7, "t", "", 0, -1, 2**70, 1.5, True, None, [], {}])
deadlines: st.SearchStrategy[Any] = st.sampled_from([500, 90_000, 0.5, 0, -1, "5", True, None, [], 10**400])
BESIDES = (
    "progressToken",
    f"{ENVELOPE}logLevel",
    f"{ENVELOPE}related-task",
    f"{ENVELOPE}serverInfo",
    "traceparent",
)
infinite = st.dictionaries(texts, odd, max_size=2)


def odd_metas() -> st.SearchStrategy[Any]:
    """Return what may stand in ``_meta`` without an envelope."""
    return st.one_of(
        st.builds(lambda token: {"progressToken": token}, tokens),
        st.builds(lambda deadline: {"greenroom/deadline_ms": deadline}, deadlines),
        st.just({}),
        st.dictionaries(st.sampled_from(BESIDES), tokens, min_size=1, max_size=2),
        infinite,
        odd,
    )


@st.composite
def odd_envelopes(draw: st.DrawFn) -> Any:
    """Return envelopes with something missing, wrong or too much."""
    made: Message = dict(PROPER)
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from([VERSION, CAPABILITIES, INFO, *BESIDES]))
        if draw(st.integers(0, 3)) == 3:
            made.pop(name, None)
        elif name == VERSION:
            made[name] = draw(versions | odd)
        elif name == INFO:
            made[name] = draw(infos | odd)
        elif name == CAPABILITIES:
            made[name] = draw(capabilities)
        else:
            made[name] = draw(tokens | st.sampled_from(["info", {"taskId": "t"}]))
    return made


def metas(*, modern: bool) -> st.SearchStrategy[Any]:
    """Return what a client of an era puts into ``_meta``: mostly what belongs there."""
    plain, envelopes = st.just(MISSING) | odd_metas(), st.just(PROPER) | odd_envelopes()
    enriched = st.builds(lambda extra: PROPER | extra if isinstance(extra, dict) else PROPER, plain)
    if modern:
        return mostly(mostly(st.just(PROPER), enriched, odds=4), envelopes | plain, odds=6)
    return mostly(mostly(st.just(MISSING), plain, odds=4), envelopes, odds=12)


# -- requests ----------------------------------------------------------------------------------------

ids = mostly(
    st.just(FRESH), st.sampled_from([1, "1", 0, -1, 2**53 + 1, 10**30, "", "a", "é", "\0", "x" * 500]), odds=4
)


@st.composite
def requests(draw: st.DrawFn, *, modern: bool, method: str | None = None) -> Message:
    """Return a request of a client of an era."""
    method = draw(methods) if method is None else method
    message: Message = {"jsonrpc": "2.0", "id": draw(ids), "method": method}
    params = draw(PARAMS.get(method, infinite))
    meta = draw(metas(modern=modern))
    if meta is not MISSING:
        params = {**params, "_meta": meta}
    shape = draw(st.integers(0, 19))
    if shape == 19:
        message["params"] = draw(odd)
    elif shape != 18 and (params or draw(st.booleans())):
        message["params"] = params
    return message
