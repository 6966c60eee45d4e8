"""Empty answers: each says why it is empty, with one of the codes of one table."""

from __future__ import annotations

from pathlib import Path

from harness import greenroom


async def test_an_empty_listing_says_why(tmp_path: Path) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize()
        empty = await client.call("list_sessions")
        assert empty["empty_because"]["code"] == "nothing_stored"
        await client.call("create_session", purpose="plan", project_id="atlas")
        assert "empty_because" not in await client.call("list_sessions")
        missed = (await client.call("list_sessions", project_id="atlsa", status="created"))["empty_because"]
        assert missed == {
            "code": "filter_matches_nothing",
            "sentence": "of the sessions that you may see here none fits project_id 'atlsa'; did you mean 'atlas'?",
            "remedy": "change project_id 'atlsa'",
        }
