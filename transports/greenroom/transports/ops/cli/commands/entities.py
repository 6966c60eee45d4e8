"""`greenroom entities`: declares, suggests, finds and removes entities of documents.

If a server is running, the command attaches to it. This process reads the files.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET

from greenroom.actors import (
    Agent,
    DeclarationFile,
    DefineEntities,
    EntitiesDefined,
    EntitiesFound,
    EntitiesSuggested,
    EntityDeclaration,
    FindVendorInfo,
    SuggestEntities,
)
from greenroom.actors.core.auth.scopes import KNOWLEDGE
from greenroom.actors.knowledge.entities import MANIFESTS
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.ops.cli.output import complain, remark, say
from greenroom.transports.ops.cli.support.authentication import acting_principal
from greenroom.transports.ops.cli.support.open_store import open_store
from greenroom.transports.ops.cli.support.terminal import printable

_MOST_BYTES: Final = 4_194_304
"""The most bytes that are read of a file; no accepted file has as many."""


async def entities(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Run an action on entities; return the exit code."""
    settings = resolved.settings
    try:
        request = _request(chosen)
        async with open_store(settings) as runtime:
            principal = await acting_principal(runtime, settings, "greenroom entities", KNOWLEDGE)
            reply = await Agent(runtime, principal).ask(request)
    except (OSError, UnicodeDecodeError) as error:
        return complain("entities", f"a file cannot be read: {error}", exit_codes.FAILED)
    if chosen.json:
        document = msgspec.to_builtins(reply)
        del document["success"]
        say(json.dumps(document, indent=2))
    else:
        _show(reply)
    is_done = not (isinstance(reply, EntitiesDefined) and reply.unreadable)
    return exit_codes.OK if is_done else exit_codes.FAILED


def _request(chosen: argparse.Namespace) -> Any:
    """Make the request of an action."""
    match chosen.action:
        case "define":
            files = [file for path in chosen.files for file in _files(Path(path))]
            return DefineEntities(corpus=chosen.corpus, files=files)
        case "add":
            declared = [EntityDeclaration(name=name, type=chosen.type) for name in chosen.names]
            return DefineEntities(corpus=chosen.corpus, entities=declared)
        case "remove":
            return DefineEntities(corpus=chosen.corpus, remove=chosen.names)
        case "find":
            return FindVendorInfo(corpus=chosen.corpus, vendor_filter=chosen.vendor_filter)
        case _:
            return SuggestEntities(corpus=chosen.corpus)


def _files(path: Path) -> list[DeclarationFile]:
    """Return one file, or the manifests in a folder."""
    paths = [path / name for name in MANIFESTS if (path / name).is_file()] if path.is_dir() else [path]
    found: list[DeclarationFile] = []
    for each in paths:
        with each.open("rb") as file:
            found.append(DeclarationFile(str(each), file.read(_MOST_BYTES + 1).decode("utf-8-sig")))
    return found


def _show(reply: EntitiesDefined | EntitiesSuggested | EntitiesFound) -> None:
    if because := getattr(reply, "empty_because", UNSET):
        remark(f"greenroom entities: {printable(because.sentence)}")
    match reply:
        case EntitiesDefined():
            for sentence in reply.unreadable:
                remark(f"greenroom entities: {printable(sentence)}")
            counts = {"added": reply.added, "changed": reply.changed, "removed": reply.removed}
            words = ", ".join(f"{len(names):,} {what}" for what, names in counts.items())
            say(f"{words}, {reply.unchanged:,} unchanged in {reply.corpus}")
        case EntitiesSuggested():
            for each in reply.suggestions:
                say(f"{each.count:>7,}  in {each.chunks:,} chunks  {each.looks_like}  {printable(each.name)}")
            if isinstance(reply.partial_reason, str):
                remark(f"greenroom entities: {reply.partial_reason}")
        case EntitiesFound():
            for entity in reply.entities:
                say(
                    f"{entity.entity_id or '-'}  {entity.entity_type or 'undeclared':<9}  "
                    f"mentioned {entity.mention_count:,} times  {printable(entity.name)}"
                )
            for relation in reply.relationships:
                count = (
                    f" in {relation.chunk_count:,} chunks" if isinstance(relation.chunk_count, int) else ""
                )
                say(
                    f"{printable(relation.source_name)} {printable(relation.relationship_type)} "
                    f"{printable(relation.target_name)}{count}"
                )
