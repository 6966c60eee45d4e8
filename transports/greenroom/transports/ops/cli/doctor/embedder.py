"""The check of the embedder: its kind, whether it loads, and whether its vectors match."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import trio

from greenroom.actors.search.embedding.embedder import EmbedderChoice
from greenroom.actors.search.embedding.embedder_loader import check_choice, load
from greenroom.actors.search.embedding.errors import EmbedderError
from greenroom.actors.search.embedding.models.installed_models import resolve_auto
from greenroom.actors.search.embedding.rows import INDEX, MINILM, SPACES, STATIC, Space, Waiting, serving_key
from greenroom.runtime import GreenroomError
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.maintenance.survey import Survey
from greenroom.transports.base import exit_codes
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, error, ok, refused, warning
from greenroom.transports.ops.cli.support.open_store import embedder_choice, encryption

_SERVING: Final = serving_key("")
_MOST_SPACES: Final = 100
_REMEDY: Final = "mend what this names, or choose another one with --embedder"
_LOADED: Final = frozenset({"static", "minilm", "http"})


async def check(facts: Facts) -> list[Finding]:
    """Report the owner's embedder, or load the one that a new server would use."""
    if facts.parts is not None:
        return list(_of_owner(facts))
    try:
        wanted = embedder_choice(facts.settings, facts.environment)
        choice, reason = await trio.to_thread.run_sync(partial(resolve_auto, wanted, looks_inside=True))
        await trio.to_thread.run_sync(check_choice, choice)
    except EmbedderError as failure:
        return [refused(failure, _REMEDY)]
    except ValueError as failure:
        return [error(str(failure), _REMEDY, exit_codes.USAGE)]
    if choice.kind == "none":
        return [ok("none is chosen, so searches go by words alone")]
    found = [await _loaded(choice, f"{choice}, for {reason}" if wanted.kind == "auto" else str(choice))]
    if facts.head is not None and facts.owner is None:
        found += await trio.to_thread.run_sync(lambda: list(_stored(facts, choice)))
    return found


async def _loaded(choice: EmbedderChoice, name: str) -> Finding:
    """Load an embedder; if it runs foreign code or is slow, only check it."""
    if choice.kind not in _LOADED:
        return ok(f"it will be {name}; it was not loaded, but its parts are there")
    try:
        embedder = await load(choice)
    except EmbedderError as failure:
        sentence = f"it will be {name}, which is not available now, so searches go by words alone: {failure}"
        return warning(sentence, _REMEDY)
    await embedder.aclose()
    return ok(f"it will be {name}; it was loaded")


def _of_owner(facts: Facts) -> Iterator[Finding]:
    part = (facts.parts or {})["embedder"]
    figures = (facts.figures or {}).get("embedding") or {}
    name = figures.get("embedder")
    if part.status in {"ok", "off"}:
        yield ok(f"the server uses {name}: {part.cause}")
    else:
        yield warning(f"the server uses {name}: {part.cause}", "see what --embedder names")
    if older := figures.get("older_spaces"):
        waiting = figures.get("texts_waiting", 0)
        yield ok(
            f"vectors of an earlier embedder ({', '.join(older)}) are being replaced, about {waiting:,} are "
            "left; until then searches use both"
        )


def _stored(facts: Facts, choice: EmbedderChoice) -> Iterator[Finding]:
    """Compare the vector spaces of the store with the space of the embedder."""
    with facts.survey() as found:
        try:
            codec = found.codec(encryption(facts.settings))
        except GreenroomError:
            return  # the check of the encryption reports it
        makers = dict(found.rows(SPACES, Space, codec))
        used = list(_spaces(found, codec))
    own = Space(str(choice), choice.model)
    others = [space for space in used if not _is_made_by(space, makers.get(space.encode()), own)]
    if others:
        yield warning(
            f"the store has vectors of another embedder ({', '.join(map(str, others))}), which a server with "
            f"{choice} replaces over time",
            "let it do so, or choose the earlier one with --embedder; if that was minilm and is not here: "
            "greenroom embedder install minilm",
        )


def _spaces(found: Survey, codec: RecordCodec) -> Iterator[str]:
    """Yield the vector spaces in use; read only one row of each."""
    start = _SERVING
    for _ in range(_MOST_SPACES):
        key, _row = next(found.rows(INDEX, Waiting, codec, start=start), (b"", None))
        if not key.startswith(_SERVING):
            return
        yield key[len(_SERVING) :].decode(errors="replace")
        start = key + b"\0"


def _is_made_by(space: str, maker: Space | None, own: Space) -> bool:
    match own.embedder:
        case "static":
            return space == STATIC
        case "minilm":
            return space.startswith(MINILM)
    return maker == own
