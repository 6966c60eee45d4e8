"""What a process writes to a file, as `strace` records it, and the file as a power cut would have left it.

A write is certain once a sync of the file has ended that began after it, or at its own end where the file was
opened with O_DSYNC. Whatever else was written until the cut may be on the disk or not, each sector by itself.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

Followed = Literal["none", "some", "all", "torn"]
"""What of the writes after the last sync is on the disk."""
CALLS: Final = "openat,lseek,write,writev,pwrite64,pwritev,pwritev2,ftruncate,fallocate,fsync,fdatasync,msync"
STRACE: Final = (
    "strace",
    "-f",
    "-qq",
    "-v",
    "-y",
    "-xx",
    "-s",
    "4000000",
    "-e",
    "signal=none",
    "--seccomp-bpf",
)
SECTOR: Final = 512
PAGE: Final = 4_096
_BYTES: Final = re.compile(rb'"((?:\\x[0-9a-f]{2})*)"')
_LINE: Final = re.compile(rb"^(\d+) +(?:<\.\.\. )?(\w+)")
_PLACE: Final = re.compile(rb"^\d+ +\w+\((\d+)<([^>]*)>")
_DONE: Final = re.compile(rb"\) += (-?\d+)")
_OFFSET: Final = re.compile(rb", (\d+)\) += ")


class Put(NamedTuple):
    """Bytes that are written to the file at an offset."""

    offset: int
    data: bytes


class Event(NamedTuple):
    """What happened next.

    Attributes:
        put: What was written to the file.
        is_sync: Whether what was written before is certain now.
        said: What was written to standard output.
    """

    put: Put | None = None
    is_sync: bool = False
    said: bytes = b""


class UnknownCallError(Exception):
    """The file was written in a way that cannot be replayed."""


def command(trace: Path) -> list[str]:
    """Return what a command is prefixed with to be recorded."""
    return [*STRACE, "-e", f"trace={CALLS}", "-o", str(trace)]


def events(trace: Path, file: Path) -> list[Event]:
    """Return what happened to a file, and what was said, in order."""
    found: list[Event] = []
    surely: set[int] = set()
    """Descriptors whose writes are certain when they have ended."""
    places: dict[int, int] = {}
    spoken = b""
    """The pipe of the server's answers; its children have standard outputs of their own."""
    for call, text in _whole(trace):
        place = _PLACE.match(text)
        if call == b"openat":
            (surely.add if b"SYNC" in text else surely.discard)(_result(text))
        elif place is not None and call == b"write" and place[1] == b"1":
            spoken = spoken or (place[2] if _data(text).startswith(b"{") else b"")
            if place[2] == spoken:
                found.append(Event(said=_data(text)))
        elif place is not None and _path(place[2]) == str(file):
            descriptor = int(place[1])
            if call == b"lseek":
                places[descriptor] = _result(text)
            else:
                found += _of_file(call, text, places.pop(descriptor, None))
                if descriptor in surely:
                    found.append(Event(is_sync=True))
    return found


def _of_file(call: bytes, text: bytes, place: int | None) -> Iterator[Event]:
    if call in {b"fsync", b"fdatasync"}:
        yield Event(is_sync=True)
    elif call == b"writev" and place is not None:  # what LMDB writes of several pages, behind an lseek
        yield Event(put=Put(place, _data(text)[: _result(text)]))
    elif call in {b"pwrite64", b"pwritev"} and (offset := _OFFSET.search(text)) is not None:
        yield Event(put=Put(int(offset[1]), _data(text)[: _result(text)]))
    else:
        raise UnknownCallError(text[:200].decode(errors="replace"))


class _Call(NamedTuple):
    call: bytes
    text: bytes


def _whole(trace: Path) -> Iterator[_Call]:
    """Yield calls when they have ended, those that others interrupted put together."""
    begun: dict[bytes, bytes] = {}
    with trace.open("rb") as lines:
        for line in lines:
            head = _LINE.match(line)
            if head is None:
                continue
            if line.endswith(b"<unfinished ...>\n"):
                begun[head[1]] = line.removesuffix(b" <unfinished ...>\n")
                continue
            is_rest = b"<... " in line[:20]
            text = begun.pop(head[1], b"") + line.partition(b" resumed>")[2] if is_rest else line
            if _DONE.search(text) is not None and _result(text) >= 0:
                yield _Call(head[2], text)


def _result(text: bytes) -> int:
    done = _DONE.search(text)
    assert done is not None, text[-200:]
    return int(done[1])


def _path(text: bytes) -> str:
    """Return a path, which the recording spells in hexadecimal."""
    return (
        bytes.fromhex(text.decode().replace("\\x", "")).decode() if text.startswith(b"\\x") else text.decode()
    )


def _data(text: bytes) -> bytes:
    return b"".join(bytes.fromhex(part.decode().replace("\\x", "")) for part in _BYTES.findall(text))


class Cut(NamedTuple):
    """A moment at which the power went.

    Attributes:
        certain: How many of the events are certainly on the disk.
        at: How many had happened.
    """

    certain: int
    at: int


def cuts(recorded: Sequence[Event]) -> list[Cut]:
    """Return the last moments before each sync had ended, at which something was uncertain."""
    found = []
    last = 0
    for number, event in enumerate(recorded):
        if event.is_sync:
            if any(each.put for each in recorded[last:number]):
                found.append(Cut(last, number))
            last = number + 1
    return found


def image(
    base: bytes, recorded: Sequence[Event], cut: Cut, followed: Followed, chance: random.Random
) -> bytes:
    """Return the file as the power cut leaves it."""
    content = bytearray(base)
    for event in recorded[: cut.certain]:
        if event.put is not None:
            _write(content, event.put)
    uncertain = [part for event in recorded[cut.certain : cut.at] if event.put for part in _pages(event.put)]
    match followed:
        case "none":
            uncertain = []
        case "some":
            uncertain = [part for part in uncertain if chance.random() < 0.5]
        case "torn":
            uncertain = [part for page in uncertain for part in _torn(page, chance)]
        case "all":
            pass
    for part in uncertain:
        _write(content, part)
    return bytes(content)


def _write(content: bytearray, put: Put) -> None:
    if len(content) < put.offset:
        content.extend(bytes(put.offset - len(content)))
    content[put.offset : put.offset + len(put.data)] = put.data


def _pages(put: Put, size: int = PAGE) -> Iterator[Put]:
    """Yield the parts of a write by the pages that they are on."""
    at = 0
    while at < len(put.data):
        here = min(size - (put.offset + at) % size, len(put.data) - at)
        yield Put(put.offset + at, put.data[at : at + here])
        at += here


def _torn(page: Put, chance: random.Random) -> list[Put]:
    """Return some of the sectors of a page; of every third one all or none."""
    if chance.random() < 1 / 3:
        return [page] if chance.random() < 0.5 else []
    return [sector for sector in _pages(page, SECTOR) if chance.random() < 0.5]
