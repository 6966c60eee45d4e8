"""Listing of a reader's resources, and completion of the variables of their templates."""

import msgspec

from greenroom.actors.app.resources.kinds import DOCUMENT_TEMPLATE, KINDS
from greenroom.actors.app.resources.listed import Listing
from greenroom.actors.app.resources.listed import ResourceItem as ResourceItem
from greenroom.actors.core.auth import scopes
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.schemas.completion import MAX_VALUES, NameCompletion
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.runtime import IndexReader, Query, Slices

PAGE = 100


class ResourceList(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ListResources`."""

    resources: list[ResourceItem]
    next_cursor: str | None


class ListResources(Query[ResourceList], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List one's own memory, the sessions that one may see, newest visible activity first, and the rest.

    Attributes:
        current: The session that the client works in; `Agent` says it.
    """

    cursor: types.Cursor | None = None
    limit: types.Limit200 = PAGE
    current: str | None = None

    def run(self, reader: IndexReader) -> Slices[ResourceList]:
        """Go through the sessions as `ListSessions` does; what is no session is on the first page."""
        allowed = scopes.resources_of(reader.principal.scopes)
        page = None
        if "session" in allowed:
            page = yield from ListSessions(cursor=self.cursor, limit=self.limit).run(reader)
        listing = Listing([] if page is None else page.sessions, self.current)
        resources: list[ResourceItem] = []
        for kind in KINDS:
            if kind.lists is not None and kind.kind in allowed and (self.cursor is None or kind.has_pages):
                resources += yield from kind.lists(listing, reader)
        return ResourceList(resources=resources, next_cursor=None if page is None else page.next_cursor)


class CompleteResource(Query[NameCompletion], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Find values for a template's variable that begin with ``value``; unknown templates have none.

    Attributes:
        template: The template.
        argument: Its variable.
        value: What is typed so far.
        known: Values that other variables have, by name. A document's path is looked for in their ``corpus``.
    """

    template: str
    argument: str
    value: str = ""
    known: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def is_path(self) -> bool:
        """Whether it is for a document's path, which the corpus completes."""
        return (self.template, self.argument) == (DOCUMENT_TEMPLATE, "path")

    def run(self, reader: IndexReader) -> Slices[NameCompletion]:
        """Answer what the reader may see."""
        for kind in KINDS:
            if any(each.uri_template == self.template for each in kind.templates):
                complete = kind.completes.get(self.argument)
                if complete is not None and kind.kind in scopes.resources_of(reader.principal.scopes):
                    values, has_more = yield from complete(self.value, reader)
                    return NameCompletion(
                        values=values[:MAX_VALUES], has_more=has_more or len(values) > MAX_VALUES
                    )
        return NameCompletion(values=[], has_more=False)
