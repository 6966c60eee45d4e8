"""Imports and exports in tests: lines as text, importers, and what an export holds."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from greenroom.actors import Principal
from greenroom.actors.memories.transfer.export_actor import export_lines
from greenroom.actors.memories.transfer.import_run import Imported, Importer
from greenroom.actors.memories.transfer.import_run import ImportRefusedError as ImportRefusedError
from greenroom.actors.memories.transfer.normalize import BadRecord, SourceLine
from greenroom.actors.memories.transfer.sources import open_source, source_of_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from support.agents import House

    from greenroom.runtime import RuntimeClient

ANN = Principal(agent_id="planner", user="ann")
BOB = Principal(agent_id="coder", user="bob")
QUIET: dict[str, Any] = {"embedder": "none"}


def line(key: str, content: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return a line of JSON Lines as an object; its content is made of its key unless given."""
    if "value" not in fields:
        fields["content"] = f"what {key} says" if content is None else content
    return {"key": key, **fields}


def text(*lines: dict[str, Any] | str) -> str:
    return "\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines)


async def imported(
    runtime: RuntimeClient,
    principal: Principal,
    *lines: dict[str, Any] | str,
    dry_run: bool = False,
    **options: Any,
) -> Imported:
    importer = Importer(runtime, principal, source_of_text(text(*lines)), **options)
    return await importer.run(dry_run=dry_run)


async def export(
    runtime: RuntimeClient, principal: Principal, namespace: str | None = None
) -> list[dict[str, Any]]:
    """Return what is exported, line by line."""
    async with aclosing(exported_pages(runtime, principal, namespace)) as pages:
        return [each async for page in pages for each in page]


async def exported_pages(
    runtime: RuntimeClient, principal: Principal, namespace: str | None = None
) -> AsyncGenerator[list[dict[str, Any]]]:
    """Yield what is exported, page by page."""
    async with aclosing(export_lines(runtime, principal, namespace)) as pages:
        async for page in pages:
            yield [json.loads(bytes(each)) for each in page]


async def keys(runtime: RuntimeClient, principal: Principal, namespace: str | None = None) -> list[str]:
    return [each["key"] for each in await export(runtime, principal, namespace)]


async def taken(
    home: House, path: Path, format: str = "auto", *, dry_run: bool = False, **options: Any
) -> Imported:
    source = open_source(path, format, ANN)
    return await Importer(home.runtime, ANN, source, **options).run(dry_run=dry_run)


async def memories(home: House) -> dict[str, dict[str, Any]]:
    return {each["key"]: each for each in await export(home.runtime, ANN)}


def read(path: Path, format: str = "auto") -> list[dict[str, Any]]:
    """Return the lines that a reader makes of a file; see `left_out` for the others."""
    found = open_source(path, format, ANN).read()
    return [json.loads(each.raw) for each in found if isinstance(each, SourceLine)]


def left_out(path: Path, format: str = "auto") -> list[tuple[str, str]]:
    """Return what a reader leaves out of a file: places and reasons."""
    found = open_source(path, format, ANN).read()
    return [(each.place, each.sentence) for each in found if isinstance(each, BadRecord)]
