"""What a client hears of the server when it comes: what its scopes open, and of nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from support.keyed import Premises, bearer, create_key, premises

from greenroom.actors import ApiKeyMade
from greenroom.actors.app.requests import TOOL_SCOPES as TOOLS
from greenroom.actors.core.auth.scopes import SCOPES, WILDCARDS, allows
from greenroom.testing import import_sdk
from greenroom.transports.mcp.server_info import GREENROOM

if TYPE_CHECKING:
    from support.agents import Enter

pytestmark = pytest.mark.promise("identity.introduction")

EVERYTHING = frozenset({"*"})


@pytest.fixture(autouse=True)
def _with_the_sdk() -> None:
    """Import the SDK here: a server imports it in a thread, in which virtual time would run away."""
    import_sdk()


def named_in(text: str) -> set[str]:
    return set(TOOLS) & set(re.findall(r"\w+", text))


@pytest.mark.parametrize("scope", [*SCOPES, *WILDCARDS])
def test_instructions_name_no_tool_that_a_scope_does_not_open(scope: str) -> None:
    text = GREENROOM.instructions_for(frozenset({scope})) or ""
    assert named_in(text) <= {name for name, needed in TOOLS.items() if allows({scope}, needed)}
    assert not named_in(text) or scope not in {"admin", "audit:read", "sessions:read"}
    assert ("subscribe" in text) <= allows({scope}, "memory:read")


def test_who_may_do_everything_is_told_everything() -> None:
    said = GREENROOM.described_to(EVERYTHING)
    assert said["capabilities"] == GREENROOM.capabilities
    assert {"start_session", "set_memory", "recall_context", "store_memory"} <= named_in(said["instructions"])
    by_parts = GREENROOM.described_to(frozenset({"sessions:*", "memory:read", "memory:write"}))
    assert by_parts == said


@pytest.mark.parametrize(
    ("scopes", "capabilities"),
    [
        (("code:read",), {"tools", "resources", "prompts", "completions"}),
        (("knowledge:read",), {"tools", "resources", "completions"}),
        (("admin",), {"tools"}),
        (("memory:write",), {"tools"}),
        (("sessions:read",), {"tools", "resources", "prompts", "completions"}),
    ],
)
async def test_every_way_to_ask_tells_the_same(
    enter: Enter, scopes: tuple[str, ...], capabilities: set[str]
) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, *scopes)
        await here.settled()
        told = [await introduction(here, key, odd=odd, modern=modern) for odd, modern in WAYS]
    for said in told:
        assert said["capabilities"].keys() == capabilities
        assert said["instructions"] == GREENROOM.instructions_for(frozenset(scopes))


WAYS = [(False, False), (True, False), (False, True), (True, True)]


async def introduction(here: Premises, key: ApiKeyMade, *, odd: bool, modern: bool) -> dict[str, Any]:
    """Return what a client is told; an odd one asks in a way that the SDK answers."""
    if modern:
        guest = await here.guest()
        extra = {"more": 1} if odd else {}
        await guest.modern("server/discover", extra, **bearer(key))
        answer = await guest.answer()
        assert answer.status == 200, answer
        found: dict[str, Any] = answer.json()["result"]
        return found
    peer = await (await here.peer()).open("/", **bearer(key))
    info = {"name": "tester", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    await peer.request("initialize", params | ({"more": 1} if odd else {}))
    handshake: dict[str, Any] = (await peer.receive())["result"]
    return handshake
