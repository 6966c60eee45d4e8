"""The check of the locks: the owner's state, and how the last one ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from greenroom.transports.base import exit_codes
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, error, ok, warning

_TOPIC: Final = "locks"
_NOT_UNDERSTOOD: Final = "the request cannot be understood"
_RESTORE: Final = "bring a backup back with `greenroom restore`, or see `greenroom verify`"


def check(facts: Facts) -> Iterator[Finding]:
    """Report the owner of the folder, or how the last one left it."""
    if facts.lock_trouble:
        sentence = f"who owns the folder cannot be found out: {facts.lock_trouble}"
        yield error(_TOPIC, sentence, "give this user the right to read it", exit_codes.NO_ACCESS)
    elif facts.owner is not None:
        yield from _owner(facts, facts.owner)
    elif facts.place.kind in {"store", "no store"}:
        yield from _left(facts)


def _owner(facts: Facts, owner: int) -> Iterator[Finding]:
    name = f"process {owner}" if owner else "a process of another machine or container"
    if facts.figures is not None:
        yield ok(_TOPIC, f"{name} owns the folder and answers{_attached(facts)}")
        relay = (facts.parts or {}).get("relay")
        if relay is not None and relay.status != "ok":
            remedy = "end the attached process that hangs; see `greenroom stats`, attached pids"
            yield warning(_TOPIC, relay.cause, remedy)
    elif facts.owner_trouble and _is_stopped(owner):
        sentence = f"{name} owns the folder and was suspended: {facts.owner_trouble}"
        yield error(_TOPIC, sentence, f"continue it: kill -CONT {owner}", exit_codes.OWNED)
    elif _NOT_UNDERSTOOD in facts.owner_trouble:
        sentence = f"{name} owns the folder and its version does not know this request: {facts.owner_trouble}"
        yield warning(_TOPIC, sentence, "restart the clients that started it, so that all have one version")
    elif facts.owner_trouble:
        remedy = (
            f"end it, which loses nothing that was answered: kill {owner}, and if it stays kill -KILL {owner}"
            if owner
            else "look for it where this folder is mounted, too"
        )
        yield error(_TOPIC, f"{name} owns the folder: {facts.owner_trouble}", remedy, exit_codes.OWNED)
    else:
        yield warning(
            _TOPIC,
            f"{name} owns the folder and does not listen: a server that is starting or checks the store, "
            "a command on a stopped store, or a program with a store of its own",
            "wait until it has ended, or ask again in a moment",
        )


def _attached(facts: Facts) -> str:
    relay = (facts.figures or {}).get("relay") or {}
    pids = relay.get("attached_pids") or []
    many = "process is" if len(pids) == 1 else "processes are"
    return f"; {len(pids)} other {many} attached: {', '.join(map(str, pids))}" if pids else ""


def _is_stopped(owner: int) -> bool:
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types; rarely needed

    try:
        return owner > 0 and psutil.Process(owner).status() == psutil.STATUS_STOPPED
    except psutil.Error:
        return False


def _left(facts: Facts) -> Iterator[Finding]:
    lock = facts.lock
    match None if lock is None else lock.left:
        case "lost":
            sentence = f"the store was in {facts.place.path} when its last owner left, and is gone or empty"
            remedy = f"{_RESTORE}; or remove owner.lock there to begin anew"
            yield error(_TOPIC, sentence, remedy, exit_codes.DAMAGED)
        case "doubt":
            sentence = "the last owner found damage in the store; the next start reads all of it first"
            yield error(_TOPIC, sentence, _RESTORE, exit_codes.DAMAGED)
        case "fault":
            fault = lock.fault if lock is not None else ""
            sentence = f"the last owner died of a fault of its own ({fault}), perhaps of a damaged file"
            yield warning(_TOPIC, sentence, "check the store: greenroom verify")
        case "changed":
            sentence = "the store was changed or replaced while no process owned it"
            yield warning(_TOPIC, sentence, "check the store: greenroom verify")
        case "died":
            yield ok(
                _TOPIC,
                "no process owns the folder; the last one was killed or went down with the system, so the "
                "next start checks what it has to",
            )
        case "other files":
            sentence = (
                "the store was open when its last owner ended or the folder was copied, and these are other "
                "files, or the system has started since: the next start checks its structure"
            )
            yield warning(_TOPIC, sentence, "start a server, or check the store: greenroom verify")
        case _:
            yield ok(_TOPIC, "no process owns the folder, and the last one left it in order")
