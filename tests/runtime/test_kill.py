"""kill -9, again and again, under a client that does not wait for one answer before the next request."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from harness import server_process
from support.effort import by_night

from greenroom.testing import McpClient

KILLS = by_night(50, by_day=12)
IN_FLIGHT = 48
SESSION = "killed"


@dataclass
class Ledger:
    """What the client asked for and what it was told."""

    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)

    def next_requests(self, count: int) -> list[str]:
        """Return keys to send: first the unanswered ones of earlier lives, in their order."""
        keys = [key for key in self.asked if key not in self.answered]
        while len(keys) < count:
            key = f"request-{len(self.asked)}"
            self.asked[key] = {"session_id": SESSION, "content": f"message of {key}", "idempotency_key": key}
            keys.append(key)
        return keys[:count]

    def note(self, key: str, answer: dict[str, Any]) -> None:
        assert answer["success"], answer
        assert self.answered.setdefault(key, answer["message_id"]) == answer["message_id"]


async def write_until_killed(home: Path, ledger: Ledger, answers_wanted: int) -> None:
    async with server_process(home) as server:
        client = server.client
        await client.initialize("writer")
        if not ledger.asked:
            assert (await client.call("create_session", purpose="to be killed", session_id=SESSION))[
                "success"
            ]
        keys = ledger.next_requests(IN_FLIGHT)
        open_requests = {await client.send_call("add_message", ledger.asked[key]): key for key in keys}
        for _ in range(answers_wanted):
            answer = await client.receive()
            reply = json.loads(answer["result"]["content"][0]["text"])
            ledger.note(open_requests.pop(answer["id"]), reply)
        server.process.kill()
        await server.process.wait()


async def stored_messages(client: McpClient) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    cursor = None
    while True:
        more: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        page = await client.call("get_messages", session_id=SESSION, limit=1000, **more)
        messages += page["messages"]
        cursor = page["next_cursor"]
        if cursor is None:
            return messages


@pytest.mark.promise("store.kill", "runtime.exactly-once", "runtime.reply-means-durable", "store.damage")
async def test_what_was_answered_is_there_once_after_many_kills(tmp_path: Path) -> None:
    chance = random.Random(20_261_121)  # noqa: S311  which answer is the last is no secret
    ledger = Ledger()
    for _ in range(KILLS):
        await write_until_killed(tmp_path, ledger, chance.randrange(IN_FLIGHT))
    async with server_process(tmp_path) as server:
        await server.client.initialize("writer")
        before = await stored_messages(server.client)
        for key in [key for key in ledger.asked if key not in ledger.answered]:
            ledger.note(key, await server.client.call("add_message", **ledger.asked[key]))
        after = await stored_messages(server.client)
    written = {message["message_id"]: message["content"] for message in before}
    for key, message_id in ledger.answered.items():
        content = ledger.asked[key]["content"]
        assert written.get(message_id, content) == content
    contents = [message["content"] for message in after]
    assert sorted(contents) == sorted(request["content"] for request in ledger.asked.values())
    assert len(ledger.asked) > KILLS
