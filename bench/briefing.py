"""What a briefing carries: how many of the sentences that the next agent must know are in it.

`bench/sessions` has 57 working sessions of five writers who had not seen the summariser. They marked the
sentences that the next agent must know, and statements that were taken back later. The weights are fitted on
36 sessions of two writers (`bench.tune_briefing`); the figures are those of the 21 others. Each session is
written by its agents, and another agent takes it up with `start_session`. What counts is whether a marked
sentence stands word for word in the briefing. Beside it stand the messages that fit into as many bytes: the
first and the last in turn, and the last alone. No embedder takes part.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
import trio

from bench.harness import Figure, Plan, Report, Table, check
from greenroom.actors import AddMessage, Agent, CreateSession, Principal, StartSession, open_greenroom
from greenroom.actors.content.text.escape import escape_untrusted
from greenroom.actors.sessions.summary.features import Utterance
from greenroom.actors.sessions.summary.summary import summarize
from greenroom.transports.auth.caller import fit_agent_id

if TYPE_CHECKING:
    from bench.harness import Value

SESSIONS = Path(__file__).with_name("sessions")
BYTES = 3_200
"""800 tokens."""
LONG = 100
"""Messages of a long session."""
LEAST, LEAST_OF_LONG, MOST_REVOKED = 85.0, 75.0, 25.0
MOST_MS = 5.0
_TIMED = 60
_QUOTE = 400


class Message(msgspec.Struct, frozen=True):
    """A message of a session."""

    id: int
    sender: str
    type: Literal["human_input", "agent_response"]
    text: str


class Mark(msgspec.Struct, frozen=True):
    """A marked sentence: the message that has it, and the message that took it back."""

    message: int
    quote: str
    by: int | None = None


class Session(msgspec.Struct, frozen=True):
    """A session of the set."""

    title: str
    kind: str
    half: Literal["tune", "report"]
    message: list[Message]
    fact: list[Mark]
    revoked: list[Mark]

    def said(self) -> list[Utterance]:
        """Return its messages as the summariser takes them."""
        return [Utterance(each.sender, each.text, each.type == "human_input") for each in self.message]


class Carried(NamedTuple):
    """What texts have of marked sentences, in per cent: of all, of long sessions', of those taken back."""

    facts: float
    facts_of_long: float
    revoked: float


def sessions() -> list[Session]:
    """Read the set."""
    return [
        msgspec.convert(tomllib.loads(path.read_text()), Session) for path in sorted(SESSIONS.glob("*.toml"))
    ]


def run(plan: Plan) -> Report:
    """Write the sessions, take them up, and count."""
    there = sessions()
    if plan.smoke:
        there = there[::7]
    with plan.folder() as folder:
        briefings = trio.run(_briefings, there, folder)
    told: Mapping[str, Sequence[str]] = {
        "start_session": briefings,
        "first and last messages": ["\n".join(_both_ends(each)) for each in there],
        "last messages": ["\n".join(_ends(each)) for each in there],
    }
    for name, texts in told.items():
        check(all(len(text.encode()) <= BYTES for text in texts), f"{name}: over {BYTES} bytes")
    rows: list[list[Value]] = []
    for half in ("tune", "report"):
        for name, texts in told.items():
            chosen = [each for each in zip(there, texts, strict=True) if each[0].half == half]
            rows.append([half, name, len(chosen), *carried(chosen)])
    reported = [each for each in zip(there, briefings, strict=True) if each[0].half == "report"]
    ours = carried(reported)
    took = _milliseconds(there, plan.size(9, 1))
    return Report(
        tables=[
            Table(
                title=f"marked sentences in {BYTES} bytes",
                columns=["half", "what", "sessions", "facts %", "facts of long sessions %", "taken back %"],
                rows=rows,
            )
        ],
        figures=[
            Figure(what="facts in a briefing, %", value=ours.facts, least=LEAST),
            Figure(
                what="facts in a briefing of a long session, %", value=ours.facts_of_long, least=LEAST_OF_LONG
            ),
            Figure(what="statements taken back in a briefing, %", value=ours.revoked, most=MOST_REVOKED),
            Figure(what=f"processor time for {_TIMED} messages, ms", value=took, most=MOST_MS),
        ],
    )


async def _briefings(there: Sequence[Session], folder: Path) -> list[str]:
    """Return the briefing of each session for an agent that takes it up."""
    found = []
    async with open_greenroom(folder / "data", embedder="none", secrets=folder / "secrets") as runtime:
        for session in there:
            agents = {
                name: Agent(runtime, Principal(agent_id=fit_agent_id(name), user="bench"))
                for name in dict.fromkeys(each.sender for each in session.message)
            }
            first = next(iter(agents.values()))
            made = await first.ask(CreateSession(purpose=session.title))
            for each in session.message:
                message = AddMessage(session_id=made.session_id, content=each.text, message_type=each.type)
                await agents[each.sender].ask(message)
            successor = Agent(runtime, Principal(agent_id="successor", user="bench"))
            started = await successor.ask(StartSession(restore_from=made.session_id))
            check(started.restored, f"{session.title!r} was not taken up")
            found.append(started.briefing)
    return found


def carried(told: Sequence[tuple[Session, str]]) -> Carried:
    """Return what the texts of sessions have of their marked sentences."""
    facts = list(_inside(told, lambda session: session.fact))
    of_long = list(
        _inside([each for each in told if len(each[0].message) >= LONG], lambda session: session.fact)
    )
    revoked = list(_inside(told, lambda session: session.revoked))
    return Carried(*(100 * sum(each) / max(1, len(each)) for each in (facts, of_long, revoked)))


def _inside(
    told: Sequence[tuple[Session, str]], marks: Callable[[Session], Sequence[Mark]]
) -> Iterator[bool]:
    for session, text in told:
        whole = escape_untrusted(text, len(text) + 1)
        for mark in marks(session):
            yield escape_untrusted(mark.quote, _QUOTE) in whole


def _line(message: Message) -> str:
    return f"{message.sender}: {message.text}"


def _ends(session: Session) -> list[str]:
    """Return the last messages that fit."""
    room, lines = BYTES, list[str]()
    for message in reversed(session.message):
        room -= len(_line(message).encode()) + 1
        if room < 0:
            break
        lines.append(_line(message))
    return lines[::-1]


def _both_ends(session: Session) -> list[str]:
    """Return the first and the last messages that fit, in turn."""
    left, right, room = 0, len(session.message) - 1, BYTES
    first: list[str] = []
    last: list[str] = []
    while left <= right:
        is_first = len(first) <= len(last)
        line = _line(session.message[left if is_first else right])
        room -= len(line.encode()) + 1
        if room < 0:
            break
        (first if is_first else last).append(line)
        left, right = left + is_first, right - (not is_first)
    return [*first, *last[::-1]]


def _milliseconds(there: Sequence[Session], rounds: int) -> float:
    """Return the processor time of summarising sixty messages, the median of rounds."""
    said = [each for session in there for each in session.said()][:_TIMED]
    took = []
    for _ in range(rounds):
        began = time.process_time()
        for _step in summarize(said, BYTES):
            pass
        took.append((time.process_time() - began) * 1_000)
    return sorted(took)[rounds // 2] * _TIMED / len(said)
