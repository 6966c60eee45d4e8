"""What happens in `greenroom demo`, act by act."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

import trio

from greenroom.transports.cli.commands.demo_member import Member, NotificationLog, member

if TYPE_CHECKING:
    from greenroom.transports.cli.commands.demo_server import ServerProcess, Servers
    from greenroom.transports.cli.support.narrator import Narrator

QUIET: Final = 0.25  # seconds without a notification that show that none comes: more than two windows
WINDOW: Final = 0.12  # seconds after which the next change is a first one again
ROUNDS: Final = 5
BURST: Final = 100
KILL_AFTER: Final = 40
EXPIRES_IN: Final = 1  # seconds; the shortest that there is

_PLAN: Final = "The deployment schedule: staging on Thursday, production on Friday at noon."
_PRIVATE: Final = "Between me and myself: I doubt that Friday."
_TYPO: Final = "deployent shedule"


@dataclass(frozen=True)
class _Scene:
    """Who acts, and where."""

    narrator: Narrator
    planner: Member
    coder: Member
    session: str
    ear: NotificationLog


async def story(shown: Narrator, started: Servers, server: ServerProcess) -> None:
    """Play all acts on a server that listens."""
    async with member(server.url, "planner") as planner, member(server.url, "coder") as coder:
        session = await _share(shown, planner, coder)
        async with coder.hearing(f"session://{session}") as ear:
            scene = _Scene(shown, planner, coder, session, ear)
            expires_at = await _remember(scene)
            await _notify(scene)
            await _keep_private(scene)
            await _search(scene)
            await _expire(scene, expires_at)
            await _crash(scene, started, server)


async def _share(shown: Narrator, planner: Member, coder: Member) -> str:
    shown.step("Two agents, planner and coder, share a session over WebSocket")
    session: str = (await planner.ask("create_session", purpose="Release 2"))["session_id"]
    await planner.say(session, _PLAN)
    await coder.say(session, "I will write the release notes.")
    seen = [await agent.contents(session) for agent in (planner, coder)]
    for message in await coder.messages(session):
        shown.quote(message["sender"], message["content"])
    shown.check("both agents see the same two messages", seen[0] == seen[1] and len(seen[0]) == 2, seen)  # noqa: PLR2004
    return session


async def _remember(scene: _Scene) -> dt.datetime:
    scene.narrator.step(f"planner keeps two memories, one of them for {EXPIRES_IN} second")
    await scene.planner.ask("set_memory", key="who-decides", value={"name": "Ada"})
    stored = await scene.planner.ask("set_memory", key="code-word", value="swordfish", expires_in=EXPIRES_IN)
    read = await scene.planner.ask("get_memory", key="code-word")
    scene.narrator.check("planner reads what it stored", read["value"] == "swordfish", read)
    refused = await scene.coder.refusal("get_memory", key="code-word")
    scene.narrator.check("for coder there is no such memory", refused == "MEMORY_NOT_FOUND", refused)
    return dt.datetime.fromisoformat(stored["expires_at"])


async def _notify(scene: _Scene) -> None:
    scene.narrator.step("coder subscribes to the session and is told when it changes")
    answered, notified = [], []
    for number in range(ROUNDS):
        scene.ear.forget()
        sent = trio.current_time()
        await scene.planner.say(scene.session, f"Progress report {number + 1}.")
        answered.append(trio.current_time() - sent)
        notified.append(await scene.ear.wait() - sent)
        await trio.sleep(WINDOW)
    scene.narrator.check(f"coder was notified of each of {ROUNDS} messages", len(notified) == ROUNDS)
    scene.narrator.tell(
        f"from sending to the notification {_ms(median(notified))} (fastest {_ms(min(notified))}); "
        f"the answer, with the message on disk, took {_ms(median(answered))}"
    )


async def _keep_private(scene: _Scene) -> None:
    scene.narrator.step("planner writes a private message")
    scene.ear.forget()
    await scene.planner.say(scene.session, _PRIVATE, visibility="private")
    scene.narrator.quote("planner", _PRIVATE)
    own, others = [await agent.contents(scene.session) for agent in (scene.planner, scene.coder)]
    scene.narrator.check(
        f"planner sees {len(own)} messages, the private one among them", _PRIVATE in own, own
    )
    scene.narrator.check(f"coder sees {len(others)}: all but that one", others == own[:-1], others)
    found = await scene.coder.found(scene.session, "doubt that Friday")
    contents = [hit["message"]["content"] for hit in found]
    scene.narrator.check("coder's search does not find it", _PRIVATE not in contents, contents)
    quiet = await scene.ear.is_quiet(QUIET)
    scene.narrator.check("coder was not even woken by it", quiet, "a notification")


async def _search(scene: _Scene) -> None:
    scene.narrator.step(f"coder searches for {_TYPO!r}, typing errors and all")
    found = await scene.coder.found(scene.session, _TYPO)
    for hit in found[:1]:
        scene.narrator.quote(f"score {hit['score']:g}", hit["message"]["content"])
    best = found[0]["message"]["content"] if found else "nothing"
    scene.narrator.check("the plan is found all the same", best == _PLAN, best)


async def _expire(scene: _Scene, expires_at: dt.datetime) -> None:
    scene.narrator.step(f"The memory's {EXPIRES_IN} second is over")
    left = (expires_at - dt.datetime.now(dt.UTC)).total_seconds()
    with scene.narrator.waiting("time passes"):
        await trio.sleep(max(0.0, left) + 0.002)
    refused = await scene.planner.refusal("get_memory", key="code-word")
    scene.narrator.check("it is gone from the moment on", refused == "MEMORY_NOT_FOUND", refused)
    listed = [entry["key"] for entry in (await scene.planner.ask("list_memory"))["entries"]]
    scene.narrator.check("the other one is still listed", listed == ["who-decides"], listed)


async def _crash(scene: _Scene, started: Servers, server: ServerProcess) -> None:
    scene.narrator.step(f"Both write {BURST} messages at once, and the server is killed (SIGKILL) meanwhile")
    before = await scene.planner.contents(scene.session)
    answered: dict[str, int] = {}
    enough = trio.Event()

    async def write(author: Member, content: str) -> None:
        # With a key, the client may send it again when the connection breaks before the answer.
        answered[content] = await author.say(scene.session, content, idempotency_key=content)
        if len(answered) == KILL_AFTER:
            enough.set()

    async with trio.open_nursery() as writers:
        for number in range(BURST):
            author = scene.coder if number % 2 else scene.planner
            writers.start_soon(write, author, f"Step {number + 1} is done.")
        await enough.wait()
        await server.kill()
        killed, kept = trio.current_time(), dict(answered)
        scene.narrator.tell(f"when it died it had answered {len(kept)} of {BURST}")
        with scene.narrator.waiting("it starts again"):
            await started.start(server.address)
    scene.narrator.tell(
        f"it was started again on the same folder; {trio.current_time() - killed:.1f} s after its death "
        "both agents had connected again by themselves and had every answer"
    )
    await _look_after_crash(scene, before, kept, set(answered))


async def _look_after_crash(
    scene: _Scene, before: list[str], kept: dict[str, int], written: set[str]
) -> None:
    messages = await scene.planner.messages(scene.session)
    numbers = {message["content"]: message["message_id"] for message in messages}
    contents = Counter(message["content"] for message in messages)
    lost = [content for content, number in kept.items() if numbers.get(content) != number]
    scene.narrator.check(f"all {len(kept)} messages answered before the kill are there", not lost, lost)
    scene.narrator.check(
        f"so is everything from before: {len(before)} messages",
        before == list(contents)[: len(before)],
        contents,
    )
    wrong = [content for content in written if contents[content] != 1]
    scene.narrator.check(
        f"each of the {BURST} is there exactly once", len(written) == BURST and not wrong, wrong
    )
    decides = await scene.planner.ask("get_memory", key="who-decides")
    scene.narrator.check("the memory is there", decides["value"] == {"name": "Ada"}, decides)
    seen = await scene.coder.contents(scene.session)
    scene.narrator.check(
        "and the private message is still private", _PRIVATE not in seen and _PRIVATE in contents, seen
    )
    await trio.sleep(WINDOW)
    scene.ear.forget()
    await scene.planner.say(scene.session, "We are back.")
    await scene.ear.wait()
    scene.narrator.check("coder's subscription goes on as if nothing had happened", True)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
