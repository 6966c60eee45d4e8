"""An export: the run over all visible namespaces, and the actor that stores it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.audit.actor import record_action
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.erasure import ErasedPart, EraseFrom
from greenroom.actors.core.replies.damage import Damaged
from greenroom.actors.core.resources import resources
from greenroom.actors.core.validation.times import DAY
from greenroom.actors.memories.requests import transfer as requests
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.memories.requests.transfer import ExportFormat, ExportPage, ExportResource
from greenroom.actors.memories.storage.directory import ListNamespaces
from greenroom.actors.memories.transfer.import_actor import wait_written
from greenroom.runtime import Actor, Address, Context, RuntimeClient, Slices, StoreDamagedError, handles

KIND: Final = "export"
KEPT_FOR: Final = DAY
TIMER: Final = "forget"
MIME_TYPES: Final[dict[ExportFormat, str]] = {"jsonl": "application/jsonl", "json": "application/json"}
_HEAD: Final = b"h"
_PIECE: Final = b"p"
Progress = Callable[[int, int, int], None]
"""Called with the number of exported memories, of finished roots, and of all roots."""


class Export(msgspec.Struct, frozen=True, array_like=True):
    """The owner and format of an export."""

    principal: Principal
    format: ExportFormat


def export_address(export_id: str) -> Address:
    """Return the address of an export's actor."""
    return Address(KIND, export_id)


def export_uri(export_id: str, part: int = 1) -> str:
    """Return the URI of a part of an export, counted from 1."""
    uri = f"greenroom://export/{export_id}"
    return uri if part == 1 else f"{uri}/{part}"


class ExportActor(Actor):
    """One export, addressed by its id."""

    kind = KIND

    @handles(requests.KeepExport)
    def keep(self, request: requests.KeepExport, context: Context) -> None:
        """Store a piece."""
        head = context.get(_HEAD, Export)
        if head is None:
            context.put(_HEAD, Export(context.principal, request.format))
            context.set_timer(TIMER, context.now + KEPT_FOR, requests.ForgetExport())
        elif _owner(head.principal) != _owner(context.principal):
            raise auth_errors.denial(auth_errors.resource_not_found(export_uri(context.address.key)))
        context.put(_part_prefix(request.part) + request.number.to_bytes(4), request.text)

    @handles(resources.ReadResource)
    def read(self, request: resources.ReadResource, context: Context) -> Slices[ExportResource]:
        """Return a part of the export, to its owner only."""
        head = context.get(_HEAD, Export)
        if head is None:
            raise auth_errors.resource_not_found(request.uri)
        if _owner(head.principal) != _owner(context.principal):
            raise auth_errors.denial(auth_errors.resource_not_found(request.uri))
        part = request.uri.removeprefix(export_uri(context.address.key)).removeprefix("/")
        pieces: list[str] = []
        for _, piece in context.scan(str, prefix=_part_prefix(int(part or 1))):
            pieces.append(piece)
            yield
        if not pieces:
            raise auth_errors.resource_not_found(request.uri)
        text = "".join(pieces)
        audit_record.record_resource_read(context, characters=len(text))
        return ExportResource(uri=request.uri, mime_type=MIME_TYPES[head.format], text=text)

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Remove a person's export."""
        head = context.get(_HEAD, Export)
        if head is None or not request.person.has_principal(head.principal):
            return ErasedPart(counts={})
        if not request.dry_run:
            context.cancel_timer(TIMER)
            context.use_reserve()
            yield from _remove_all(context)
        return ErasedPart(counts={"exports": 1})

    @handles(requests.ForgetExport)
    def forget(self, _: requests.ForgetExport, context: Context) -> Slices[None]:
        """Remove the export."""
        context.use_reserve()
        return _remove_all(context)


def _remove_all(context: Context) -> Slices[None]:
    for key, _piece in context.scan(msgspec.Raw):
        context.delete(key)
        yield


def _part_prefix(part: int) -> bytes:
    return _PIECE + part.to_bytes(2)


def _owner(principal: Principal) -> tuple[object, ...]:
    """Return a value that is equal for principals who see the same."""
    return principal.agent_id, principal.agent_type, principal.user, principal.projects


async def export_lines(
    runtime: RuntimeClient,
    principal: Principal,
    namespace: str | None,
    filters: MemoryFilters | None = None,
    progress: Progress = lambda _memories, _roots, _of: None,
    unwritten: list[str] | None = None,
    damage: list[Damaged] | None = None,
) -> AsyncGenerator[list[msgspec.Raw], None]:
    """Yield pages of all visible memories, as JSON lines.

    Namespaces are ordered by name, the memories of each by creation. Memories that are written meanwhile may
    be missing; none comes twice. Close the generator after use (`aclosing`). It waits for decided imports
    while they make progress, so that it never yields only a part of an import.

    Args:
        runtime: The client of the runtime.
        principal: The exporting principal.
        namespace: The leading segments of the namespaces; None for all.
        filters: The filters of the memories.
        progress: Called with the progress.
        unwritten: Gets the roots with a decided import that makes no progress.
        damage: Gets the damaged records, which are left out; without this list, damage ends the export.

    Raises:
        GreenroomError: As `RuntimeClient.ask`; also `StoreDamagedError` if there is no ``damage``.
    """
    listing = ListNamespaces(prefix=namespace)
    left = await wait_written(
        runtime, principal, namespace, await runtime.query(listing, principal=principal)
    )
    if unwritten is not None:
        unwritten += left
    roots = sorted(await runtime.query(listing, principal=principal))
    if filters is not None:
        filters = msgspec.structs.replace(filters, superseded=True)
    count = size = 0
    try:
        for number, root in enumerate(roots):
            below = names.below_root(namespace) or root
            start: int | None = 0
            while start is not None:
                read = ExportPage(namespace=below, filters=filters, start=start)
                page: Any = await runtime.ask(names.memory_address(root), read, principal=principal)
                count += len(page.lines)
                size += sum(len(bytes(line)) for line in page.lines)
                if page.damaged is not UNSET:
                    if damage is None:
                        raise StoreDamagedError(f"{page.damaged.sentence}; {page.damaged.remedy}")
                    damage.append(page.damaged)
                start = page.next
                progress(count, number + (start is None), len(roots))
                if page.lines:
                    yield page.lines
    finally:  # an interrupted export has returned memories, too
        record_action(
            runtime, "export_memories", principal=principal, namespace=namespace, memories=count, bytes=size
        )
