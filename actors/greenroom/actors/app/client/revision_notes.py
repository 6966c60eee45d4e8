"""Note a client's branch and commit with its memories, and recall by them."""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.actors.app.client.context import ClientContext
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.git.git_files import MEMBER
from greenroom.actors.core.git.projects import PlaceOfWork
from greenroom.actors.memories.recall.recall_context import RecallContext
from greenroom.actors.memories.requests.requests import StoreMemory, UpdateMemory

_NOTED: Final = (StoreMemory, UpdateMemory)


def is_noted(request: object, client: ClientContext) -> bool:
    """Return whether a request writes a content, and the client's folder is known."""
    if not isinstance(request, _NOTED) or _folder_of(client) is None:
        return False
    return request.content is not None or request.value is not msgspec.UNSET


async def note_revision(
    request: StoreMemory | UpdateMemory, client: ClientContext
) -> StoreMemory | UpdateMemory:
    """Add the revision of the client's folder to a memory's metadata."""
    folder = _folder_of(client)
    assert folder is not None, "as `is_noted` says"
    member = (await read_in_thread(client.session.find_project, folder)).revision.as_member()
    try:
        given = msgspec.json.decode(request.metadata, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:  # the request's own check says what is wrong
        return request
    if not member or MEMBER in given:
        return request
    noted = {**given, MEMBER: msgspec.Raw(msgspec.json.encode(member[MEMBER]))}
    return msgspec.structs.replace(request, metadata=msgspec.Raw(msgspec.json.encode(noted)))


async def place_of_work(request: RecallContext, client: ClientContext) -> RecallContext:
    """Replace the place in a request by the client's own."""
    place, folder = None, _folder_of(client)
    if folder is not None:
        revision = (await read_in_thread(client.session.find_project, folder)).revision
        place = PlaceOfWork(folder, *revision) if revision.commit else None
    return msgspec.structs.replace(request, place=place)


def _folder_of(client: ClientContext) -> str | None:
    """Return the client's folder; on this user's own connection, else the first configured one."""
    reach = client.files.reach
    configured = reach.workspaces if reach.takes_client_folders else ()
    return client.session.folder or next(iter(configured), None)
