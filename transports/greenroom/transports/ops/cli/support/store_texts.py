"""Results of the store commands as text for people; programs use `--json`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from greenroom.actors.content.times.in_words import in_words
from greenroom.transports.ops.cli.support.terminal import printable

Result = dict[str, Any]


def _backup(result: Result) -> str:
    lines = [f"{result['path']} holds a backup of {size(result['file_bytes'])}", _tables(result)]
    return "\n".join([*lines, *_damaged(result)])


def _damaged(result: Result) -> list[str]:
    """Return the lines about damaged records, of which there may be many."""
    names = result["damaged"]
    return [_DAMAGED.format(len(names)), *(f"  {name}" for name in names)] if names else []


_DAMAGED: Final = (
    "damaged records: {:,}. They are in it as they are in the store, and all others are sound; `greenroom "
    "restore` brings back an older backup, and `greenroom repair` writes what is sound into a new file:"
)


def _verify(result: Result) -> str:
    lines = [f"{result['folder']} is sound: {size(result['file_bytes'])}", _tables(result)]
    found = result["index"]
    lines += [f"in {root}: {problem}" for root, problem in found["problems"]]
    lines += [f"the index of {root} was rebuilt" for root in found["rebuilt"]]
    lines += _imitations(found.get("imitations", ()))
    if differs(result):
        lines.append("rebuild what differs with `greenroom verify --rebuild`")
    if found.get("unindexed"):
        lines.append(
            f"{found['unindexed']:,} memories of an older program are in no index yet, so that nothing was "
            "compared: the first search puts them into one, or `greenroom verify --rebuild`"
        )
    elif not found["rebuilt"] and not differs(result):
        chunks = f", and what the documents say: {found['chunks']:,} chunks" if found.get("chunks") else ""
        lines.append(f"the index says what the memories say: {found['memories']:,}{chunks}")
    return "\n".join(lines)


def _imitations(roots: Iterable[str]) -> list[str]:
    return [
        f"the namespace {root} looks like a user's own and is open to everyone: move what is in it"
        for root in roots
    ]


def differs(result: Result) -> bool:
    """Whether the indexes differ from memories or documents and were not repaired."""
    found = result.get("index", {"problems": [], "rebuilt": []})
    return any(root not in found["rebuilt"] for root, _ in found["problems"])


def _restore(result: Result) -> str:
    kept = f"\nthe store that was there is kept as {result['kept']}" if result["kept"] else ""
    lost = ""
    if not result["has_secret"]:
        lost = f"\n{_LOST if result['needs_secret'] else _UNNEEDED}"
    elif not result["has_list"]:
        lost = f"\n{_UNLISTED}"
    damaged = "".join(f"\n{line}" for line in _damaged(result))
    return f"{result['folder']} holds the backup's store\n{_tables(result)}{damaged}{kept}{lost}"


_LOST: Final = (
    "the store's secret is not here, and no server starts without it: bring it with `greenroom secret "
    "import FILE`, or end API keys and passports of before with `greenroom serve --new-secret`"
)

_UNNEEDED: Final = (
    "the store's secret is not here, and no API key or passport needs it: the next start makes a new one, "
    "and `greenroom audit verify` cannot prove records of before"
)

_UNLISTED: Final = (
    "the list of what has ended since is not beside the store's secret: bring it there before the next "
    "start, or API keys that were revoked and one-time passports that were taken since the backup are good "
    "again; `greenroom keys list` shows the keys"
)


_UNLISTED_ROWS: Final = (
    "rows of indexes are missing: {restating:,} sessions, namespaces and imports write theirs again when "
    "what was saved is first opened; a timer or a message on its way may be gone"
)


_NEXT: Final = (
    "the damaged store is as it was; `greenroom restore {path}` puts what was saved in its place and keeps "
    "the damaged file beside it"
)


def _repair(result: Result) -> str:
    lines = [f"{result['path']} holds what is sound: {size(result['file_bytes'])}", _tables(result)]
    if not result["ranges"]:
        return "\n".join([*lines, "nothing is missing", _NEXT.format(path=result["path"])])
    missing = result["missing_rows"]
    lines.append("one row cannot be read:" if missing == 1 else f"{missing:,} rows cannot be read:")
    lines += [
        f"  {each['table']}, from {each['start']!r} to before {each['end'] or 'the end'!r}: {each['why']}"
        for each in result["ranges"]
    ]
    if any(each["table"] == "indexes" for each in result["ranges"]):
        lines.append(_UNLISTED_ROWS.format(restating=result["restating"]))
    lines += [f"left out: {printable(name)}" for name in result["left_out"]]
    lines += [f"set aside, since it may lack something: {address}" for address in result["set_aside"]]
    lines += [f"mended, with every API key revoked: {address}" for address in result["mended"]]
    lines.append(_NEXT.format(path=result["path"]))
    return "\n".join(lines)


def _encrypt(result: Result) -> str:
    lines = [f"{result['folder']} is encrypted", _tables(result)]
    if not result["tables"]:
        lines = [f"{result['folder']} is encrypted already"]
    lines += [f"{path} is still in the clear" for path in result["in_the_clear"]]
    return "\n".join(lines)


def _stats(result: Result) -> str:
    lines = ["a server is running" if result["running"] else "no server is running"]
    lines += _imitations(result["imitations"])
    for part, figures in result.items():
        if isinstance(figures, dict):
            lines += ["", part]
            lines += [f"  {_named(name):<24} {_figure(name, value):>16}" for name, value in figures.items()]
        elif part not in {"running", "imitations"} and figures is not None:
            lines += ["", f"{_named(part):<26} {_figure(part, figures):>16}"]
    return "\n".join(lines)


def _tables(result: Result) -> str:
    rows = [
        f"  {each['name']:<10} {each['rows']:>14,} rows {size(each['bytes']):>12}"
        for each in result["tables"]
    ]
    return "\n".join(rows)


def _named(name: str) -> str:
    return name.removesuffix("_seconds").removesuffix("_ms").replace("_", " ")


def _figure(name: str, value: Any) -> str:
    match value:
        case None:
            return "-"
        case str():
            return value
        case list():
            return ", ".join(map(str, value)) or "none"
        case dict():  # a distribution: show its average
            return _number(name, round(value["sum"] / max(value["count"], 1), 6))
        case _:
            return _number(name, value)


def _number(name: str, value: float) -> str:
    if name.endswith("_bytes") or name == "disk_free":
        return size(value)
    if name.endswith("_seconds"):
        return in_words(timedelta(seconds=value)) or (
            f"{value:,.1f} s" if value >= 1 else f"{value * 1000:,.1f} ms"
        )
    if name.endswith("_at"):
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S} UTC"
    if name.endswith("_ms"):
        return f"{value:,.1f} ms"
    return str(value) if name.endswith("_pid") else f"{value:,}"


def size(count: float) -> str:
    """Format a number of bytes in the largest unit that fits."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:  # noqa: PLR2004 - the factor between two units
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"


TEXTS: Final[Mapping[str, Callable[[Result], str]]] = {
    "backup": _backup,
    "restore": _restore,
    "repair": _repair,
    "encrypt": _encrypt,
    "downgrade": lambda result: (
        f"{result['folder']} has store format {result['format']}{'' if result['changed'] else ' already'}; "
        "start the earlier program now, since the next start of this one changes the format again"
    ),
    "rekey": lambda result: f"{result['folder']} opens with the new key from now on",
    "secret": lambda result: (
        f"the store in {result['folder']} has a new secret with the mark {result['mark']}: {result['path']}"
    ),
    "verify": _verify,
    "stats": _stats,
    "readmit": lambda _result: "the actor is readmitted",
}
