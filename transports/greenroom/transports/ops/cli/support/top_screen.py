"""The figures of `greenroom top`, computed from two samples of a server's statistics.

All functions are pure; `top` knows the viewer, the time and the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from math import ceil
from typing import Any, Final, NamedTuple

from greenroom.transports.ops.cli.support.store_texts import size
from greenroom.transports.ops.cli.support.terminal import folded, printable, width

Figures = dict[str, Any]

COUNTS: Final[Mapping[str, tuple[str, str]]] = {
    "handled": ("messages", "handled"),
    "refused": ("messages", "refused"),
    "timers": ("messages", "timers_fired"),
    "activations": ("actors", "activations"),
    "commits": ("store", "commits"),
    "works": ("store", "works"),
    "published": ("bus", "published"),
    "told": ("bus", "told"),
}
"""The counts that have a rate, by the name of the rate."""

SLOW_SLICE_MS: Final = 50.0
SLOW_COMMIT_SECONDS: Final = 1.0
SILENT_SECONDS: Final = 5  # a live process sends a sign each second
FULL: Final = 0.9  # of the quota; writes stop at 0.95

_WRONG: Final = ("failed", "overloaded", "not_committed", "dead_letters")
_TRANSPORTS: Final = {"websocket": "ws", "http": "http"}  # short, because columns are narrow
_NAMED: Final = 3  # at most so many quarantined actors are named; `greenroom stats` names all
_WIDTH: Final = 39  # columns of one group; an ordinary terminal has room for two, in three rows
_GAP: Final = 2  # the least columns between a name and its value
_BARS: Final = " ▁▂▃▄▅▆▇█"


class Sample(NamedTuple):
    """The statistics of a server at one moment."""

    moment: float  # the time in seconds of a monotonic clock
    figures: Figures  # the reply of the control socket to `stats`


class GaugeRow(NamedTuple):
    """One figure with its name; if the figure is `alarming`, it needs attention."""

    name: str
    value: str
    alarming: bool = False


class GaugeGroup(NamedTuple):
    """A group of figures that belong together."""

    title: str
    gauges: list[GaugeRow]


def rates(now: Sample, before: Sample | None) -> dict[str, float | None]:
    """Return the rate per second of each count between two samples; None if unknown.

    A rate is unknown for the first sample of a server, and for the first sample after a restart.
    """
    if before is None or now.moment <= before.moment:
        return dict.fromkeys(COUNTS)
    grown = {
        name: now.figures[part][count] - before.figures[part][count] for name, (part, count) in COUNTS.items()
    }
    if min(grown.values()) < 0:  # counts begin at a server's start, so this is another server
        return dict.fromkeys(COUNTS)
    return {name: count / (now.moment - before.moment) for name, count in grown.items()}


def groups(now: Sample, before: Sample | None) -> list[GaugeGroup]:
    """Return all groups of a frame."""
    figures = now.figures
    actors, messages, store, bus = (figures[part] for part in ("actors", "messages", "store", "bus"))
    commits, dispatcher, speed = figures["commits"], figures["dispatcher"], rates(now, before)
    works, commits_a_second = speed["works"], speed["commits"]
    together = works / commits_a_second if works is not None and commits_a_second else None
    return [
        GaugeGroup(
            "requests",
            [
                GaugeRow("waiting", f"{messages['waiting']:,}"),
                GaugeRow("handled", _counted(messages["handled"], speed["handled"])),
                GaugeRow("refused", _counted(messages["refused"], speed["refused"])),
                GaugeRow("timers", _counted(messages["timers_fired"], speed["timers"])),
                GaugeRow("given up", f"{messages['abandoned']:,}"),
                GaugeRow("too late", f"{messages['expired']:,}", messages["expired"] > 0),
            ],
        ),
        GaugeGroup("slow or wrong", list(_troubles(figures))),
        GaugeGroup(
            "actors",
            [
                GaugeRow("in memory", f"{actors['resident']:,}"),
                GaugeRow("their size", size(actors["resident_bytes"])),
                GaugeRow("have a turn due", f"{dispatcher['ready']:,}"),
                GaugeRow("activated", _counted(actors["activations"], speed["activations"])),
                GaugeRow("passivated", f"{actors['passivations']:,}"),
                GaugeRow("restarted", f"{actors['restarts']:,}", actors["restarts"] > 0),
            ],
        ),
        GaugeGroup(
            "commits",
            [
                GaugeRow("waiting, in flight", f"{commits['collected']:,}, {commits['in_flight']:,}"),
                GaugeRow("commits", _counted(store["commits"], speed["commits"])),
                GaugeRow("works", _counted(store["works"], speed["works"])),
                GaugeRow("works each", "-" if together is None else f"{together:,.1f}"),
                _commit("last", store["last_commit_seconds"]),
                _commit("slowest", store["max_commit_seconds"]),
            ],
        ),
        GaugeGroup(
            "clients",
            [
                GaugeRow("connected", _connected(figures)),
                GaugeRow("subscribers", f"{bus['subscribers']:,}"),
                GaugeRow("subscriptions", f"{bus['subscriptions']:,}"),
                GaugeRow("still telling", f"{bus['waiting']:,}"),
                GaugeRow("published", _counted(bus["published"], speed["published"])),
                GaugeRow("told", _counted(bus["told"], speed["told"])),
            ],
        ),
        GaugeGroup(
            "store",
            [
                GaugeRow("used", size(store["used_bytes"]), store["used_bytes"] > FULL * store["map_bytes"]),
                GaugeRow("quota", size(store["map_bytes"])),
                GaugeRow("file", size(store["file_bytes"])),
                GaugeRow("disk free", size(store["disk_free"])),
                GaugeRow("rows", f"{store['rows']:,}"),
                GaugeRow("scans open", f"{store['scans']:,}"),
            ],
        ),
        *_processes(figures),
    ]


def line(now: Sample, before: Sample | None) -> str:
    """Return one line with the most important figures and all alarms."""
    figures, speed = now.figures, rates(now, before)
    store, commits = figures["store"], figures["commits"]
    parts = [
        f"handled {_speed(speed['handled'])}, waiting {figures['messages']['waiting']:,}",
        f"actors {figures['actors']['resident']:,}",
        f"commits {_speed(speed['commits'])}, in flight {commits['collected'] + commits['in_flight']:,}",
        f"last {_time(store['last_commit_seconds'])}, slowest {_time(store['max_commit_seconds'])}",
        f"subscribers {figures['bus']['subscribers']:,}, told {_speed(speed['told'])}",
        *(
            f"{gauge.name} {gauge.value}"
            for group in groups(now, before)
            for gauge in group.gauges
            if gauge.alarming
        ),
    ]
    return " | ".join(parts)


def plain(shown: list[GaugeGroup]) -> str:
    """Render a frame as plain text."""
    return "\n\n".join(
        "\n".join([group.title, *(f"  {gauge.name:<19}{gauge.value:>19}" for gauge in group.gauges)])
        for group in shown
    )


def tables(shown: list[GaugeGroup], columns: int, paint: Callable[..., str]) -> Iterator[str]:
    """Yield the lines of a frame, with groups side by side."""
    beside = max(1, (columns + 1) // (_WIDTH + 1))
    for start in range(0, len(shown), beside):
        some = [_table(group, paint) for group in shown[start : start + beside]]
        for row in zip_longest(*some, fillvalue=" " * _WIDTH):
            yield " ".join(row)


def _table(group: GaugeGroup, paint: Callable[..., str]) -> list[str]:
    """Render a group as lines of equal width."""
    names = max(width(gauge.name) for gauge in group.gauges)
    lines = [paint(group.title, "bold") + " " * (_WIDTH - width(group.title))]
    for gauge in group.gauges:
        styles = ("bold", "red") if gauge.alarming else ()
        for number, part in enumerate(folded(gauge.value, _WIDTH - names - _GAP)):
            name = "" if number else gauge.name
            gap = " " * (_WIDTH - width(name) - width(part))
            lines.append(paint(name, "dim") + gap + paint(part, *styles))
    return lines


def bars(values: list[float]) -> str:
    """Render values as a row of bars; the largest value has a full bar."""
    top = max(values, default=0.0)
    if not top:
        return _BARS[0] * len(values)
    return "".join(_BARS[ceil(value / top * (len(_BARS) - 1))] for value in values)


def _troubles(figures: Figures) -> Iterator[GaugeRow]:
    slice_ms = figures["dispatcher"]["longest_slice_ms"]
    yield GaugeRow("longest slice", f"{slice_ms:,.1f} ms", slice_ms > SLOW_SLICE_MS)
    set_aside = figures["actors"]["set_aside"]
    named = ", ".join(map(printable, set_aside[:_NAMED])) or "none"
    more = f" and {len(set_aside) - _NAMED:,} more" if len(set_aside) > _NAMED else ""
    yield GaugeRow("set aside", named + more, bool(set_aside))
    for name in _WRONG:
        count = figures["messages"][name]
        yield GaugeRow(name.replace("_", " "), f"{count:,}", count > 0)


def _processes(figures: Figures) -> Iterator[GaugeGroup]:
    """Yield the group of figures of the processes that share the folder."""
    relay = figures.get("relay")
    if relay is not None:
        pids = relay["attached_pids"]
        more = f" and {len(pids) - _NAMED:,} more" if len(pids) > _NAMED else ""
        named = " ".join(map(str, pids[:_NAMED])) + more
        silent = relay["silent_seconds"]
        yield GaugeGroup(
            "processes on the folder",
            [
                GaugeRow("owner", str(relay["owner_pid"])),
                GaugeRow("attached", f"{len(pids):,}"),
                GaugeRow("their ids", named or "-"),
                GaugeRow("relayed, waiting", f"{relay['unanswered']:,}"),
                GaugeRow("silent attached", f"{silent:,} s", silent >= SILENT_SECONDS),
                GaugeRow("takeovers seen", f"{relay['takeovers']:,}"),
            ],
        )


def _connected(figures: Figures) -> str:
    """Return the connected clients by transport; clients on standard input are left out."""
    counts = (
        f"{figures[transport]['connections']:,} {short}"
        for transport, short in _TRANSPORTS.items()
        if transport in figures
    )
    return ", ".join(counts) or "-"


def _counted(count: int, speed: float | None) -> str:
    return f"{count:,}  {_speed(speed):>9}"


def _speed(speed: float | None) -> str:
    if speed is None:
        return "-/s"
    return f"{speed:,.0f}/s" if speed >= 10 or speed == 0 else f"{speed:.1f}/s"  # noqa: PLR2004 - two digits


def _time(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


def _commit(name: str, seconds: float) -> GaugeRow:
    return GaugeRow(name, _time(seconds), seconds > SLOW_COMMIT_SECONDS)
