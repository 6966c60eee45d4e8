"""`greenroom passport`: exports sessions to files, restores sessions, and lists signers.

If a server is running, the command attaches to it, and the server does the work.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any, Final

import msgspec

from greenroom.actors import Agent, ExportSession, ReadResource, RestoreSession
from greenroom.actors.core.auth.scopes import SESSIONS
from greenroom.actors.sessions.passports import envelope
from greenroom.actors.sessions.passports.signing import Signers
from greenroom.runtime import GreenroomError, Refusal, SharedRuntime
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.base.errors import FileAccessError
from greenroom.transports.ops.cli.output import complain, say
from greenroom.transports.ops.cli.support.authentication import acting_principal
from greenroom.transports.ops.cli.support.open_store import (
    embedder_choice,
    open_for_dry_run,
    open_store,
    passport_options,
)
from greenroom.transports.ops.cli.support.passphrase import read_passphrase

CLIENT: Final = "greenroom"
_OWN_ALONE: Final = 0o600


class _PassportCommandError(GreenroomError):
    """The action failed; the message has the reason."""


async def passport(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Run an action on passports; return the exit code."""
    settings = resolved.settings
    try:
        embedder = embedder_choice(settings, os.environ)
        text = _read(Path(chosen.file)) if chosen.action in {"show", "restore"} else ""
        if chosen.action == "show":
            opening = open_for_dry_run("passport", settings, embedder)
        else:
            opening = open_store(settings, embedder, may="create" if chosen.action == "restore" else "own")
        async with opening as runtime:
            match chosen.action:
                case "signer":
                    document = {"signer": Signers(runtime.derive).name}
                case "show":
                    document = _describe(settings, runtime, text)
                case "export":
                    document = await _export(chosen, settings, runtime)
                case _:
                    document = await _restore(settings, runtime, text)
    except ValueError as error:
        return complain("passport", str(error), exit_codes.FAILED)
    if chosen.json:
        say(json.dumps(document, indent=2))
    else:
        for name, value in document.items():
            if value is not None:  # None for example if the session was here already
                say(f"{name}: {value}" if len(document) > 1 else str(value))
    return exit_codes.OK


def _describe(settings: Settings, runtime: SharedRuntime, text: str) -> dict[str, Any]:
    found, body = envelope.read(text)
    options = passport_options(settings, os.environ)
    try:
        Signers(runtime.derive, options.trusted, options.shared).check(body, found.signature)
        is_trusted = "yes"
    except Refusal as refusal:
        is_trusted = f"no: {refusal.sentence.removeprefix('passport: ')}"
    plain: dict[str, Any] = msgspec.to_builtins(found)
    shown = ("passport_id", "session_id", "exported_at", "expires_at", "one_time", "audience", "project_id")
    return {
        **{name: plain[name] for name in shown},
        "exported_by": found.exported_by.agent_id,
        "signer": found.signature.key,
        "trusted": is_trusted,
        "encrypted": found.content.encryption is not None,
        "bytes_inside": found.content.size,
    }


async def _export(chosen: argparse.Namespace, settings: Settings, runtime: SharedRuntime) -> dict[str, Any]:
    path = _new(Path(chosen.file))
    agent = await _agent(settings, runtime)
    days = {} if chosen.days is None else {"expires_in": round(chosen.days * 86_400)}
    exporting = ExportSession(
        session_id=chosen.session,
        include_memories=chosen.include_memories,
        one_time=chosen.one_time,
        passphrase=_passphrase(chosen.encrypt_with_passphrase, twice=True),
        **days,
    )
    exported = await agent.ask(exporting)
    read: Any = await agent.ask(ReadResource(uri=exported.uri))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWN_ALONE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(read.text)
    except OSError as error:
        raise FileAccessError(f"{path} cannot be written: {error.strerror or error}") from None
    return {
        "file": str(path),
        "session": exported.session_id,
        "messages": exported.messages,
        "memories": exported.memories,
        "expires_at": exported.expires_at.isoformat(),
        "signer": exported.signer,
    }


async def _restore(settings: Settings, runtime: SharedRuntime, text: str) -> dict[str, Any]:
    is_sealed = envelope.read(text)[0].content.encryption is not None
    restoring = RestoreSession(passport=text, passphrase=_passphrase(is_sealed, twice=False))
    restored = await (await _agent(settings, runtime)).ask(restoring)
    return {
        "session": restored.session_id,
        "messages": restored.messages,
        "memories": restored.memories,
        "original_tool": restored.original_tool,
    }


async def _agent(settings: Settings, runtime: SharedRuntime) -> Agent:
    principal = await acting_principal(runtime, settings, "greenroom passport", SESSIONS)
    return Agent(runtime, principal, client=CLIENT, passports=passport_options(settings, os.environ))


def _new(path: Path) -> Path:
    if path.exists():
        raise FileAccessError(f"{path} exists already; choose another name")
    return path


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            found = file.read(envelope.MAX_DOCUMENT_BYTES + 1)
        return found.decode()
    except OSError as error:
        raise FileAccessError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise _PassportCommandError(f"{path} is no passport: it is not UTF-8") from None


def _passphrase(is_wanted: bool, *, twice: bool) -> str | None:  # noqa: FBT001  callers pass named values
    return read_passphrase(twice=twice) if is_wanted else None
