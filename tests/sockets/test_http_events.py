"""The events of a session: what is kept for a client that comes back, and what is let go."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.transports.sockets.http.event_log import EventLog, Stream, event, priming

LINE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%d}}\n'
EVENT = re.compile(rb"id: ([0-9]+-[0-9]+)\r\nevent: message\r\ndata: (.*)\r\n\r\n")


class Seat:
    """Stands where an exchange writes a stream to a client."""

    def __init__(self) -> None:
        self.woken = 0
        self.left = False

    def wake(self) -> None:
        self.woken += 1

    def leave(self) -> None:
        self.left = True


def log(size: int = 10_000, updates: int = 100) -> EventLog:
    return EventLog(size, updates)


def told(data: bytes) -> list[tuple[bytes, bytes]]:
    """Return the ids and the messages of events as they go over the wire."""
    found = EVENT.findall(data)
    assert b"".join(event(line, each) for each, line in found) == data
    return found


def lines(data: bytes) -> list[bytes]:
    return [line for _, line in told(data)]


def update(name: str) -> bytes:
    uri = f"session://{name}"
    return (
        b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"%b"}}\n' % uri.encode()
    )


def message(number: int) -> bytes:
    return LINE % number


def test_an_event_is_one_line_of_data_with_its_id() -> None:
    assert event(b'{"a":1}\n') == b'event: message\r\ndata: {"a":1}\r\n\r\n'
    assert event(b'{"a":1}\n', b"3-17") == b'id: 3-17\r\nevent: message\r\ndata: {"a":1}\r\n\r\n'
    assert priming(b"0-0", 1.5) == b"id: 0-0\r\nretry: 1500\r\ndata: \r\n\r\n"


def test_a_reader_is_given_each_event_once_and_in_order() -> None:
    stream, seat = log().begin(), Seat()
    stream.add(message(1))
    stream.attach(seat)
    assert stream.waiting == len(message(1))
    stream.add(message(2))
    assert seat.woken == 1
    assert lines(stream.take()) == [message(1)[:-1], message(2)[:-1]]
    assert stream.take() == b""
    assert stream.waiting == 0
    stream.end(message(3))
    assert (stream.over, lines(stream.take())) == (True, [message(3)[:-1]])


def test_ids_are_unique_in_a_session() -> None:
    events = log()
    streams = [events.own, events.begin(), events.begin()]
    for number in range(30):
        streams[number % 3].add(message(number))
    ids = [each for stream in streams for each, _ in told(stream.take())]
    assert len(set(ids)) == 30


@pytest.mark.promise("http.resumable")
def test_a_client_that_comes_back_gets_what_came_after_the_event_it_names() -> None:
    events = log()
    stream, other, seat = events.begin(), events.begin(), Seat()
    first = stream.mark()
    stream.attach(seat)
    for number in range(4):
        stream.add(message(number))
        other.add(message(10 + number))
    given = told(stream.take())
    stream.detach(seat)
    stream.end(message(4))
    for seen, (last, _) in enumerate(given):
        assert (found := events.find(last)) is stream
        assert lines(found.take()) == [message(each)[:-1] for each in range(seen + 1, 5)]
    assert events.find(first) is stream
    assert len(lines(stream.take())) == 5


@pytest.mark.parametrize(
    "id",
    [
        b"",
        b"x",
        b"1",
        b"1-",
        b"-1",
        b"1-1-1",
        b"01-1",
        b"1-99",
        b"9-1",
        b"1--1",
        b"1-" + b"9" * 40,
        b"\xff-1",
    ],
)
def test_an_id_that_is_none_names_nothing(id: bytes) -> None:
    events = log()
    events.begin().add(message(1))
    assert events.find(id) is None


@pytest.mark.promise("http.resumable")
def test_a_stream_that_is_over_and_was_read_to_its_end_is_not_come_back_for() -> None:
    events = log()
    stream = events.begin()
    stream.end(message(1))
    ((last, _),) = told(stream.take())
    assert events.find(last) is None
    assert events.find(events.own.mark()) is events.own


def test_who_comes_back_takes_the_stream_from_who_had_it() -> None:
    events, dead, back = log(), Seat(), Seat()
    events.own.attach(dead)
    events.own.add(message(1))
    ((last, _),) = told(events.own.take())
    events.own.add(message(2))
    found = events.find(last)
    assert found is events.own
    found.attach(back)
    assert (dead.left, back.left) == (True, False)
    events.own.detach(dead)  # it notices late, and changes nothing
    assert events.own.reader is back
    assert lines(found.take()) == [message(2)[:-1]]


@pytest.mark.promise("http.resumable", "http.bounded")
def test_the_oldest_events_go_when_there_are_too_many() -> None:
    events = log(size=10 * len(message(10)))
    stream, seat = events.begin(), Seat()
    start = stream.mark()
    stream.attach(seat)
    for number in range(10, 99):
        stream.add(message(number))
        stream.take()
    stream.detach(seat)
    assert events.find(start) is stream
    assert lines(stream.take()) == [message(number)[:-1] for number in range(89, 99)]


def test_a_single_event_is_kept_however_large_it_is() -> None:
    events = log(size=10)
    stream = events.begin()
    start = stream.mark()
    stream.end(message(1))
    assert events.find(start) is stream
    assert lines(stream.take()) == [message(1)[:-1]]


def test_what_waits_for_a_client_that_is_there_is_not_let_go() -> None:
    events = log(size=10)
    stream, seat = events.begin(), Seat()
    stream.attach(seat)
    for number in range(50):
        stream.add(message(number))
        events.own.add(message(number))
    assert len(lines(events.own.take())) == 1
    assert len(lines(stream.take())) == 50


@pytest.mark.promise("http.subscriptions-kept")
def test_updates_of_one_resource_that_nobody_reads_are_one() -> None:
    events = log(size=10)
    for _ in range(1_000):
        for name in ("a", "b"):
            events.own.add(update(name))
    events.own.add(update("c"))
    assert lines(events.own.take()) == [update(name)[:-1] for name in ("a", "b", "c")]
    events.own.add(update("a"))
    assert lines(events.own.take()) == [update("a")[:-1]]


@pytest.mark.promise("http.subscriptions-kept", "http.resumable")
def test_however_long_a_client_was_away_it_hears_of_each_resource_that_changed() -> None:
    events = log(size=10, updates=2_000)
    start = events.own.mark()
    seat = Seat()
    events.own.attach(seat)
    for number in range(1_000):
        events.own.add(update(f"s{number}"))
    events.own.take()
    events.own.detach(seat)
    for number in range(0, 1_000, 2):
        events.own.add(update(f"s{number}"))
    assert events.find(start) is events.own
    assert set(lines(events.own.take())) == {update(f"s{number}")[:-1] for number in range(1_000)}


@pytest.mark.promise("http.bounded")
def test_updates_are_bounded_too() -> None:
    events = log(updates=5)
    for number in range(20):
        events.own.add(update(f"s{number}"))
    assert lines(events.own.take()) == [update(f"s{number}")[:-1] for number in range(15, 20)]


def test_an_update_on_the_stream_of_a_request_is_an_event_like_any_other() -> None:
    stream = log().begin()
    stream.add(update("a"))
    stream.add(update("a"))
    assert len(lines(stream.take())) == 2


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(0, 2)),
        st.tuples(st.sampled_from(["update", "take", "attach", "detach", "resume"]), st.integers(0, 2)),
    ),
    max_size=60,
)


@pytest.mark.promise("http.resumable")
@given(STEPS)
def test_whatever_happens_nothing_is_lost_or_doubled_while_there_is_room(
    steps: list[tuple[str, int]],
) -> None:
    events = log(size=1 << 20, updates=1_000)
    streams = [events.own, events.begin(), events.begin()]
    seats = [Seat(), Seat(), Seat()]
    said: list[list[bytes]] = [[], [], []]
    heard: list[list[bytes]] = [[], [], []]
    last = [stream.mark() for stream in streams]
    for count, (step, which) in enumerate(steps):
        stream, seat = streams[which], seats[which]
        if step == "say":
            stream.add(message(count))
            said[which].append(message(count)[:-1])
        elif step == "update":
            events.own.add(update(str(which)))
        elif step == "attach":
            stream.attach(seat)
        elif step == "detach":
            stream.detach(seat)
        elif step == "resume":
            assert events.find(last[which]) is stream
        else:
            _hear(stream, heard[which], last, which)
    for which, stream in enumerate(streams):
        _hear(stream, heard[which], last, which)
        assert [line for line in heard[which] if b"resources/updated" not in line] == said[which]
        assert stream.waiting == 0


def _hear(stream: Stream, heard: list[bytes], last: list[bytes], which: int) -> None:
    for each, line in told(stream.take()):
        heard.append(line)
        last[which] = each
