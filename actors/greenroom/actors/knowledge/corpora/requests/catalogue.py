"""The catalogue of an owner's corpora: their names, and the actor of each corpus.

The address of a corpus has a number that is never reused. So a renamed corpus keeps its address, and a new
corpus with the name of a dropped corpus shares nothing with the dropped one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec
from msgspec import UNSET

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import corpora, policy
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.auth.scopes import EVERYTHING
from greenroom.actors.core.erasure import ErasedPart, EraseFrom
from greenroom.actors.core.replies.empty_reasons import explain_empty, suggest_spelling
from greenroom.actors.knowledge.corpora.requests import corpus_requests
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.runtime import (
    Actor,
    Address,
    Context,
    IndexReader,
    Procedure,
    Refusal,
    Restate,
    Slices,
    handles,
)

INDEX: Final = "corpora"
MOST: Final = 1_000
_ENTRIES: Final = b"c"
_NEXT: Final = b"n"
_ALL_SCOPES: Final = frozenset({EVERYTHING})
_NAMED: Final = 20
"""A refusal lists at most this many names of corpora."""


def row_names(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the positions of names in a sort key: the whole key is a name."""
    return ((0, len(key)),) if key else ()


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the positions of corpus names in a record key of the catalogue."""
    return ((1, len(key)),) if key.startswith(_ENTRIES) and len(key) > 1 else ()


def catalogue_address(owner: str) -> Address:
    """Return the address of an owner's catalogue."""
    return Address(corpora.CATALOGUE_KIND, owner)


def corpus_address(row: CorpusRow) -> Address:
    """Return the address of a corpus."""
    return Address(corpora.CORPUS_KIND, row.key)


def corpus_not_found(name: str, known: Collection[str] = (), scopes: frozenset[str] = _ALL_SCOPES) -> Refusal:
    """Make the refusal for unknown, dropped and forbidden corpora; suggest names of ``known``."""
    there = ", ".join(repr(each) for each in list(dict.fromkeys(known))[:_NAMED] if ":" not in each)
    near = suggest_spelling(name, known) or (f"; there are {there}" if there else "")
    reason = explain_empty(scopes, "corpus_unknown", name=name, near=near)
    sentence = reason.sentence if reason.remedy is UNSET else f"{reason.sentence}; {reason.remedy}"
    return Refusal("CORPUS_NOT_FOUND", sentence, corpus=name)


def may_see_owner(principal: Principal, name: str) -> bool:
    """Return whether the caller may see a corpus of this name, even if missing."""
    return any(
        policy.may_see_corpora(principal, each.owner) for each in corpora.find_candidates(principal, name)
    )


def check_owner(principal: Principal, name: str) -> None:
    """Refuse a caller who may not see a corpus of this name, even if missing."""
    if not may_see_owner(principal, name):
        raise auth_errors.denial(corpus_not_found(name))


class CatalogueActor(Actor):
    """The catalogue of one owner; the owner is the actor's key."""

    kind = corpora.CATALOGUE_KIND
    names = staticmethod(names_in)

    @handles(corpus_requests.MakeCorpus)
    def make(self, request: corpus_requests.MakeCorpus, context: Context) -> CorpusRow:
        """Return the corpus with a name; create the corpus if there is none."""
        _check(context, request.name)
        found = context.get(_key(request.name), CorpusRow)
        if found is not None and request.root not in {None, found.root}:
            raise auth_errors.invalid(
                "name",
                f"name: {found.full_name!r} is another corpus; rename or drop it to have {request.root!r}",
            )
        if found is not None:
            if request.project in {None, *found.projects[:1]}:
                return found
            found = msgspec.structs.replace(found, project=request.project)
            _list(context, found)
            return found
        if sum(1 for _ in context.scan(msgspec.Raw, prefix=_ENTRIES)) >= MOST:
            raise Refusal("QUOTA_EXCEEDED", f"there are {MOST:,} corpora, which is the limit", limit=MOST)
        number = (context.get(_NEXT, int) or 0) + 1
        context.put(_NEXT, number)
        made_by = policy.corpus_maker(context.principal)
        row = CorpusRow(
            context.address.key,
            request.name,
            number,
            context.now,
            made_by,
            request.root,
            id_prefix=context.precheck_answer,
            project=request.project or "",
        )
        _list(context, row)
        audit_record.record(context, "create_corpus", None, corpus=row.full_name)
        return row

    @handles(corpus_requests.RenameOwned)
    def rename(self, request: corpus_requests.RenameOwned, context: Context) -> CorpusRow:
        """Rename a corpus."""
        row = _find_own(context, request.name)
        if row.root is not None:
            raise auth_errors.invalid(
                "corpus", f"corpus: {row.full_name!r} is named by its folder, {row.root}"
            )
        if request.to == request.name:
            return row
        if context.get(_key(request.to), CorpusRow) is not None:
            raise auth_errors.invalid("to", f"to: there is a corpus {request.to!r} already; drop it first")
        _unlist(context, row)
        renamed = msgspec.structs.replace(row, name=request.to)
        _list(context, renamed)
        audit_record.record(
            context, "rename_corpus", None, corpus=row.full_name, renamed_to=renamed.full_name
        )
        return renamed

    @handles(corpus_requests.DropOwned)
    def drop(self, request: corpus_requests.DropOwned, context: Context) -> CorpusRow:
        """Drop a corpus: after this commit no request finds it; its records are deleted later."""
        context.use_reserve()
        row = _find_own(context, request.name)
        _unlist(context, row)
        context.tell(corpus_address(row), corpus_requests.DiscardCorpus())
        audit_record.record(context, "drop_corpus", None, corpus=row.full_name)
        return row

    @handles(corpus_requests.SetIdPrefix)
    def set_prefix(self, request: corpus_requests.SetIdPrefix, context: Context) -> None:
        """Store a corpus's new prefix."""
        context.use_reserve()
        row = context.get(_key(request.row.name), CorpusRow)
        if row is not None and row.number == request.row.number:
            given = msgspec.structs.replace(row, id_prefix=request.row.id_prefix, old_ids=request.row.old_ids)
            _put(context, given)

    @handles(Restate)
    def restate(self, _restate: Restate, context: Context) -> Slices[None]:
        """Write the index rows of corpora again."""
        context.use_reserve()
        for _, row in context.scan(CorpusRow, prefix=_ENTRIES):
            context.put_row(INDEX, row.full_name.encode(), row)
            yield

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Erase the names of a person's corpora."""
        context.use_reserve()
        counts: dict[str, int] = {}
        if request.person.has_root(context.address.key):
            rows = [row for _, row in context.scan(CorpusRow, prefix=_ENTRIES)]
            counts["corpora"] = len(rows)
            if not request.dry_run:
                for row in rows:
                    _unlist(context, row)
                    yield
                context.delete(_NEXT)
        elif not request.dry_run:
            for _, row in list(context.scan(CorpusRow, prefix=_ENTRIES)):
                if request.person.has_root(row.made_by):
                    _put(context, msgspec.structs.replace(row, made_by=""))
        return ErasedPart(counts=counts)


class FindCorpus(Procedure[CorpusRow | None], frozen=True, kw_only=True):
    """Find a visible corpus by its short or full name; internal."""

    runs = "snapshot"

    name: corpus_requests.CorpusName

    def run(self, reader: IndexReader) -> CorpusRow | None:
        """Try each full name that the name may mean."""
        for wanted in corpora.find_candidates(reader.principal, self.name):
            if policy.may_see_corpora(reader.principal, wanted.owner):
                where = catalogue_address(wanted.owner)
                row = reader.get(INDEX, str(wanted).encode(), where, CorpusRow)
                if row is not None and policy.may_see_corpus(reader.principal, row.owner, row.root):
                    return row
        return None


class VisibleCorpora(Procedure[list[CorpusRow]], frozen=True, kw_only=True):
    """List the corpora that the caller may see, by name; internal."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> Slices[list[CorpusRow]]:
        """Read all rows."""
        found: list[CorpusRow] = []
        for row in reader.rows(INDEX, CorpusRow):
            if policy.may_see_corpus(reader.principal, row.value.owner, row.value.root):
                found.append(row.value)
            yield
        return sorted(found, key=lambda row: row.full_name)


class AllCorpora(Procedure[list[CorpusRow]], frozen=True, kw_only=True):
    """List all corpora; operator only."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> Slices[list[CorpusRow]]:
        """Read all rows."""
        found: list[CorpusRow] = []
        for row in reader.rows(INDEX, CorpusRow):
            found.append(row.value)
            yield
        return found


def _check(context: Context, name: str) -> None:
    """Check that the sender may see and fill the owner's corpora."""
    owner = context.address.key
    if not policy.may_see_corpora(context.principal, owner):
        raise auth_errors.denial(corpus_not_found(f"{owner}:{name}"))


def _find_own(context: Context, name: str) -> CorpusRow:
    """Return a corpus that the sender may rename and drop."""
    _check(context, name)
    row = context.get(_key(name), CorpusRow)
    if row is None:
        raise corpus_not_found(f"{context.address.key}:{name}")
    if not policy.may_drop_corpus(context.principal, row.owner, row.made_by):
        raise auth_errors.permission_denied(
            "corpus",
            f"corpus: {row.full_name!r} is everybody's: who made it may rename or drop it, or who has a "
            "key with the scope admin",
        )
    return row


def _put(context: Context, row: CorpusRow) -> None:
    context.put(_key(row.name), row)
    context.put_row(INDEX, row.full_name.encode(), row)


def _list(context: Context, row: CorpusRow) -> None:
    _put(context, row)
    context.tell(
        corpus_address(row),
        corpus_requests.CallCorpus(name=row.full_name, root=row.root, project=row.project),
    )


def _unlist(context: Context, row: CorpusRow) -> None:
    context.delete(_key(row.name))
    context.delete_row(INDEX, row.full_name.encode())


def _key(name: str) -> bytes:
    return _ENTRIES + name.encode()
