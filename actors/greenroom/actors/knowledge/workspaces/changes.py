"""Read a work tree's uncommitted changes with git, as `guarded_git` runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import msgspec
import trio

from greenroom.actors.content.documents import Marks, mask_text
from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.git.git_files import NotAWorkTreeError
from greenroom.actors.core.git.guarded_git import MAX_NAMES, Git, prepare_git
from greenroom.actors.core.git.stand_in import find_work_tree
from greenroom.actors.knowledge.ingest.files.exclusions import SECRET, content_reason, file_reason
from greenroom.actors.knowledge.ingest.files.file_content import MAX_TEXT, read_bounded
from greenroom.actors.knowledge.ingest.files.places import forbidden_reason
from greenroom.actors.knowledge.ingest.parsing.masking import Masking, open_masking

_HUNK: Final = re.compile(r"(@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@)(.*)", re.DOTALL)
_HEADING: Final = 20
"""Above a hunk, git shows 80 bytes of a line; these are at least this many characters."""
_BOTH: Final = f"{LEFT_OUT_BEGINS}line]"
SECONDS: Final = 10.0
"""Time limit for all git commands that read the differences."""
MASKING_SECONDS: Final = 20.0
"""Time limit for finding secrets in the changed files."""
_NAMED: Final = 5
MAX_DIFF: Final = 2 << 20
"""Maximum bytes of differences that are read."""
MAX_FILES: Final = 300
"""Maximum number of changed files that are read."""
_EMPTY_TREE: Final = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_HEADER: Final = re.compile(r"^diff --git ", re.MULTILINE)
_DIFF: Final = (
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--ignore-submodules=all",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)


class FileChange(msgspec.Struct, frozen=True):
    """A file that differs from the last commit; for a new file, ``diff`` is empty."""

    path: str
    diff: str = ""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a folder since the last commit, and why some are missing."""

    files: list[FileChange]
    left_out: list[str]


async def read_changes(root: str, path: str, closed: Sequence[str]) -> Changes:
    """Return the changes of a workspace's file or folder since the last commit.

    Raises:
        NotAWorkTreeError: git cannot read them; the text says why.
    """
    tree = await read_in_thread(find_work_tree, root)
    below = "".join(f"{part}/" for part in Path(root).relative_to(tree.top).parts)
    with TemporaryDirectory(prefix="greenroom-git-") as temporary:
        with trio.move_on_after(SECONDS) as time:
            git = await prepare_git(tree, Path(temporary))
            found = await _differences(git, below, path, (root, *closed))
        if time.cancelled_caught:
            raise NotAWorkTreeError(f"git did not answer within {SECONDS:g} s")
        return await _mask_changes(git, tree.top, below, found)


class _Differences(NamedTuple):
    """The base commit, unmasked differences, untracked files, and notes on left-out files."""

    base: str
    files: list[FileChange]
    new: list[FileChange]
    notes: list[str]


async def _differences(git: Git, below: str, path: str, closed: Sequence[str]) -> _Differences:
    """Return the changes below a folder; the first path in ``closed`` is the workspace's root."""
    root, *never = closed
    base = (await git.output("rev-parse", "--verify", "--quiet", "HEAD", limit=100, may_fail=True))[0].strip()
    if not base:  # nothing is committed yet
        printed, _ = await git.output("rev-parse", "--show-object-format", limit=100)
        base = _EMPTY_TREE[64 if printed.strip() == "sha256" else 40]
    where = f"{below}{path}" or "."
    named, names_cut = await git.output(*_DIFF, "--name-only", "-z", base, "--", where, limit=MAX_NAMES)
    others, others_cut = await git.output(
        "ls-files", "--others", "--exclude-standard", "-z", "--", where, limit=MAX_NAMES
    )
    changed, new = (
        _split_names(named, names_cut),
        [each for each in _split_names(others, others_cut) if each[-1] != "/"],
    )
    notes = ["there are more changed files than are looked at"] if names_cut or others_cut else []
    seen = [name for name in changed if _may_be_read(root, name.removeprefix(below), never)]
    seen_new = [name for name in new if _may_be_read(root, name.removeprefix(below), never)]
    hidden = len(changed) + len(new) - len(seen) - len(seen_new)
    if hidden:
        notes.append(f"{hidden} changed files are not read: they may hold secrets")
    if len(seen) + len(seen_new) > MAX_FILES:
        notes.append(f"of {len(seen) + len(seen_new):,} changed files {MAX_FILES} are looked at")
    seen, seen_new = seen[:MAX_FILES], seen_new[: max(0, MAX_FILES - len(seen))]
    files: list[FileChange] = []
    if seen:
        text, is_cut = await git.output(*_DIFF, base, "--", *seen, limit=MAX_DIFF)
        files = _split_by_file(text.rpartition("\n")[0] if is_cut else text, seen, below)
        if is_cut:
            notes.append(f"the differences are more than {MAX_DIFF:,} bytes, and cut there")
        if withheld := len([each for each in files if content_reason(each.diff.encode()) is not None]):
            files = [each for each in files if content_reason(each.diff.encode()) is None]
            notes.append(f"{withheld} differences are not shown: there are keys in them")
    return _Differences(base, files, [FileChange(each.removeprefix(below)) for each in seen_new], notes)


async def _mask_changes(git: Git, top: str, below: str, found: _Differences) -> Changes:
    """Mask secrets in the differences; leave out differences that cannot be masked."""
    shown: dict[str, FileChange] = {}
    with trio.move_on_after(MASKING_SECONDS):
        async with open_masking() as masking:
            for each in found.files:
                with suppress(DifferentError, UnreadableFileError, NotAWorkTreeError, OSError):
                    diff = await _mask_file(git, masking, each.diff, f"{found.base}:{below}{each.path}", top)
                    shown[each.path] = msgspec.structs.replace(each, diff=diff)
    notes = list(found.notes)
    if lacking := [each.path for each in found.files if each.path not in shown]:
        named = ", ".join(lacking[:_NAMED]) + (", \u2026" if len(lacking) > _NAMED else "")
        notes.append(f"{len(lacking)} differences are not shown: no secrets could be looked for in {named}")
    if some := sum(each.diff != shown[each.path].diff for each in found.files if each.path in shown):
        notes.append(f"in {some} differences marks stand for secrets: never write a file from these")
    return Changes(files=[*shown.values(), *found.new], left_out=notes)


async def _mask_file(git: Git, masking: Masking, diff: str, place: str, top: str) -> str:
    """Mask a difference by the marks of both whole versions of its file.

    ``place`` names the older version in git's notation.

    Raises:
        DifferentError: The versions do not match the difference, or a version is missing.
    """
    old = new = Version([], [])
    if "\n@@ -" in diff:
        before, is_cut = await git.data("cat-file", "blob", place, limit=MAX_TEXT, may_fail=True)
        if before and not is_cut:
            old = await read_in_thread(make_version, before, await masking.find_marks(before))
        with suppress(FileNotFoundError):
            after = await read_in_thread(read_bounded, f"{top}/{place.partition(':')[2]}", MAX_TEXT)
            new = await read_in_thread(make_version, after, await masking.find_marks(after))
    return await read_in_thread(mask_diff, diff, old, new)


def _split_by_file(text: str, names: list[str], below: str) -> list[FileChange]:
    headers = {f"a/{name} b/{name}": name for name in names}
    files: list[FileChange] = []
    for each in _HEADER.split(text)[1:]:
        header = each.partition("\n")[0]
        name = headers.get(header, header)
        files.append(FileChange(name.removeprefix(below), f"diff --git {each}"))
    return files


def _split_names(listed: str, is_cut: bool) -> list[str]:  # noqa: FBT001
    names = [each for each in listed.split("\0") if each]
    return names[:-1] if is_cut else names


def _may_be_read(root: str, name: str, closed: Sequence[str]) -> bool:
    path = f"{root}/{name}"
    return file_reason(path, root) != SECRET and forbidden_reason(path, closed) is None


class Version(NamedTuple):
    """The lines of a file, unmasked and masked; a missing version has no lines."""

    own: list[str]
    shown: list[str]


def make_version(data: bytes, marks: Marks) -> Version:
    """Make the version of a file from its bytes and marks."""
    return Version(*(each.decode(errors="replace").split("\n") for each in (data, marks.put_into(data))))


class DifferentError(Exception):
    """A line of a difference does not match its file's version."""


def mask_diff(diff: str, old: Version, new: Version) -> str:
    """Mask a difference in git's format by the marks in both versions of a file.

    The difference alone is not enough: a line far above may show that another line is a secret. A line is
    shown only if the version has the same line at that line number.

    Raises:
        DifferentError: The lines of the difference do not match the versions.
    """
    return "\n".join(_mask_lines(diff, old, new))


def _mask_lines(diff: str, old: Version, new: Version) -> Iterator[str]:
    hidden = {
        own[:_HEADING].rstrip()
        for version in (old, new)
        for own, shown in zip(version.own, version.shown, strict=True)
        if own != shown
    }
    at_old = at_new = 0
    *lines, end = diff.split("\n")
    for line in lines:
        if hunk := _HUNK.fullmatch(line):
            at_old, at_new = int(hunk[2]), int(hunk[3])
            yield hunk[1] + ("" if hunk[4].strip()[:_HEADING].rstrip() in hidden else hunk[4])
        elif not at_old and not at_new:
            yield mask_text(line)
        elif line.startswith("\\"):
            yield line
        else:
            kind = line[:1]
            if kind not in {" ", "-", "+"}:
                raise DifferentError
            shown = [_mask_line(old, at_old, line[1:])] if kind != "+" else []
            shown += [_mask_line(new, at_new, line[1:])] if kind != "-" else []
            at_old, at_new = at_old + (kind != "+"), at_new + (kind != "-")
            marked = {each for each in shown if each != line[1:]}
            yield kind + (_BOTH if len(marked) > 1 else (*marked, line[1:])[0])
    yield mask_text(end)


def _mask_line(version: Version, number: int, line: str) -> str:
    """Return the masked line; it may lack the carriage return that its file has."""
    own = version.own[number - 1] if 0 < number <= len(version.own) else None
    if own is None or own.rstrip("\r") != line.rstrip("\r"):
        raise DifferentError
    return line if version.shown[number - 1] == own else version.shown[number - 1]
