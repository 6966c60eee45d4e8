"""How soon subscribers hear of a write, and what many of them cost the writer.

The latency is taken over real WebSockets from a real server, with the round trip to a server
that only echoes beside it: what that takes is the machine's and the client's share. The many
subscribers of one resource are served within this process, up to the bytes that would go to
each, so that receiving them takes nothing from the server.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial

import msgspec
import trio

from bench.channels import Exchange, exchanging
from bench.client import Client, ToolCall, channel_to, connected, read_answer
from bench.harness import Figure, Plan, Report, Table, Value, check, percentile, take_turns
from bench.pacing import Paced, pace
from bench.servers import ECHO_WEBSOCKET, greenroom_websocket, listening
from bench.subscribers import Crowd, Peer, Writer, check_windows, checked_run, open_server
from bench.wires import Kind
from greenroom.actors.core.defaults import DEBOUNCE_SECONDS

WRITES_A_SECOND = 500
SESSIONS = 100  # each is written every 200 ms, so its window is over and every write is told of
PATIENCE = 120.0  # seconds
PAUSES = (0.0, 0.02)  # seconds between one answer and the next write
UPDATED = "notifications/resources/updated"


def run(plan: Plan) -> Report:
    """Measure the latency, then the many."""
    latency, figure = _latency(plan)
    crowd, figures = checked_run(_crowd, plan)
    return Report(tables=[latency, crowd], figures=[figure, *figures])


# -- latency over WebSocket ------------------------------------------------------------------------


def _latency(plan: Plan) -> tuple[Table, Figure]:
    seconds = plan.size(4.0, 0.4)
    with (
        plan.folder() as folder,
        listening(greenroom_websocket(folder / "data")) as ours,
        listening(ECHO_WEBSOCKET) as peer,
    ):
        turns: dict[str, Callable[[], list[list[float]]]] = {
            "greenroom": partial(_told, ours.url, seconds),
            "echo": partial(_echoed, peer.url, seconds),
        }
        rounds = take_turns(turns, plan.size(5, 1))
    names = ("acknowledged write", "notification after its write was sent", "... after it was acknowledged")
    columns = [[each[number] for each in rounds["greenroom"]] for number in range(len(names))]
    measured = dict(zip(names, columns, strict=True)) | {"echo's round trip": [e[0] for e in rounds["echo"]]}
    rows: list[Sequence[Value]] = [
        [what, *(statistics.median(percentile(each, percent) for each in found) for percent in (50, 90, 99))]
        for what, found in measured.items()
    ]
    title = f"{WRITES_A_SECOND} writes a second to {SESSIONS} sessions, each with a subscriber on a WebSocket"
    table = Table(title=title, columns=["what", "50 % ms", "90 % ms", "99 % ms"], rows=rows)
    last = rows[len(names) - 1][-1]
    assert isinstance(last, float)
    what = f"ms from the acknowledged write to the notification, 99 %, at {WRITES_A_SECOND} writes/s"
    return table, Figure(what=what, value=last, most=10)


def _told(url: str, seconds: float) -> list[list[float]]:
    """Return the ms of the acknowledgements and, from the sending and from them on, of the notifications."""
    with ExitStack() as stack:
        writer = stack.enter_context(connected(url))
        subscribers = []
        heard: dict[str, list[float]] = {}
        for _ in range(SESSIONS):
            session = writer.call(ToolCall("create_session", {"purpose": "latency"}))["session_id"]
            subscribers.append(stack.enter_context(connected(url)))
            subscribers[-1].ask("resources/subscribe", {"uri": f"session://{session}"})
            heard[f"session://{session}"] = []
        writes = _Writes(writer, heard)
        began = _at_rate([writer, *subscribers], writes, seconds)
        writes.check()
    return _matched(writes.sent, writes.acknowledged, heard, began)


def _at_rate(clients: Sequence[Client], paced: Paced, seconds: float) -> float:
    """Send at the rate whatever happens to the answers; return when that began."""
    with exchanging([client.channel for client in clients]) as exchange:
        count = int(seconds * WRITES_A_SECOND)
        begin = time.monotonic()
        pace(exchange, paced, begin=begin, rate=WRITES_A_SECOND, count=count)
    return begin


class _Writes:
    """Writes to the sessions in turn, by the first client, and what it and the subscribers hear of them."""

    def __init__(self, writer: Client, heard: dict[str, list[float]]) -> None:
        self.sent: dict[int, tuple[str, float]] = {}
        self.acknowledged: dict[int, float] = {}
        self._writer = writer
        self._heard = heard
        self._uris = list(heard)
        self._last = 0.0

    def send(self, exchange: Exchange, number: int, due: float) -> None:  # noqa: ARG002  the sending counts
        uri = self._uris[number % SESSIONS]
        arguments = {"session_id": uri.removeprefix("session://"), "content": f"message {number}"}
        identity = self._writer.number()
        body = self._writer.call_body(identity, "add_message", msgspec.json.encode(arguments))
        self.sent[identity] = uri, time.monotonic()
        self._last = self.sent[identity][1]
        exchange.post(0, Kind("tools/call", "add_message"), body)

    def take(self, who: int, messages: list[bytes], now: float) -> None:
        for message in messages:
            if who > 0:
                self._hear(self._uris[who - 1], message, now)
                continue
            answer = read_answer(message)
            right = answer.result is not None and not answer.result.is_error
            check(right and isinstance(answer.id, int), f"a write was answered with {message!r}")
            assert isinstance(answer.id, int)
            self.acknowledged[answer.id] = now

    def goes_on(self, now: float, *, all_sent: bool) -> bool:
        check(now < self._last + PATIENCE or not self.sent, "not every write was acknowledged")
        open_ = len(self.sent) - len(self.acknowledged)
        # A notification more than there were writes, or a late one, would be heard within this time.
        return not all_sent or open_ > 0 or now < max(self.acknowledged.values()) + 2 * DEBOUNCE_SECONDS

    def check(self) -> None:
        check(self.acknowledged.keys() == self.sent.keys(), "not every write was acknowledged once")

    def _hear(self, uri: str, message: bytes, now: float) -> None:
        told = msgspec.json.decode(message)
        right = told.get("method") == UPDATED and told["params"]["uri"] == uri
        check(right, f"a subscriber of {uri} was told {message!r}")
        self._heard[uri].append(now)


def _matched(
    sent: dict[int, tuple[str, float]],
    acknowledged: dict[int, float],
    heard: dict[str, list[float]],
    began: float,
) -> list[list[float]]:
    """Return the times of each write to its notification: where some were merged, the next one."""
    writes: dict[str, list[int]] = defaultdict(list)
    for identity, (uri, _) in sent.items():
        writes[uri].append(identity)
    from_sending, from_answer = [], []
    for uri, identities in writes.items():
        told = heard[uri]
        check(told and told[-1] >= sent[identities[-1]][1], f"the last write to {uri} was not told of")
        check_windows(len(told), told[-1] - began)
        check(len(told) <= len(identities), f"{len(identities)} writes to {uri} were told {len(told)} times")
        merged = len(told) < len(identities)
        for number, identity in enumerate(identities):
            later = (moment for moment in told if moment >= sent[identity][1])
            at = next(later) if merged else told[number]
            from_sending.append((at - sent[identity][1]) * 1e3)
            from_answer.append(max(0.0, at - acknowledged[identity]) * 1e3)
    acks = [(acknowledged[identity] - at) * 1e3 for identity, (_, at) in sent.items()]
    return [acks, from_sending, from_answer]


def _echoed(url: str, seconds: float) -> list[list[float]]:
    """Return the ms of round trips at the same rate."""
    client = Client(channel_to(url))
    echoes = _Echoes()
    try:
        _at_rate([client], echoes, seconds)
    finally:
        client.close()
    return [[(after - before) * 1e3 for before, after in zip(echoes.sent, echoes.heard, strict=True)]]


class _Echoes:
    """Numbers that are said again."""

    def __init__(self) -> None:
        self.sent: list[float] = []
        self.heard: list[float] = []

    def send(self, exchange: Exchange, number: int, due: float) -> None:  # noqa: ARG002  the sending counts
        self.sent.append(time.monotonic())
        exchange.post(0, Kind(""), b"%d" % number)

    def take(self, who: int, messages: list[bytes], now: float) -> None:  # noqa: ARG002  there is one
        for message in messages:
            check(message == b"%d" % len(self.heard), "the echo is not what was said")
            self.heard.append(now)

    def goes_on(self, now: float, *, all_sent: bool) -> bool:
        check(not self.sent or now < self.sent[-1] + PATIENCE, "not every number was said again")
        return not all_sent or len(self.heard) < len(self.sent)


# -- many subscribers of one resource --------------------------------------------------------------


async def _crowd(plan: Plan) -> tuple[Table, list[Figure]]:
    count = plan.size(5_000, 50)
    with plan.folder() as folder:
        async with open_server(folder / "data") as server, _stopped() as nursery:
            writer = Writer(server)
            nursery.start_soon(writer.peer.serve)
            await writer.begin()
            quiet, loud = [
                str((await writer.tool("create_session", purpose="p"))[1]["session_id"]) for _ in "ab"
            ]
            crowd = Crowd(count, f"session://{loud}")
            for number in range(count):
                peer = Peer(server, partial(crowd.take, number), f"subscriber-{number}")
                nursery.start_soon(peer.serve)
                await peer.begin(crowd.subscribe)
            await crowd.subscribed()
            return await _measured(plan, writer, crowd, quiet, loud)


async def _measured(
    plan: Plan, writer: Writer, crowd: Crowd, quiet: str, loud: str
) -> tuple[Table, list[Figure]]:
    many = len(crowd.counts)
    writes = plan.size(50, 5)
    await _burst(writer, quiet, writes, 0)
    rows: list[Sequence[Value]] = []
    worst: list[tuple[float, float]] = []
    for pause in PAUSES:
        without: list[float] = []
        beside: list[float] = []
        told: list[float] = []
        for _ in range(plan.size(6, 1)):
            without += await _burst(writer, quiet, writes, pause)
            began = time.perf_counter()
            beside += await _burst(writer, loud, writes, pause)
            acknowledged = time.perf_counter()
            told.append(await crowd.told(acknowledged - beside[-1] / 1e3, acknowledged))
            crowd.check_windows(began)
        base, loaded = statistics.median(without), statistics.median(beside)
        worst.append((loaded / base, max(told)))
        how = f"{writes} writes, {pause * 1e3:g} ms between"
        rows.append(
            [how, base, loaded, loaded / base, percentile(without, 95), percentile(beside, 95), max(told)]
        )
    title = f"{many:,} subscribers of one resource, and a writer"
    columns = [
        "writer",
        "ack alone ms",
        "ack with ms",
        "ratio",
        "95 % alone ms",
        "95 % with ms",
        "all told s",
    ]
    figures = [
        Figure(what=f"ack with {many:,} subscribers to without", value=max(r for r, _ in worst), most=1.5),
        Figure(what=f"s from the last ack until {many:,} are told", value=max(t for _, t in worst), most=2),
    ]
    return Table(title=title, columns=columns, rows=rows), figures


async def _burst(writer: Writer, session: str, count: int, pause: float) -> list[float]:
    """Return the ms of each acknowledgement."""
    taken = []
    for number in range(count):
        await trio.sleep(pause)
        elapsed, _ = await writer.tool("add_message", session_id=session, content=f"message {number}")
        taken.append(elapsed)
    return taken


@asynccontextmanager
async def _stopped() -> AsyncIterator[trio.Nursery]:
    """Give a nursery whose tasks end with the block."""
    async with trio.open_nursery() as nursery:
        yield nursery
        nursery.cancel_scope.cancel()
