"""A help desk with its tickets and notes in Greenroom, without a server.

`python help_desk.py asyncio FOLDER` runs it on asyncio, `python help_desk.py trio FOLDER` on trio.
"""

import asyncio
import sys
from collections.abc import Awaitable
from typing import Any

import trio

from greenroom.actors import Database, Memory, Session

ALICE = "user:alice:preferences"


async def refused(call: Awaitable[Any]) -> None:
    """Print the refusal of a call, which has changed nothing."""
    try:
        await call
    except ValueError as error:
        print("  no:", error)
    else:
        raise AssertionError("it was carried out")


async def ticket_17(database: Database) -> Session:
    """Return the ticket as it is now."""
    ticket = await database.sessions.get_session("ticket-17")
    assert ticket is not None
    return ticket


async def contact(database: Database, version: int | None = None) -> Memory:
    """Return how Alice wants to be called, now or as it was known."""
    memory = await database.memory.get_memory(ALICE, "contact", version)
    assert memory is not None
    return memory


async def take_a_call(database: Database) -> None:
    """Open a ticket, and record messages and steps."""
    print("A call comes in")
    sessions = database.sessions
    await sessions.create_session(
        "ticket-17", app_name="help desk", user_id="alice", initial_state={"user:language": "en"}
    )
    print("  the ticket is", (await ticket_17(database))["status"])
    said = {
        "event_id": "call-1",
        "timestamp": "2026-11-23T09:30:00Z",
        "event_type": "message",
        "actor": "user",
        "content": {"text": "The printer is on fire."},
        "is_final_response": False,
    }
    await sessions.append_event("ticket-17", said)
    await sessions.append_event("ticket-17", said)  # the line was bad, so it comes again
    call = {"event_type": "tool_call", "actor": "agent:triage", "content": {"tool": "severity", "level": 1}}
    await sessions.append_event("ticket-17", call, state_delta={"severity": 1, "temp:retries": 0})
    ticket = await ticket_17(database)
    print("  the ticket is", ticket.status, "with", len(ticket.events), "events and", ticket["state"])
    for event in ticket["events"]:
        print("   ", event["event_type"], "of", event["actor"], event["content"])

    await refused(sessions.create_session("ticket-17", "help desk", "bob"))
    await refused(sessions.append_event("ticket-18", said))
    # An event and its change of the state are one step: with a value that cannot be stored, neither happens.
    await refused(sessions.append_event("ticket-17", {**said, "event_id": "call-2"}, {"severity": object()}))
    await refused(sessions.append_event("ticket-17", {**said, "content": {"text": "Not what it was."}}))
    print("  still", len((await ticket_17(database)).events), "events")
    print("  a ticket that does not exist:", await sessions.get_session("ticket-18"))


async def solve_it(database: Database) -> None:
    """Work on the ticket until it can be put away."""
    print("The ticket is solved")
    sessions = database.sessions
    await sessions.set_state("ticket-17", "app:queue", {"name": "urgent", "place": 1})
    print("  queue:", await sessions.get_state("ticket-17", "app:queue"))
    print("  not set:", await sessions.get_state("ticket-17", "queue"))
    print("  no such ticket:", await sessions.get_state("ticket-18", "app:queue"))
    await refused(sessions.set_state("ticket-18", "app:queue", {}))

    await sessions.update_status("ticket-17", "paused")
    await refused(sessions.update_status("ticket-17", "archived"))
    await sessions.update_status("ticket-17", "active")
    await refused(sessions.update_status("ticket-17", "solved"))
    await sessions.update_status("ticket-17", "terminated")
    ended = await ticket_17(database)
    print("  what is left of its state:", sorted(ended["state"]))
    await refused(sessions.update_status("ticket-17", "active"))
    await sessions.update_status("ticket-17", "archived")
    put_away = await ticket_17(database)
    unchanged = put_away.terminated_at == ended.terminated_at
    print("  it is", put_away.status, "and ended when it was solved:", unchanged)


async def learn(database: Database) -> None:
    """Keep what Alice likes, and change it without losing what was known before."""
    print("What is learned")
    memory = database.memory
    first = await memory.add_memory(
        ALICE, "contact", {"by": "phone"}, "semantic", "triage", "ticket-17", metadata={"sure": True}
    )
    known = await contact(database)
    print("  Alice wants contact by", known["value"]["by"], "says", known.created_by, known["metadata"])
    second = await memory.update_memory(ALICE, "contact", {"by": "mail"}, "supervisor", "ticket-17")
    print("  its versions have numbers of their own:", first < second, known.id == first)
    print("  before:", (await contact(database, version=1)).value)
    for version in await memory.list_versions(ALICE, "contact"):
        print("   ", version["version"], "by", version["author"], "for", version["task_id"])

    # Two who have read version 2 write: the second one is refused and overwrites nothing.
    seen = (await contact(database)).version
    await memory.update_memory(ALICE, "contact", {"by": "letter"}, "ann", "t-1", expected_version=seen)
    await refused(memory.update_memory(ALICE, "contact", {"by": "fax"}, "bob", "t-2", expected_version=seen))

    await refused(memory.add_memory(ALICE, "contact", {}, "semantic", "triage", "t"))
    await refused(memory.add_memory("alice", "contact", {}, "semantic", "triage", "t"))
    await refused(memory.add_memory(ALICE, "food", {}, "guessed", "triage", "t"))
    await refused(memory.add_memory(ALICE, "food", {"likes": {"tea", "cake"}}, "semantic", "triage", "t"))
    await refused(memory.update_memory(ALICE, "food", {}, "triage", "t"))
    print("  not known:", await memory.get_memory(ALICE, "food"))
    print("  never written:", await memory.get_memory(ALICE, "contact", version=9))


async def find_and_forget(database: Database) -> None:
    """Look through what is known, and forget some of it."""
    print("What is found")
    memory = database.memory
    await memory.add_memory("user:al", "contact", {"by": "phone"}, "semantic", "triage", "t")
    await memory.add_memory("user:alice:calls", "first", {"about": "fire"}, "episodic", "triage", "t")
    await memory.add_memory("user:alice:calls", "fire", {"do": "leave"}, "procedural", "triage", "t")
    for prefix in ("user:alice", "user:al"):
        found = await memory.search_memories(prefix)
        print(f"  below {prefix}:", [f"{each.namespace} {each.key}" for each in found])
    calls = await memory.search_memories("user:alice", memory_type="episodic")
    print("  that happened:", [each.key for each in calls])
    print("  the newest:", [each.key for each in await memory.search_memories("user:alice", limit=1)])
    print("  forgotten:", await memory.delete_memory("user:alice:calls", "first", "supervisor", "t"))
    print("  again:", await memory.delete_memory("user:alice:calls", "first", "supervisor", "t"))
    print("  read:", await memory.get_memory("user:alice:calls", "first"))
    print("  found:", [each.key for each in await memory.search_memories("user:alice:calls")])
    print("  its history is kept:", len(await memory.list_versions("user:alice:calls", "first")), "version")


async def main(folder: str) -> None:
    """Run the desk for a day."""
    database = Database(folder)
    await database.initialize()
    try:
        await take_a_call(database)
        await solve_it(database)
        await learn(database)
        await find_and_forget(database)
    finally:
        await database.close()


if __name__ == "__main__":
    loop, folder = sys.argv[1:]
    if loop == "asyncio":
        asyncio.run(main(folder))
    else:
        trio.run(main, folder)
