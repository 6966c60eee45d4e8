"""What the views of knowledge and of code share: pages of a corpus, and what leads to them."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from greenroom.actors import (
    CorpusDocuments,
    CorpusEntities,
    CorpusView,
    DocumentsShown,
    EntitiesShown,
    ListCorpora,
)
from greenroom.actors.base.parse import check_request
from greenroom.transports.console.view import Place, Reader

EVERY: Final = 5.0
"""Seconds after which a list of corpora is fetched again: they may come and go."""


async def corpora(reader: Reader, *, of_code: bool) -> list[CorpusView]:
    """Return the corpora of documents, or the workspaces, by their names."""
    listed = (await reader.ask(ListCorpora())).corpora
    return sorted(
        (each for each in listed if (each.root is not UNSET) == of_code), key=lambda each: each.corpus
    )


async def documents(reader: Reader, place: Place, corpus: str) -> DocumentsShown:
    """Return the page of a corpus' documents that the URL asks for."""
    asked = CorpusDocuments(
        corpus=corpus,
        holding=place.get("holding") or "",
        kind=place.get("kind"),
        cursor=place.get("cursor"),
    )
    check_request(asked)
    shown: DocumentsShown = await reader.ask(asked)
    return shown


async def entities(reader: Reader, place: Place, corpus: str) -> EntitiesShown:
    """Return the page of a corpus' entities that the URL asks for."""
    asked = CorpusEntities(
        corpus=corpus,
        holding=place.get("holding") or "",
        entity_type=place.get("type"),  # type: ignore[arg-type]  # checked below
        cursor=place.get("cursor"),
    )
    check_request(asked)
    listed: EntitiesShown = await reader.ask(asked)
    return listed
