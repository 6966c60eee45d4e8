"""Look up the available context of a prompt: code, memories and the session.

Missing context is no failure, but is reported. As for the tools, it is an error only if a named path is in no
workspace or does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import UNSET, UnsetType

from greenroom.actors.app.client.context import ClientContext
from greenroom.actors.app.prompts.context import Kind, Piece, language_of
from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.core.auth import scopes
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.git.git_files import NotAWorkTreeError
from greenroom.actors.core.git.projects import PlaceOfWork
from greenroom.actors.core.replies.memory_types import by_author
from greenroom.actors.knowledge.corpora.requests.code_relations import Dependency
from greenroom.actors.knowledge.corpora.requests.code_requests import (
    LONG_EXCERPT_BYTES,
    NOT_TO_BE_WRITTEN,
    CodeFile,
    CodeFilters,
    CodeFreshness,
    FileRead,
    FindCode,
)
from greenroom.actors.knowledge.workspaces.changes import read_changes
from greenroom.actors.knowledge.workspaces.places import resolve_file
from greenroom.actors.knowledge.workspaces.tools.dependency_search import DependencySearch
from greenroom.actors.knowledge.workspaces.tools.outline import Outline
from greenroom.actors.knowledge.workspaces.tools.read_file import ReadFile
from greenroom.actors.knowledge.workspaces.tools.semantic_search import search_workspace
from greenroom.actors.knowledge.workspaces.tools.similar_files import SimilarFiles
from greenroom.actors.knowledge.workspaces.tools.symbol_search import SymbolSearch
from greenroom.actors.knowledge.workspaces.tools.workspace_of import find_roots, open_workspace, read_progress
from greenroom.actors.memories.recall.recall_context import RecallContext
from greenroom.actors.sessions.passports.resume import extend_briefing
from greenroom.actors.sessions.requests.session_context import GetSessionContext
from greenroom.runtime import Address, Refusal

MAX_QUERY: Final = 500
MAX_TASK: Final = 2_000
"""The most characters of a search query."""
SIMILAR: Final = 6
MEMORY_TOKENS: Final = 2_000
MEMORIES: Final = 8
FRAMES: Final = 5
_AROUND_FRAME: Final = 12
_SHOWN_ALIKE: Final = 3
_FRAME: Final = re.compile(
    r"""File "([^"\n]{1,400})", line (\d{1,7})|(?<![\w./-])([\w./@-]{1,400}\.\w{1,8}):(\d{1,7})"""
)


class Gathering:
    """The context of one prompt.

    Attributes:
        pieces: What was found, the most important first.
    """

    def __init__(self, client: ClientContext) -> None:
        self.pieces: list[Piece] = []
        self.missing: list[str] = []
        self._client = client
        self._reader = client.with_unread_files()
        self._root: str | None = None

    # -- code ----------------------------------------------------------------------------------------

    async def opens_workspace(self) -> bool:
        """Return whether the client may read a workspace; report it if not."""
        if not self._may("code", "code"):
            return False
        try:
            self._root = (await find_roots(self._client))[0]
            workspace = await open_workspace(self._client, self._root)
        except Refusal as refusal:
            self.missing.append(f"code: {refusal.sentence}")
            return False
        self._say_how_fresh((await read_progress(self._client, workspace)).freshness)
        return True

    async def subject(self, path: str | None, symbol: str | None) -> str:
        """Look up the code of a prompt; return its text."""
        if path is None:
            assert symbol is not None, "one of both is given"
            found = await SymbolSearch(symbol=symbol, limit=3).run(self._client)
            if not found.definitions or found.names:
                near = f"; like it are {', '.join(found.names)}" if found.names else ""
                near += f"; {found.partial_reason}" if found.partial else ""
                self.missing.append(f"code: no symbol {symbol!r} is known in {found.workspace}{near}")
            texts = [
                await self._file(
                    ReadFile(path=each.file_path, lines=f"{each.lines[0]}-{each.lines[1]}", again=True),
                    f"The code of {each.symbol}",
                )
                for each in found.definitions
            ]
            return "\n".join(texts)
        try:
            request = ReadFile(path=path, symbol=symbol, again=True)
            return await self._file(request, f"The code of {symbol}" if symbol else "The file")
        except Refusal as refusal:
            if symbol is None or refusal.details.get("field") != "symbol":
                raise
            self.missing.append(f"code: {refusal.sentence}")
        return await self._file(ReadFile(path=path, again=True), "The file")

    async def outline(self, path: str, tokens: int) -> None:
        """Look up the symbols of a file or a folder."""
        with self._or_say("outline"):
            made = await Outline(path=path, max_tokens=tokens).run(self._client)
            if made.outline:
                source = f"outline of {path or 'the workspace'}"
                self._add("code", "Symbols", source, made.outline, share=0.15)
                self._say_marks(source, made.outline)

    async def related(self, path: str | None, symbol: str | None) -> list[Dependency]:
        """Look up the dependencies and the users of the code; return the users."""
        users: list[Dependency] = []

        with self._or_say("dependencies"):
            target = symbol or (await self._below(path or ""))
            found = await DependencySearch(target=target, depth=1, limit=30).run(self._client)
            if found.target_is == "unknown":
                self.missing.append(f"dependencies: {target!r} is not indexed, or not by its syntax")
                return users
            uses, used_by = _listed(found.dependencies), _listed(found.dependents)
            users.extend(found.dependents or [])
            lines = [f"uses {each}" for each in uses] + [f"is used by {each}" for each in used_by]
            about = f"dependencies of {target}, {found.are}"
            self._add("code", "What it uses, and what uses it", about, "\n".join(lines), share=0.1)
        return users

    async def similar(
        self, query: str, title: str, *, without: str | None = None, only: Callable[[str], bool] | None = None
    ) -> list[CodeFile]:
        """Look up code by what it does; return the places."""
        found: list[CodeFile] = []
        if not query.strip():
            return found
        with self._or_say(title):
            filters = CodeFilters(exclude_paths=[await self._below(without)] if without else [])
            request = FindCode(
                corpus="",
                query=query[:MAX_QUERY],
                limit=SIMILAR * 3,
                filters=filters,
                excerpt_bytes=LONG_EXCERPT_BYTES,
            )
            _, _, said = await search_workspace(self._client, "", request)
            results = [] if said is None else said.results
            kept = [each for each in results if only is None or only(each.file_path)]
            for each in kept[:SIMILAR]:
                first, last = each.line_range
                source = f"{each.file_path}:{first}-{last}"
                self._add("code", title, source, each.excerpt, language_of(each.file_path), share=0.12)
                self._say_marks(source, each.excerpt)
            found.extend(kept)
            if not kept:
                self.missing.append(f"{title}: nothing like that is indexed")
        return found

    async def like(self, path: str) -> None:
        """Look up similar files, and the beginnings of the most similar files."""
        with self._or_say("Like it"):
            found = await SimilarFiles(path=path, limit=SIMILAR).run(self._client)
            if not found.results:
                because = found.empty_because
                self.missing.append(f"Like it: {because.sentence if because else 'no file is'}")
            lines = [
                f"{each.file_path}: {each.relevance_score:g} by "
                f"{', '.join(each.signals)}{'; both have ' if each.shared else ''}{', '.join(each.shared)}"
                for each in found.results
            ]
            self._add("code", "Files like it", f"files like {path}", "\n".join(lines))
            for each in found.results[:_SHOWN_ALIKE]:
                await self.file(each.file_path, "Like it")

    async def file(self, path: str, title: str) -> None:
        """Look up the beginning of a file."""
        with self._or_say(title):
            await self._file(ReadFile(path=path, lines="1-120", again=True), title, share=0.2)

    async def frames(self, problem: str) -> None:
        """Look up the code of the workspace that a stack trace names, last places first."""
        places = [(one or other, int(line or number)) for one, line, other, number in _FRAME.findall(problem)]
        seen: set[tuple[str, int]] = set()
        for path, line in reversed(places):
            if len(seen) == FRAMES:
                return
            if (path, line) in seen or not line:
                continue
            try:
                request = ReadFile(path=path, lines=f"{line}-{line}", around=_AROUND_FRAME, again=True)
                await self._file(request, f"Around line {line}", share=0.2)
            except Refusal:  # in a library, or on another machine
                continue
            seen.add((path, line))

    async def changes(self, path: str | None) -> list[str]:
        """Look up the changes since the last commit; return the changed files."""
        roots = await find_roots(self._client)
        place = await read_in_thread(resolve_file, "path", path or "", roots, self._client.files.reach.closed)
        try:
            found = await read_changes(place.root, place.name, self._client.files.reach.closed)
        except NotAWorkTreeError as error:
            self.missing.append(f"changes: {error}")
            return []
        for each in found.files:
            if each.diff:
                self._add("code", "Changed", f"git diff of {each.path}", each.diff, "diff", share=0.4)
            else:
                await self.file(f"{place.root}/{each.path}", "New file")
        self.missing += [f"changes: {each}" for each in found.left_out]
        if not found.files:
            self.missing.append("changes: nothing differs from the last commit")
        return [each.path for each in found.files]

    # -- memory and session --------------------------------------------------------------------------

    async def memories(self, task: str) -> None:
        """Look up reviewed memories of the user and the project about a task."""
        if not self._may("memory", "memories"):
            return

        with self._or_say("memories"):
            named = self._client.session.own_project
            here = None
            if self._root is not None:
                here = await read_in_thread(self._client.session.find_project, self._root)
            request = RecallContext(
                task=task[:MAX_TASK],
                max_tokens=MEMORY_TOKENS,
                unreviewed=False,
                unasked_for=named or ("" if here is None else here.project_id),
                place=None if here is None else PlaceOfWork(here.top, *here.revision),
                older=list(here.older) if here is not None and named in {None, here.project_id} else [],
            )
            found = await self._client.runtime.query(request, principal=self._client.principal)
            for each in found.memories[:MEMORIES]:
                said = each.content if each.content is not None else bytes(each.value or b"").decode()
                by = by_author(each.author, each.imported, each.updated_by)
                source = f"memory {each.key} in {each.namespace}{by}, {each.created_at:%Y-%m-%d}"
                if each.branch:
                    source += f", noted on branch {each.branch}, whose work is not in the present one"
                self._add("memory", "Remembered", source, said, share=0.08)
            if not found.memories:
                self.missing.append("memories: nothing is remembered that fits")

    async def session(self) -> None:
        """Look up the work in the client's current session."""
        if not self._may("session", "session"):
            return
        session_id = self._client.session.session_id
        if session_id is None:
            self.missing.append("session: you work in none yet")
            return

        with self._or_say("session"):
            request = GetSessionContext(session_id=session_id, tool_id=self._client.tool)
            read = await self._client.ask(Address("session", session_id), request)
            self._add(
                "session",
                "This session",
                f"session {session_id}",
                await extend_briefing(self._client, read),
                share=0.1,
            )

    # -- how -----------------------------------------------------------------------------------------

    @contextmanager
    def _or_say(self, what: str) -> Iterator[None]:
        try:
            yield
        except Refusal as refusal:
            self.missing.append(f"{what}: {refusal.sentence}")

    def _may(self, kind: Kind, what: str) -> bool:
        needed = scopes.PROMPTS[kind]
        if not scopes.allows(self._client.principal.scopes, needed):
            self.missing.append(f"{what}: that needs the scope {needed!r}, which you do not have")
            return False
        return True

    def _say_how_fresh(self, freshness: CodeFreshness) -> None:
        if freshness.state == "watching":
            return
        of = "" if freshness.of is None else f" of {freshness.of:,}"
        self.missing.append(
            f"index: it has {freshness.indexed:,}{of} files and its state is {freshness.state}; what it says "
            "may be missing or old"
        )

    async def _file(self, request: ReadFile, title: str, share: float = 0.6) -> str:
        (read,) = (await request.run(self._reader)).files
        text = read.text or ""
        if read.masked:
            lines = ", ".join(map(str, read.masked))
            self.missing.append(f"secrets: {read.path}, lines {lines}: {NOT_TO_BE_WRITTEN}")
        self._add("code", title, _where(read), text, language_of(read.path), share)
        return text

    def _say_marks(self, source: str, text: str) -> None:
        if LEFT_OUT_BEGINS in text:
            self.missing.append(f"secrets: {source}: {NOT_TO_BE_WRITTEN}")

    async def _below(self, path: str) -> str:
        """Return a path relative to its workspace."""
        roots = await find_roots(self._client)
        return (await read_in_thread(resolve_file, "path", path, roots, self._client.files.reach.closed)).name

    def _add(
        self, kind: Kind, title: str, source: str, text: str, language: str = "", share: float = 0.3
    ) -> None:
        if text.strip():
            self.pieces.append(Piece(kind, title, source, text, language, share))


def _where(read: FileRead) -> str:
    if read.lines is UNSET or not read.lines[0]:
        return read.path
    return f"{read.path}:{read.lines[0]}-{read.lines[1]}"


def _listed(found: Iterable[Dependency] | UnsetType) -> list[str]:
    return [
        f"{each.file_path}{f':{each.symbol}' if each.symbol else ''}"
        f"{f' (line {each.line})' if each.line else ''}"
        for each in (() if isinstance(found, UnsetType) else found)
    ]
