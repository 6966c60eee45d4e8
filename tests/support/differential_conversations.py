"""Conversations of clients, proper, careless and hostile, for the differential test.

A conversation is an opening and steps; a step is one line, lines written at once, or a little time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st
from support.differential_requests import (
    FRESH,
    HANDSHAKE,
    PARAMS,
    PROPER,
    Message,
    odd,
    odd_envelopes,
    odd_metas,
    requests,
)


class Wait(NamedTuple):
    """Time passes."""

    seconds: float


class Step(NamedTuple):
    """One line.

    Attributes:
        raw: The line, whose id may be the placeholder `FRESH`.
    """

    raw: bytes

    def __repr__(self) -> str:
        return self.raw[:2_000].decode(errors="backslashreplace") + ("…" if len(self.raw) > 2_000 else "")


class Burst(NamedTuple):
    """Lines that are written at once."""

    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        return "\n".join(["at once:", *map(repr, self.steps)])


class Conversation(NamedTuple):
    """What a client does, in order."""

    steps: tuple[Step | Wait | Burst, ...]

    def __repr__(self) -> str:
        return "\n".join(["", *map(repr, self.steps), ""])


@st.composite
def styles(draw: st.DrawFn) -> Callable[[Any], bytes]:
    """Return a way to write JSON down."""
    ascii_only = draw(st.booleans())
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\r ")]))
    return lambda value: json.dumps(value, ensure_ascii=ascii_only, separators=separators).encode(
        errors="surrogatepass"
    )


notifications = st.one_of(
    st.builds(
        lambda target, more: {"method": "notifications/cancelled", "params": {"requestId": target, **more}},
        st.sampled_from([1, "1", "a", 0, -1, "", 99]) | odd,
        st.sampled_from([{}, {"reason": "why"}, {"reason": 7}, {"_meta": {}}, {"_meta": PROPER}]),
    ),
    st.just({"method": "notifications/initialized"}),
    st.builds(
        lambda name, params: {"method": name, "params": params},
        st.sampled_from(
            [
                "notifications/initialized",
                "notifications/cancelled",
                "notifications/progress",
                "notifications/roots/list_changed",
                "notifications/other",
                "tools/call",
                "initialize",
                "ping",
            ]
        ),
        st.sampled_from([{}, {"_meta": 7}, {"_meta": {}}, {"progressToken": 1, "progress": 1}]) | odd,
    ),
).map(lambda message: {"jsonrpc": "2.0", **message})

responses = st.builds(
    lambda key, outcome: {"jsonrpc": "2.0", "id": key, **outcome},
    st.sampled_from([1, "1", 0, 99, "a", None]),
    st.sampled_from([{"result": {}}, {"result": None}, {"error": {"code": 1, "message": "x"}}, {"error": 7}]),
)


@st.composite
def damaged(draw: st.DrawFn, sound: st.SearchStrategy[Message]) -> bytes:
    """Return a line with something wrong below or beside its params."""
    message, style = dict(draw(sound)), draw(styles())
    raw = style(message)
    match draw(st.integers(0, 9)):
        case 0:
            raw = style(
                message | {"id": draw(st.sampled_from([None, True, 1.0, 1.5, [], {}, "x" * 1_001, "\ud800"]))}
            )
        case 1:
            raw = style(message | {"jsonrpc": draw(st.sampled_from(["1.0", 2.0, None, "2.0 "]))})
        case 2:
            del message[draw(st.sampled_from([*message]))]
            raw = style(message)
        case 3:
            raw = style(
                message | {"method": draw(st.sampled_from([None, 7, [], {}, "\udfff", "x" * 10_000]))}
            )
        case 4:
            raw = style(
                message | {"more": draw(odd), draw(st.sampled_from(["result", "error", "x"])): draw(odd)}
            )
        case 5:
            raw = style([message])
        case 6:
            twice = draw(
                st.sampled_from(
                    [b'"id":1,', b'"method":"ping",', b'"meth\\u006fd":"ping",', b'"jsonrpc":"2.0",']
                )
            )
            raw = raw.replace(b"{", b"{" + twice, 1)
        case 7:
            where = draw(st.sampled_from(["params", "arguments", "_meta"]))
            raw = style({**message, "params": _doubled(message.get("params"), where)}).replace(
                b"@twice", b"more"
            )
        case 8:
            deep = b"[" * 5_000 + b"]" * draw(st.sampled_from([5_000, 0]))
            bad = draw(
                st.sampled_from([b"1e400", b'"\\ud800"', b"NaN", b"-Infinity", b'"\xff"', b"01", deep])
            )
            params = message.get("params")
            params = {**params, "bad": "@bad"} if isinstance(params, dict) else {"bad": "@bad"}
            raw = style({**message, "params": params}).replace(b'"@bad"', bad)
        case _:
            raw = (
                draw(st.binary(max_size=20))
                + raw[draw(st.integers(0, 5)) : len(raw) - draw(st.integers(0, 5))]
            )
    return raw


def _doubled(params: Any, where: str) -> Any:
    if not isinstance(params, dict):
        return params
    if where == "params":
        return {**params, "more": 1, "@twice": 2}
    inner = params.get(where)
    return {**params, where: {**inner, "more": 1, "@twice": 2}} if isinstance(inner, dict) else params


@st.composite
def steps(draw: st.DrawFn, *, modern: bool) -> Step | Wait:
    """Return one step of a client that began in an era."""
    style = draw(styles())
    match draw(st.integers(0, 19)):
        case 19:
            return Wait(draw(st.sampled_from([1.0, 31.0])))
        case 17 | 18:
            raw: bytes = draw(damaged(requests(modern=modern)))
        case 16:
            raw = style(draw(requests(modern=not modern)))
        case 15:
            raw = style(draw(responses))
        case 13 | 14:
            raw = style(draw(notifications))
        case _:
            raw = style(draw(requests(modern=modern)))
    return Step(raw.replace(b"\n", b" "))


def handshake(version: str = HANDSHAKE[0]) -> Message:
    """Return the request that begins a connection of the handshake era."""
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": FRESH, "method": "initialize", "params": params}


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
DISCOVER = {"jsonrpc": "2.0", "id": FRESH, "method": "server/discover", "params": {"_meta": PROPER}}


def line_of(message: Message) -> Step:
    """Return a message as a line."""
    return Step(json.dumps(message).encode())


def _opening(draw: st.DrawFn, *, modern: bool) -> list[Step | Wait]:
    if modern:
        return [line_of(DISCOVER)]
    return [line_of(handshake(draw(st.sampled_from(HANDSHAKE)))), line_of(INITIALIZED)]


@st.composite
def conversations(draw: st.DrawFn, *, length: int = 20) -> Conversation:
    """Return a conversation of either era, whose opening may be as odd as the rest."""
    modern = draw(st.booleans())
    opening = _opening(draw, modern=modern)
    if draw(st.integers(0, 3)) == 3:
        first = (
            steps(modern=modern)
            if draw(st.booleans())
            else requests(modern=modern, method="initialize").map(line_of)
        )
        opening = [*draw(st.lists(first, max_size=2)), *(opening if draw(st.booleans()) else [])]
    return Conversation((*opening, *draw(st.lists(steps(modern=modern), min_size=5, max_size=length))))


@st.composite
def openings(draw: st.DrawFn, *, length: int = 12) -> Conversation:
    """Return a conversation whose handshakes and envelopes are seldom as they should be."""
    modern = draw(st.booleans())
    metas = odd_envelopes() | odd_metas() if modern else odd_metas()
    plain: dict[str, Any] = {
        "tools/call": {"name": "get_memory", "arguments": {"key": "k"}},
        "resources/read": {"uri": "session://s"},
    }
    kinds = ["tools/call", "resources/read", "resources/list", "tools/list", "server/discover", "ping"]
    steps = []
    for _ in range(draw(st.integers(3, length))):
        method = "initialize" if draw(st.integers(0, 3)) == 0 else draw(st.sampled_from(kinds))
        params = draw(PARAMS["initialize"]) if method == "initialize" else plain.get(method, {})
        meta = {} if draw(st.integers(0, 3)) == 0 else {"_meta": draw(metas)}
        steps.append(line_of({"jsonrpc": "2.0", "id": FRESH, "method": method, "params": {**params, **meta}}))
    usual = [] if draw(st.booleans()) else _opening(draw, modern=modern)
    return Conversation((*usual, *steps))


def _has_a_place(request: Message) -> bool:
    """Whether a request is in the order of what is written at once.

    Queries over the shared indexes are not: they see a moment between the requests around them.
    """
    params = request.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    return (
        request["method"] not in {"initialize", "resources/list", "completion/complete"}
        and name != "list_sessions"
    )


def _made_odd(request: Message, is_odd: bool) -> Message:  # noqa: FBT001  (drawn)
    """Give a request a member that changes nothing but the way it goes."""
    params = request.get("params")
    if not is_odd or not isinstance(params, dict):
        return request
    return {**request, "params": {**params, "more": 1}}


@st.composite
def bursts(draw: st.DrawFn, *, length: int = 12) -> Conversation:
    """Return a conversation in which most requests are written at once; half of them only the SDK takes."""
    modern = draw(st.booleans())
    message = st.builds(_made_odd, requests(modern=modern).filter(_has_a_place), st.booleans())
    sound = st.builds(lambda message, style: Step(style(message).replace(b"\n", b" ")), message, styles())
    burst = st.lists(sound, min_size=2, max_size=length).map(lambda found: Burst(tuple(found)))
    return Conversation((*_opening(draw, modern=modern), *draw(st.lists(burst, min_size=1, max_size=3))))
