"""HTTP and JSON below `/api/v1`: every request of the domain, failures as problems, a description."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from support.agents import begin
from support.api import ROOT, posted
from support.keyed import bearer, create_key, premises

from greenroom.actors import REQUESTS
from greenroom.transports.mcp.schema import input_schema

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
