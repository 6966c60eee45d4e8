"""List a reader's resources, and complete the variables of their templates."""

import msgspec

from greenroom.actors.app.resources.kinds import DOCUMENT_TEMPLATE, KINDS
from greenroom.actors.app.resources.listed import Listing, ResourceItem
from greenroom.actors.core.auth import scopes
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.handlers.completion import MAX_VALUES, NameCompletion
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.runtime import IndexReader, Procedure, Slices

PAGE = 100


class ResourceList(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ListResources`."""

    resources: list[ResourceItem]
    next_cursor: str | None


class ListResources(Procedure[ResourceList], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the reader's memory, visible sessions by latest visible activity, and other resources.

    Attributes:
        current: The client's current session, set by `Agent`.
    """

    runs = "snapshot"

    cursor: types.Cursor | None = None
    limit: types.Limit200 = PAGE
    current: str | None = None

    def run(self, reader: IndexReader) -> Slices[ResourceList]:
        """Read the sessions as `ListSessions` does; all other resources are on the first page."""
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


class CompleteResource(Procedure[NameCompletion], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Find values for a template's variable that begin with ``value``; unknown templates have none.

    Attributes:
        known: Values of other variables, by name. A document's path is completed within the known ``corpus``.
    """

    runs = "snapshot"

    template: str
    argument: str
    value: str = ""
    known: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def is_path(self) -> bool:
        """Whether it completes a document's path; the corpus does this."""
        return (self.template, self.argument) == (DOCUMENT_TEMPLATE, "path")

    def run(self, reader: IndexReader) -> Slices[NameCompletion]:
        """Return values that the reader may see."""
        for kind in KINDS:
            if any(each.uri_template == self.template for each in kind.templates):
                complete = kind.completes.get(self.argument)
                if complete is not None and kind.kind in scopes.resources_of(reader.principal.scopes):
                    values, has_more = yield from complete(self.value, reader)
                    return NameCompletion(
                        values=values[:MAX_VALUES], has_more=has_more or len(values) > MAX_VALUES
                    )
        return NameCompletion(values=[], has_more=False)
