"""HTTP and JSON below `/api/v1`: every request of the domain, failures as problems, a description."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from support.agents import begin
from support.api import ROOT, posted
from support.keyed import bearer, create_key, premises

from greenroom.actors import REQUESTS
from greenroom.transports.mcp.tools.schema import input_schema
from greenroom.transports.web.rest.problems import STATUSES

if TYPE_CHECKING:
    from support.agents import Enter


@pytest.mark.promise("api.requests")
async def test_a_request_is_asked_and_answered_in_json(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "sessions:*", agent="bot", user="ann")
        await here.settled()
        guest, shown = await here.guest(), bearer(key)
        said = await posted(guest, "add_message", {"session_id": "s", "content": "<script>hello"}, shown)
        assert (said.status, said.headers["content-type"]) == (200, "application/json")
        assert said.json()["success"] is True
        page = (await posted(guest, "get_messages", {"session_id": "s"}, shown)).json()
        assert [(each["sender"], each["content"]) for each in page["messages"]] == [("bot", "<script>hello")]
        answer = await guest.ask("GET", f"{ROOT}/resources?uri=session://s", **shown)
        assert (answer.status, answer.json()["session"]["session_id"]) == (200, "s")
        listed = (await guest.ask("GET", f"{ROOT}/resources", **shown)).json()["resources"]
        assert "session://s" in {each["uri"] for each in listed}


@pytest.mark.slow
@pytest.mark.promise("api.requests")
async def test_every_request_of_the_domain_has_a_path_and_is_described(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "sessions:read")
        await here.settled()
        guest = await here.guest()
        answer = await guest.ask("GET", f"{ROOT}/openapi.json", **bearer(key))
        assert answer.status == 200
        document = answer.json()
        OpenAPIV31SpecValidator(document).validate()
        for name, request in REQUESTS.items():
            operation = document["paths"][f"{ROOT}/{name}"]["post"]
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            assert schema == json.loads(json.dumps(input_schema(request)))
        described = {
            (method, path)
            for path, item in document["paths"].items()
            for method in item
            if method in ("get", "post")
        }
        for method, path in described:
            other = "GET" if method == "post" else "POST"
            refused = await guest.ask(other, path, **bearer(key))
            assert (refused.status, refused.headers["allow"]) == (405, method.upper()), path


# -- failures ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.promise("api.problems")
async def test_what_fails_is_a_problem_document_with_its_code_and_status(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "sessions:*", user="ann")
        await here.settled()
        guest, shown = await here.guest(), bearer(key)
        for path, arguments, status, code, details in (
            ("add_message", {"session_id": "s"}, 422, "VALIDATION_ERROR", {"field": "content"}),
            (
                "add_message",
                {"session_id": "s", "contend": "x"},
                422,
                "VALIDATION_ERROR",
                {"field": "contend"},
            ),
            ("add_message", b'{"session_id":', 422, "SERIALIZATION_ERROR", {}),
            ("add_message", b"\xff", 422, "SERIALIZATION_ERROR", {}),
            ("add_message", b"[]", 422, "VALIDATION_ERROR", {}),
            ("add_message", b"", 422, "SERIALIZATION_ERROR", {}),
            ("get_session", {"session_id": "other"}, 404, "SESSION_NOT_FOUND", {}),
            ("create_session", {"purpose": "p", "session_id": "s"}, 409, "KEY_EXISTS", {}),
            ("memory_stats", {}, 403, "PERMISSION_DENIED", {"scope": "memory:read"}),
        ):
            answer = await posted(guest, path, arguments, shown)
            assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
            problem = answer.json()
            assert (problem["status"], problem["code"]) == (status, code), problem
            assert problem["title"] == HTTPStatus(status).phrase
            assert problem["detail"]
            assert {**problem["details"], **details} == problem["details"]
        gone = await guest.ask("GET", f"{ROOT}/resources?uri=session://other", **shown)
        assert (gone.status, gone.json()["code"]) == (404, "RESOURCE_NOT_FOUND")


def test_every_code_has_a_status() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/tools.md").read_text()
    codes = re.findall(r"^\| `([A-Z_]+)` \|", page.partition("\n## Codes\n")[2], re.MULTILINE)
    assert set(codes) == set(STATUSES)


WRONG: list[tuple[str, str, dict[str, str | None], bytes, int]] = [
    ("POST", "get_session", {"content-type": "text/plain"}, b"{}", 415),
    ("POST", "get_session", {"content-type": "application/x-www-form-urlencoded"}, b"a=b", 415),
    ("POST", "get_session", {"content-type": None}, b"{}", 415),
    ("POST", "get_session/", {}, b"{}", 404),
    ("POST", "GET_SESSION", {}, b"{}", 404),
    ("POST", "../v1/get_session", {}, b"{}", 404),
    ("POST", "..%2fv1%2fget_session", {}, b"{}", 404),
    ("POST", "%2e%2e/v2/get_session", {}, b"{}", 404),
    ("POST", "/get_session", {}, b"{}", 404),
    ("POST", "get_session%00", {}, b"{}", 404),
    ("POST", "nonsense", {}, b"{}", 404),
    ("POST", "end", {}, b"{}", 404),
    ("PUT", "get_session", {}, b"{}", 405),
    ("DELETE", "get_session", {}, b"", 405),
    ("HEAD", "session", {}, b"", 405),
    ("GET", "resources?uri=session://s&uri=session://t", {}, b"", 400),
    ("GET", "resources?url=session://s", {}, b"", 400),
    ("GET", "resources?uri=%ff", {}, b"", 400),
    ("GET", "events", {}, b"", 400),
    ("GET", "events?" + "&".join(f"topic=session://{n}" for n in range(101)), {}, b"", 400),
    ("GET", "resources?key=gr_aaaaaaaaaaaa_" + "a" * 43, {}, b"", 400),
    ("GET", "session", {"host": "evil.example"}, b"", 421),
    ("GET", "session", {"origin": "https://evil.example"}, b"", 403),
    ("GET", "session", {"origin": "null"}, b"", 403),
]


@pytest.mark.slow
@pytest.mark.promise("api.problems")
async def test_what_is_no_request_of_ours_is_refused_as_a_problem(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "*", "admin")
        await here.settled()
        for method, path, headers, body, status in WRONG:
            guest = await here.guest()
            await guest.send(method, f"{ROOT}/{path}", {**bearer(key), **headers}, body)
            answer = await guest.answer()
            assert answer.status == status, (path, answer)
            if method != "HEAD":
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["status"] == status
                assert "gr_aaaa" not in answer.body.decode()


@pytest.mark.promise("api.problems")
async def test_a_body_beyond_the_limit_is_refused_before_it_is_read(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "*", "admin")
        await here.settled()
        guest = await here.guest()
        head = f"POST {ROOT}/get_session HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        head += f"authorization: Bearer {key.api_key}\r\ncontent-length: 99999999\r\n\r\n"
        await guest.stream.send_all(head.encode())
        assert (await guest.answer_to_raw()).startswith(b"HTTP/1.1 413 ")


@pytest.mark.promise("api.requests")
async def test_requests_have_the_rate_of_their_key(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "*", rate_limit=1, burst=2)
        await here.settled()
        guest, shown = await here.guest(), bearer(key)
        answers = [await posted(guest, "list_sessions", {}, shown) for _ in range(3)]
        assert [each.status for each in answers] == [200, 200, 429]
        assert answers[2].json()["code"] == "RATE_LIMITED"
        assert 1 <= int(answers[2].headers["retry-after"]) <= 60
        assert (await guest.ask("GET", f"{ROOT}/resources", **shown)).status == 429
        assert (await guest.ask("GET", f"{ROOT}/events?topic=session://s", **shown)).status == 429


@pytest.mark.promise("api.safe-answers")
async def test_whatever_is_answered_no_browser_takes_it_for_a_page(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "*")
        await here.settled()
        guest, shown = await here.guest(), bearer(key)
        evil = "<script>alert(1)</script>\u2028</textarea>"
        await posted(guest, "store_memory", {"content": evil, "key": evil[:8]}, shown)
        for answer in (
            await posted(guest, "list_memories", {}, shown),
            await posted(guest, "get_session", {"session_id": evil}, shown),
            await posted(guest, evil.replace("<", "%3c").replace("\u2028", ""), {}, shown),
            await guest.ask("GET", f"{ROOT}/resources?uri=%3Cscript%3E", **shown),
            await guest.ask("GET", "/login/%3Cscript%3E"),
            await guest.ask("GET", "/"),
            await guest.ask("GET", f"{ROOT}/session"),
        ):
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["x-frame-options"] == "DENY"
            if answer.headers["content-type"].startswith("text/html"):
                assert b"<script" not in answer.body
            else:
                assert answer.headers["content-type"] in ("application/json", "application/problem+json")


@pytest.mark.promise("api.requests")
async def test_requests_are_counted_by_their_names(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "*")
        await here.settled()
        guest = await here.guest()
        await posted(guest, "list_sessions", {}, bearer(key))
        await posted(guest, "get_session", {"session_id": "x"}, bearer(key))
        counted = {
            (each.tool, each.outcome): sum(each.buckets)
            for each in here.meter.snapshot()
            if each.method == "api"
        }
        assert counted == {("list_sessions", "ok"): 1, ("get_session", "tool_error"): 1}
