"""An export: its run over all namespaces that the caller may see, and the actor that keeps it for a day."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.audit.actor import tell
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.validation.times import DAY
from greenroom.actors.memories.requests import transfer as requests
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.memories.requests.transfer import ExportFormat, ExportPage
from greenroom.actors.memories.storage.directory import ListNamespaces
from greenroom.actors.memories.transfer.import_actor import wait_written
from greenroom.actors.schemas import resources
from greenroom.actors.schemas.erasure import ErasedPart, EraseFrom
from greenroom.runtime import Actor, Address, Context, RuntimeClient, Slices, handles

KIND: Final = "export"
KEPT_FOR: Final = DAY
TIMER: Final = "forget"
MIME_TYPES: Final[dict[ExportFormat, str]] = {"jsonl": "application/jsonl", "json": "application/json"}
_HEAD: Final = b"h"
_PIECE: Final = b"p"
Progress = Callable[[int, int, int], None]
"""Called with how many memories are exported, from how many roots, of how many."""


class Export(msgspec.Struct, frozen=True, array_like=True):
    """The owner and format of an export."""

    principal: Principal
    format: ExportFormat


def export_address(export_id: str) -> Address:
    """Return the actor of an export."""
    return Address(KIND, export_id)


def export_uri(export_id: str, part: int = 1) -> str:
    """Return the URI of a part of an export; the parts are counted from 1."""
    uri = f"greenroom://export/{export_id}"
    return uri if part == 1 else f"{uri}/{part}"


class ExportActor(Actor):
    """One export, addressed by its id."""

    kind = KIND

    @handles(requests.KeepExport)
    def keep(self, request: requests.KeepExport, context: Context) -> None:
        """Keep a piece."""
        head = context.get(_HEAD, Export)
        if head is None:
            context.put(_HEAD, Export(context.principal, request.format))
            context.set_timer(TIMER, context.now + KEPT_FOR, requests.ForgetExport())
        elif not _is_same(head.principal, context.principal):
            raise auth_errors.denial(auth_errors.resource_not_found(export_uri(context.address.key)))
        context.put(_part_prefix(request.part) + request.number.to_bytes(4), request.text)

    @handles(resources.ReadResource)
    def read(self, request: resources.ReadResource, context: Context) -> Slices[resources.ExportResource]:
        """Answer a part of it, to its caller."""
        head = context.get(_HEAD, Export)
        if head is None:
            raise auth_errors.resource_not_found(request.uri)
        if not _is_same(head.principal, context.principal):
            raise auth_errors.denial(auth_errors.resource_not_found(request.uri))
        part = request.uri.removeprefix(export_uri(context.address.key)).removeprefix("/")
        pieces: list[str] = []
        for _, piece in context.scan(str, prefix=_part_prefix(int(part or 1))):
            pieces.append(piece)
            if context.should_yield():
                yield
        if not pieces:
            raise auth_errors.resource_not_found(request.uri)
        text = "".join(pieces)
        audit_record.record_resource_read(context, characters=len(text))
        return resources.ExportResource(uri=request.uri, mime_type=MIME_TYPES[head.format], text=text)

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Remove a person's export."""
        head = context.get(_HEAD, Export)
        if head is None or not request.person.has_principal(head.principal):
            return ErasedPart(counts={})
        if not request.dry_run:
            context.cancel_timer(TIMER)
            context.use_reserve()
            yield from _removed(context)
        return ErasedPart(counts={"exports": 1})

    @handles(requests.ForgetExport)
    def forget(self, _: requests.ForgetExport, context: Context) -> Slices[None]:
        """Remove it."""
        context.use_reserve()
        return _removed(context)


def _removed(context: Context) -> Slices[None]:
    for key, _piece in context.scan(msgspec.Raw):
        context.delete(key)
        if context.should_yield():
            yield


def _part_prefix(part: int) -> bytes:
    return _PIECE + part.to_bytes(2)


def _is_same(one: Principal, other: Principal) -> bool:
    """Return whether two are the same agent of the same user: an export has what that one alone may see."""
    return _who(one) == _who(other)


def _who(principal: Principal) -> tuple[object, ...]:
    return principal.agent_id, principal.agent_type, principal.user, principal.projects


async def exported(
    runtime: RuntimeClient,
    principal: Principal,
    namespace: str | None,
    filters: MemoryFilters | None = None,
    progress: Progress = lambda _memories, _roots, _of: None,
    unwritten: list[str] | None = None,
) -> AsyncGenerator[list[msgspec.Raw], None]:
    """Yield the memories that the caller may see, all or below leading segments, as JSON of lines, by pages.

    Namespaces come in the order of their names, the memories of each in the order of their creation. What
    is written meanwhile may be in it or not; nothing is in it twice. Who leaves it closes it (`aclosing`).
    An import that is decided is waited for, as long as it goes on: no part of it is taken for the whole.

    Args:
        runtime: Where the actors are.
        principal: Who exports.
        namespace: Below which leading segments.
        filters: Only what fits.
        progress: Hears how far it is.
        unwritten: Gets the roots where a decided import is not written, since it does not go on.

    Raises:
        GreenroomError: as `RuntimeClient.ask`.
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
                asked = ExportPage(namespace=below, filters=filters, start=start)
                page: Any = await runtime.ask(names.memory_address(root), asked, principal=principal)
                count += len(page.lines)
                size += sum(len(bytes(line)) for line in page.lines)
                start = page.next
                progress(count, number + (start is None), len(roots))
                if page.lines:
                    yield page.lines
    finally:  # also what was broken off has been handed out
        tell(runtime, "export_memories", principal=principal, namespace=namespace, memories=count, bytes=size)
