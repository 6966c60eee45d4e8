"""The head of a request, and the later era's rules for head and body, beside those of the SDK."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp.server.streamable_http import check_accept_headers
from mcp.shared import inbound
from starlette.requests import Request

from greenroom.actors.core.auth.key_format import new_key
from greenroom.testing import MODERN_META
from greenroom.transports import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.mcp.frames.frames import Frame, error_line, parse_frame
from greenroom.transports.sockets.http.request_head import RequestHead, cors_headers, cors_preflight
from greenroom.transports.sockets.http.responses import RpcRefusedError, response_to
from greenroom.transports.sockets.http.stateless_rules import STATUS, plain_value, rejection_of, status_of

HOST = ("host", "127.0.0.1:8080")
NONE: frozenset[str] = frozenset()
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def head(*headers: tuple[str, str], method: str = "POST", query: str = "", path: str = "/mcp") -> RequestHead:
    lines = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return RequestHead({"method": method, "path": path, "query_string": query.encode(), "headers": lines})


# -- who may ask ---------------------------------------------------------------------------------


@pytest.mark.promise("http.admission")
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "a.localhost", "localhost."],
)
def test_names_of_this_machine_are_answered(host: str) -> None:
    head(("host", host)).check_source(NONE)


@pytest.mark.promise("http.admission")
@pytest.mark.parametrize(
    "host",
    [
        *("", "example.org", "127.0.0.1.example.org", "localhost.example.org", "[::1", "10.0.0.1", "8.8.8.8"),
        *(
            "ann@localhost",
            "localhost:65536",
            "localhost:",
            "localhost:8x",
            "localhost/",
            "a..localhost",
        ),
        *(
            "localhost#.example.org",
            "localhost\\.example.org",
            "localhost?",
            ".localhost",
            "localhost..",
            "[::1%1]",
            "::1",
        ),
    ],
)
def test_a_name_that_somebody_else_gave_this_machine_is_refused(host: str) -> None:
    with pytest.raises(HttpRefusedError, match="loopback") as caught:
        head(("host", host)).check_source(NONE)
    assert caught.value.status == HTTPStatus.MISDIRECTED_REQUEST


def test_a_request_without_a_host_is_refused() -> None:
    with pytest.raises(HttpRefusedError, match="loopback"):
        head().check_source(NONE)


@pytest.mark.promise("http.admission")
@pytest.mark.parametrize(
    ("origin", "passes"),
    [
        ("http://localhost:3000", True),
        ("https://127.0.0.1", True),
        ("http://[::1]:5173", True),
        ("https://example.org", True),
        ("https://example.org:8443", False),
        ("http://example.org", False),
        ("https://evil.example", False),
        ("http://localhost.evil.example", False),
        ("null", False),
        ("", False),
        ("http://localhost, https://evil.example", False),
        ("HTTP://LOCALHOST", True),
        ("http://ann@localhost", False),
        ("http://localhost/", False),
        ("http://localhost#evil.example", False),
        ("http://localhost\\.evil.example", False),
        ("http:/\\localhost", False),
        ("ftp://localhost", False),
        ("javascript://localhost", False),
        ("http://localhost:65536", False),
        ("http://localhost:", False),
        ("http://evil..localhost", False),
        ("https://example.org/", False),
    ],
)
def test_pages_of_other_origins_are_refused_unless_they_are_allowed(origin: str, passes: bool) -> None:  # noqa: FBT001
    asked = head(HOST, ("origin", origin))
    if passes:
        asked.check_source(frozenset({"https://example.org"}))
        return
    with pytest.raises(HttpRefusedError, match="--allow-origin") as caught:
        asked.check_source(frozenset({"https://example.org"}))
    assert caught.value.status == HTTPStatus.FORBIDDEN


@pytest.mark.promise("http.admission")
def test_every_origin_that_is_told_must_pass() -> None:
    origins = [("origin", "http://localhost"), ("origin", "https://evil.example")]
    for order in (origins, origins[::-1]):
        with pytest.raises(HttpRefusedError, match="evil"):
            head(HOST, *order).check_source(NONE)


@pytest.mark.promise("http.smuggling")
def test_a_body_whose_length_is_told_twice_is_refused_and_the_connection_ends() -> None:
    with pytest.raises(HttpRefusedError, match="twice") as caught:
        head(HOST, ("content-length", "5"), ("transfer-encoding", "chunked")).caller()
    assert (b"Connection", b"close") in response_to(caught.value).headers


@pytest.mark.parametrize("name", ["content-type", "mcp-session-id", "last-event-id"])
def test_a_header_that_two_readers_could_read_differently_is_refused(name: str) -> None:
    with pytest.raises(HttpRefusedError, match="more than once"):
        head(HOST, (name, "a"), (name, "b")).caller()


@pytest.mark.promise("http.identity")
def test_a_request_says_who_it_is_in_headers_or_in_the_query() -> None:
    named = head(HOST, ("greenroom-agent", "ann"), ("greenroom-project", "a, b"), ("greenroom-project", "c"))
    assert named.caller() == Caller(agent="ann", projects=("a", "b", "c"))
    queried = head(HOST, query="agent=ann&agent_type=writer&project=a")
    assert queried.caller() == Caller(agent="ann", agent_type="writer", projects=("a",))
    for wrong in ("agent=", "agent=a b", "agent=a&agent=b", "who=ann", "agent", "agent=%ff"):
        with pytest.raises(HttpRefusedError) as caught:
            head(HOST, query=wrong).caller()
        assert caught.value.status == HTTPStatus.BAD_REQUEST
    with pytest.raises(HttpRefusedError, match="give it once"):
        head(HOST, ("greenroom-agent", "ann"), query="agent=bob").caller()
    key = new_key(secrets.choice).whole
    for name in ("greenroom-agent", "greenroom-project", "greenroom-tools"):
        with pytest.raises(HttpRefusedError, match="holds an API key; revoke it") as caught:
            head(HOST, (name, key)).caller()
        assert key not in str(caught.value)


# -- what may be said ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "good"),
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        (" application/json ;x=y", True),
        ("application/jsonp", False),
        ("text/plain", False),
        ("", False),
        ("text/plain, application/json", False),
    ],
)
def test_a_body_must_be_announced_as_json(given: str, good: bool) -> None:  # noqa: FBT001
    if good:
        head(("content-type", given)).check_content_type()
    else:
        with pytest.raises(HttpRefusedError, match="Content-Type"):
            head(("content-type", given)).check_content_type()


MEDIA = [
    "application/json",
    "text/event-stream",
    "*/*",
    "application/*",
    "text/*",
    "text/html",
    "TEXT/*;q=0.5",
    "",
]


@given(st.lists(st.sampled_from(MEDIA), max_size=4).map(", ".join))
def test_what_a_client_accepts_is_read_as_the_sdk_reads_it(accept: str) -> None:
    request = Request({"type": "http", "headers": [(b"accept", accept.encode())]})
    takes_json, takes_events = check_accept_headers(request)
    for json, expected in ((True, takes_json and takes_events), (False, takes_events)):
        asked = head(("accept", accept))
        if expected:
            asked.check_accept(json=json)
        else:
            with pytest.raises(RpcRefusedError) as caught:
                asked.check_accept(json=json)
            assert caught.value.status == HTTPStatus.NOT_ACCEPTABLE


def test_a_page_hears_what_it_may_send_and_read() -> None:
    page = (HOST, ("origin", "http://localhost:3000"))
    asked = head(
        *page,
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type, mcp-session-id"),
        method="OPTIONS",
    )
    reply = cors_preflight(asked)
    assert reply is not None
    assert reply.status == 204
    assert (b"access-control-allow-headers", b"content-type, mcp-session-id") in reply.headers
    assert (b"access-control-allow-origin", b"http://localhost:3000") in cors_headers(asked)
    assert cors_headers(head(HOST)) == []
    assert cors_preflight(head(*page, method="OPTIONS")) is None
    smuggled = head(
        *page,
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "x\x0b: y"),
        method="OPTIONS",
    )
    assert cors_preflight(smuggled) == reply._replace(headers=reply.headers[:2])


# -- head and body -------------------------------------------------------------------------------


METHODS = ["tools/call", "resources/read", "prompts/get", "tools/list", "x"]
NAMES = ["add", "sitzung-ä", " edge ", "", "=?base64?YQ==?=", "a\nb"]
VERSIONS: list[Any] = ["2026-07-28", "2025-11-25", "1999-01-01", "", None, 7]


def header_names() -> st.SearchStrategy[str | None]:
    written = st.sampled_from(NAMES).map(inbound.encode_header_value)
    wild = st.sampled_from(["=?base64?YR==?=", "=?base64?!?=", "=?base64?/w==?=", "=?BASE64?YQ==?=", "add"])
    return st.one_of(st.none(), written, wild)


METAS = st.one_of(
    st.sampled_from([None, [], "x", {}]),
    st.fixed_dictionaries({VERSION: st.sampled_from(VERSIONS), CAPABILITIES: st.just({})}),
    st.sampled_from([{VERSION: "2026-07-28"}, {CAPABILITIES: {}}]),
    st.just(MODERN_META),
)
NAME_VALUES = st.one_of(st.sampled_from(NAMES), st.sampled_from([None, 7]))


@pytest.mark.promise("http.modern-headers")
@given(
    method=st.sampled_from(METHODS),
    routed=st.one_of(st.none(), st.sampled_from(METHODS)),
    version=st.one_of(st.none(), st.sampled_from(["2026-07-28", "2027-01-01"])),
    named=header_names(),
    meta=METAS,
    name=NAME_VALUES,
    twice=st.sampled_from([None, None, None, "mcp-method", "mcp-name", "mcp-protocol-version"]),
)
def test_head_and_body_are_compared_as_the_sdk_does(
    method: str,
    routed: str | None,
    version: str | None,
    named: str | None,
    meta: Any,
    name: Any,
    twice: str | None,
) -> None:
    given_headers = {"mcp-method": routed, "mcp-protocol-version": version, "mcp-name": named}
    lines = [(key, value) for key, value in given_headers.items() if value is not None]
    lines += [(twice, "x")] if twice is not None and given_headers[twice] is not None else []
    params = {"_meta": meta, "name": name, "uri": name}
    frame = Frame(method, params, b"1", 1, None, b"{}", 100)
    found = rejection_of(head(*lines), frame)
    assert (None if found is None else tuple(found)) == _by_the_sdk(method, params, lines)


def _by_the_sdk(method: str, params: dict[str, Any], lines: Sequence[tuple[str, str]]) -> Any:
    twice = inbound.find_duplicated_routing_header(lines)
    if twice is not None:
        return (-32020, f"{twice} header appears more than once", None)
    headers = {name: value.strip() for name, value in reversed(lines)}
    verdict = inbound.classify_inbound_request({"method": method, "params": params}, headers=headers)
    if isinstance(verdict, inbound.InboundLadderRejection):
        return (verdict.code, verdict.message, verdict.data)
    return None


@example("=?base64?YR==?=")  # another spelling of YQ==
@given(st.one_of(st.text(), st.binary().map(lambda raw: f"=?base64?{base64.b64encode(raw).decode()}?=")))
def test_a_written_name_is_read_as_the_sdk_reads_it(value: str) -> None:
    assert plain_value(value) == inbound.decode_header_value(value)
    assert plain_value(None) is None


def test_statuses_are_those_of_the_sdk() -> None:
    assert inbound.ERROR_CODE_HTTP_STATUS == STATUS


@given(
    id=st.one_of(st.integers(), st.text(max_size=30), st.just('x","error":{"code":-32601')),
    code=st.sampled_from([*STATUS, -32603, -32800, -32042]),
    sentence=st.text(max_size=20),
)
def test_the_status_of_an_answer_follows_its_error(id: int | str, code: int, sentence: str) -> None:
    raw = msgspec.json.encode(id)
    assert status_of(error_line(raw, code, sentence), raw) == STATUS.get(code, 200)
    result = b'{"jsonrpc":"2.0","id":%b,"result":{"error":{"code":-32601}}}\n' % raw
    assert status_of(result, raw) == 200


def test_a_frame_that_is_parsed_is_compared_too() -> None:
    frame = parse_frame(
        msgspec.json.encode(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "add", "arguments": {"a": 1}, "_meta": MODERN_META},
            }
        )
    )
    assert frame is not None
    routed = [("mcp-method", "tools/call"), ("mcp-protocol-version", "2026-07-28"), ("mcp-name", "add")]
    assert rejection_of(head(*routed), frame) is None
    assert rejection_of(head(*routed[:2], ("mcp-name", "sub")), frame) is not None
