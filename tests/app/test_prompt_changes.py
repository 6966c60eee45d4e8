"""`review-changes`: what git tells of a work tree, and how a hostile one could have something run.

Each trap is first seen to go off: by git itself, as a person would call it there.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]
import pytest
import trio
from support.code_agents import agent_in

from greenroom.actors import GetPrompt, PromptFilled
from greenroom.actors.core.git.git_files import NotAWorkTreeError
from greenroom.actors.knowledge.ingest.parsing import masking
from greenroom.actors.knowledge.workspaces import changes
from greenroom.actors.knowledge.workspaces.changes import read_changes

ME = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
pytestmark = pytest.mark.slow


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *ME, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A work tree with a commit and a change."""
    folder = (tmp_path / "code").resolve()
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "boat.py").write_text("sails = 1\n")
    (folder / "same.py").write_text("keel = 1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "boat.py").write_text("sails = 2222\n")
    return folder


async def review(code: Path, tmp_path: Path, **arguments: str) -> PromptFilled:
    async with agent_in(tmp_path, code) as agent:
        filled: PromptFilled = await agent.ask(GetPrompt(name="review-changes", arguments=arguments))
        return filled


# -- traps -------------------------------------------------------------------------------------------


class Trap(NamedTuple):
    """Something that a repository, or what is around it, has git run.

    Attributes:
        set: Sets it: given the work tree and the program that leaves a mark, returns the environment.
        command: By which git steps into it.
        shows: Whether the change can be shown nevertheless.
    """

    set: Callable[[Path, Path], Mapping[str, str]]
    command: tuple[str, ...] = ("diff",)
    shows: bool = True


def config(
    *pairs: str, attributes: str = "", where: str = ".gitattributes"
) -> Callable[[Path, Path], dict[str, str]]:
    """Set what the repository's configuration says, and attributes."""

    def set_it(code: Path, program: Path) -> dict[str, str]:
        for pair in pairs:
            key, _, value = pair.partition("=")
            git(code, "config", key, value.replace("PROGRAM", str(program)))
        if attributes:
            place = code / where
            place.parent.mkdir(exist_ok=True)
            place.write_text(attributes)
        return {}

    return set_it


def environment(**variables: str) -> Callable[[Path, Path], dict[str, str]]:
    return lambda _, program: {
        name: value.replace("PROGRAM", str(program)) for name, value in variables.items()
    }


def hook(code: Path, program: Path) -> dict[str, str]:
    (code / ".git/hooks/post-index-change").symlink_to(program)
    return {}


def included(code: Path, program: Path) -> dict[str, str]:
    (code / ".git/more").write_text(f"[diff]\n\texternal = {program}\n")
    git(code, "config", "include.path", "more")
    return {}


def of_work_tree(code: Path, program: Path) -> dict[str, str]:
    git(code, "config", "extensions.worktreeConfig", "true")
    git(code, "config", "--worktree", "diff.external", str(program))
    return {}


def submodule(code: Path, program: Path) -> dict[str, str]:
    inner = code / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "a").write_text("a\n")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "first")
    git(code, "add", "inner")
    git(code, "commit", "-q", "-m", "inner")
    git(inner, "config", "core.fsmonitor", str(program))
    (inner / "a").write_text("bbbb\n")
    return {}


def lazy_fetch(code: Path, program: Path) -> dict[str, str]:
    """Leave out what was committed, to be fetched when it is needed, by a program."""
    blob = git(code, "rev-parse", "HEAD:boat.py").strip()
    (code / f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    config(
        "core.repositoryformatversion=1",
        "extensions.partialClone=origin",
        "remote.origin.url=ssh://example.org/x",
        "remote.origin.promisor=true",
        "core.sshCommand=PROGRAM",
    )(code, program)
    return {}


def of_user(code: Path, program: Path) -> dict[str, str]:
    home = code.parent / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f"[diff]\n\texternal = {program}\n")
    return {"HOME": str(home)}


TRAPS = {
    "diff.external": Trap(config("diff.external=PROGRAM")),
    "a driver's command": Trap(config("diff.x.command=PROGRAM", attributes="*.py diff=x\n")),
    "a driver's textconv": Trap(config("diff.x.textconv=PROGRAM", attributes="*.py diff=x\n")),
    "attributes of the repository": Trap(
        config("diff.x.command=PROGRAM", attributes="*.py diff=x\n", where=".git/info/attributes")
    ),
    "a file of attributes": Trap(
        config(
            "diff.x.command=PROGRAM", "core.attributesFile=names", attributes="*.py diff=x\n", where="names"
        )
    ),
    "a filter": Trap(config("filter.x.clean=PROGRAM", attributes="*.py filter=x\n")),
    "a filter's process": Trap(config("filter.x.process=PROGRAM", attributes="*.py filter=x\n")),
    "a required filter": Trap(
        config("filter.x.clean=PROGRAM", "filter.x.required=true", attributes="*.py filter=x\n")
    ),
    "fsmonitor": Trap(config("core.fsmonitor=PROGRAM")),
    "a hook": Trap(hook, ("status",)),
    "hooks elsewhere": Trap(
        lambda code, program: config(f"core.hooksPath={program.parent}")(code, program), ("status",)
    ),
    "a pager": Trap(config("core.pager=PROGRAM")),
    "a pager of one command": Trap(config("pager.diff=PROGRAM")),
    "a submodule": Trap(submodule),
    "an included file": Trap(included),
    "the work tree's configuration": Trap(of_work_tree),
    "a lazy fetch": Trap(lazy_fetch, shows=False),
    "the user's configuration": Trap(of_user),
    "GIT_EXTERNAL_DIFF": Trap(environment(GIT_EXTERNAL_DIFF="PROGRAM")),
    "GIT_PAGER": Trap(environment(GIT_PAGER="PROGRAM")),
    "GIT_CONFIG_COUNT": Trap(
        environment(GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="diff.external", GIT_CONFIG_VALUE_0="PROGRAM")
    ),
    "GIT_CONFIG_PARAMETERS": Trap(environment(GIT_CONFIG_PARAMETERS="'diff.external'='PROGRAM'")),
}


@pytest.mark.promise("prompts.git")
@pytest.mark.parametrize("name", TRAPS)
async def test_nothing_that_a_repository_names_is_run(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    trap, mark = TRAPS[name], tmp_path / "mark"
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "post-index-change"
    program.write_text(f'#!/bin/sh\ntouch {mark}\n[ -f "$1" ] && cat "$1"\nexit 0\n')
    program.chmod(0o755)
    monkeypatch.setenv("PAGER", "cat")  # another waits for a key where it does not know the terminal
    for key, value in trap.set(code, program).items():
        monkeypatch.setenv(key, value)
    os.utime(code / "same.py", (1, 1))  # so that git has something to write into its index
    terminal, shown = os.openpty()  # a pager is for people
    await trio.run_process(["git", *trap.command], cwd=code, check=False, stdout=shown, stderr=shown)
    os.close(shown)
    os.close(terminal)
    assert mark.exists(), "git steps into the trap, as it does wherever somebody calls it"
    mark.unlink()
    os.utime(code / "same.py", (2, 2))
    filled = await review(code, tmp_path)
    assert not mark.exists()
    assert ("+sails = 2222" in filled.text) is trap.shows
    assert trap.shows or any("git: " in each for each in filled.missing)


@pytest.mark.quick
@pytest.mark.promise("prompts.git")
async def test_no_git_is_run_that_lies_in_the_work_tree(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    (code / "git").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (code / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{code}:{os.environ['PATH']}")
    await trio.run_process(["git", "diff"])
    assert mark.exists()
    mark.unlink()
    filled = await review(code, tmp_path)
    assert not mark.exists()
    assert any("is not run" in each for each in filled.missing)


@pytest.mark.promise("prompts.git")
async def test_attributes_of_a_repository_hide_no_change(code: Path, tmp_path: Path) -> None:
    (code / ".gitattributes").write_text("*.py binary\n")
    assert "Binary files" in git(code, "diff")
    assert "+sails = 2222" in (await review(code, tmp_path)).text


# -- which repository --------------------------------------------------------------------------------


def other(tmp_path: Path) -> Path:
    """Another repository of the same user, which nobody gave to the client."""
    folder = (tmp_path / "other").resolve()
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "diary.txt").write_text("my secret\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "diary.txt").write_text("my other secret\n")
    return folder


@pytest.mark.promise("prompts.git")
@pytest.mark.parametrize("way", ["core.worktree", "a link", "a file", "commondir"])
async def test_a_repository_leads_to_no_other_one(code: Path, tmp_path: Path, way: str) -> None:
    elsewhere = other(tmp_path)
    if way == "core.worktree":
        git(code, "config", "core.worktree", str(elsewhere))
    elif way == "commondir":
        (code / ".git/commondir").write_text(f"{elsewhere}/.git\n")
    else:
        (code / ".git").rename(tmp_path / "away")
        if way == "a link":
            (code / ".git").symlink_to(elsewhere / ".git")
        else:
            (code / ".git").write_text(f"gitdir: {elsewhere}/.git\n")
    filled = await review(code, tmp_path)
    assert "secret" not in filled.text.replace("may hold secrets", "")
    assert ("+sails = 2222" in filled.text) is (way == "core.worktree")


@pytest.mark.promise("prompts.git")
@pytest.mark.parametrize("way", ["alternates", "folders", "files", "all of them"])
async def test_a_repository_shows_no_objects_of_another_one(code: Path, tmp_path: Path, way: str) -> None:
    elsewhere = other(tmp_path)
    theirs, ours = elsewhere / ".git/objects", code / ".git/objects"
    branch = code / ".git" / git(code, "symbolic-ref", "HEAD").strip()
    branch.unlink()
    branch.symlink_to(elsewhere / ".git" / git(elsewhere, "symbolic-ref", "HEAD").strip())
    if way == "alternates":
        (ours / "info/alternates").write_text(f"{theirs}\n")
    elif way == "all of them":
        ours.rename(tmp_path / "objects")
        ours.symlink_to(theirs)
    for each in theirs.iterdir():
        if way == "folders" and not (ours / each.name).exists():
            (ours / each.name).symlink_to(each)
        elif way == "files":
            (ours / each.name).mkdir(exist_ok=True)
            for file in each.iterdir():
                (ours / each.name / file.name).symlink_to(file)
    assert "-my secret" in git(code, "diff", "HEAD"), "git itself shows it"
    filled = await review(code, tmp_path)
    assert "my secret" not in filled.text
    assert any("another repository" in each for each in filled.missing), filled.missing


@pytest.mark.promise("prompts.git")
async def test_a_repository_of_another_user_is_refused(code: Path, tmp_path: Path) -> None:
    git(code, "config", "--file", str(tmp_path / "mine"), "safe.directory", "*")
    if os.geteuid() == 0:
        os.chown(code / ".git", 65_534, -1)
    else:  # what belongs to the system is another user's as well
        (code / ".git").rename(tmp_path / "away")
        (code / ".git").mkdir()
        (code / ".git/objects").symlink_to("/usr")
    filled = await review(code, tmp_path)
    assert "sails" not in filled.text
    assert any("belongs to another user" in each or "is no git repository" in each for each in filled.missing)


@pytest.mark.promise("prompts.git")
@pytest.mark.parametrize("what", ["no repository", "no git directory", "odd head", "reftable"])
async def test_what_is_no_work_tree_is_said(code: Path, tmp_path: Path, what: str) -> None:
    if what == "odd head":
        (code / ".git/HEAD").write_text("ref: ../../x\n")
    elif what == "reftable":
        (code / ".git/reftable").mkdir()
    else:
        (code / ".git").rename(tmp_path / "away")
    if what == "no git directory":
        (code / ".git").mkdir()
    filled = await review(code, tmp_path)
    assert any(each.startswith("changes: ") for each in filled.missing), filled.missing
    assert "sails" not in filled.text


@pytest.mark.promise("prompts.git")
async def test_a_linked_work_tree_is_read(code: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(code, "worktree", "add", "-q", str(linked), "-b", "side")
    (linked / "boat.py").write_text("sails = 3\n")
    filled = await review(linked.resolve(), tmp_path)
    assert "+sails = 3" in filled.text
    assert "2222" not in filled.text


# -- what is told ------------------------------------------------------------------------------------


@pytest.mark.promise("prompts.review")
async def test_changes_are_told_with_their_files_new_ones_too_and_none_with_secrets(
    code: Path, tmp_path: Path
) -> None:
    (code / "deep").mkdir()
    (code / "deep/new.py").write_text("anchor = 1\n")
    (code / "staged ü.py").write_text("keel = 1\n")
    (code / ".gitignore").write_text("built\n")
    (code / "built").write_text("made by a program\n")
    (code / ".env").write_text("PASSWORD=hunter2\n")
    (code / "notes.txt").write_text("-----BEGIN RSA PRIVATE KEY-----\nhunter2\n")
    git(code, "add", "staged ü.py", "notes.txt", "-f", ".env")
    filled = await review(code, tmp_path, detail="thorough")
    for part in ("+sails = 2222", "anchor = 1", "+keel = 1"):
        assert part in filled.text
    assert "hunter2" not in filled.text
    assert "made by a program" not in filled.text
    assert {"git diff of boat.py", "git diff of staged ü.py", "deep/new.py:1-1"} <= set(filled.sources)
    below = await review(code, tmp_path, path="deep")
    assert "anchor = 1" in below.text
    assert "sails" not in below.text


@pytest.mark.promise("prompts.review", "code.secret-names")
async def test_no_change_of_a_secret_by_its_name_is_told(code: Path, tmp_path: Path) -> None:
    names = ("secrets/db.txt", "api_key.txt", "Token.json", "wp-config.php", "id_rsa.old", ".vault_pass")
    for name in names:
        (code / name).parent.mkdir(exist_ok=True)
        (code / name).write_text("hunter1\n")
    git(code, "add", "-f", ".")
    git(code, "commit", "-q", "-m", "with secrets")
    for name in names[:3]:
        (code / name).write_text("hunter2\n")
    (code / names[3]).unlink()
    git(code, "mv", names[4], "deploy_rsa")
    (code / "new-secret.yaml").write_text("hunter3\n")
    (code / "boat.py").write_text("sails = 3333\n")
    filled = await review(code, tmp_path, detail="thorough")
    assert "+sails = 3333" in filled.text
    assert "hunter" not in filled.text
    assert any("7 changed files are not read: they may hold secrets" in each for each in filled.missing)


@pytest.mark.quick
@pytest.mark.promise("prompts.review")
async def test_before_the_first_commit_everything_is_new(tmp_path: Path) -> None:
    code = (tmp_path / "fresh").resolve()
    code.mkdir()
    git(code, "init", "-q")
    (code / "a.py").write_text("added = 1\n")
    git(code, "add", ".")
    assert "+added = 1" in (await review(code, tmp_path)).text


@pytest.mark.promise("prompts.git")
async def test_what_is_too_much_is_cut_and_said(code: Path) -> None:
    (code / "boat.py").write_text("sail\n" * 600_000)
    found = await read_changes(str(code), "", ())
    assert sum(len(each.diff) for each in found.files) <= 2 << 20
    assert any("cut there" in each for each in found.left_out)


@pytest.mark.promise("prompts.git")
@pytest.mark.usefixtures("autojump_clock")
async def test_a_git_that_never_ends_is_ended(code: Path) -> None:
    (code / ".git/index").unlink()
    os.mkfifo(code / ".git/index")  # reading it ends when somebody writes
    with pytest.raises(NotAWorkTreeError, match="did not answer within 10 s"):
        await read_changes(str(code), "", ())
    assert "git" not in {each.name() for each in psutil.Process().children()}


# -- secrets in differences --------------------------------------------------------------------------

VALUE, OTHER = "cGFzc3dvcmQtb2YtdGhlLXF1YXk=", "YW5vdGhlci1wYXNzd29yZA=="
PADDING = "".join(f"    note-{n}: mooring {n}\n" for n in range(40))
MANIFEST = f"apiVersion: v1\nkind: Secret\nmetadata:\n  annotations:\n{PADDING}data:\n"


@pytest.mark.promise("code.read")
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("padding", [1, 60])  # with 60 times the padding both files go to a process
async def test_what_stands_far_above_a_difference_tells_that_it_has_a_secret(
    code: Path, tmp_path: Path, end: str, padding: int
) -> None:
    manifest = MANIFEST.replace(PADDING, PADDING * padding)
    rest = "".join(f"  word-{n}: {VALUE}\n" for n in range(9))
    for name, kind in (("old.yaml", "Secret"), ("map.yaml", "ConfigMap")):
        text = (manifest + rest).replace("Secret", kind).replace("\n", end)
        (code / name).write_bytes(text.encode())
    git(code, "config", "core.autocrlf", "true" if end == "\r\n" else "false")
    git(code, "add", ".")
    git(code, "commit", "-q", "-m", "manifests")
    changed = rest.replace(f"word-4: {VALUE}", f"word-4: {OTHER}")
    (code / "old.yaml").write_bytes((manifest + changed).replace("\n", end).encode())
    (code / "map.yaml").write_bytes((manifest + changed).replace("\n", end).encode())
    shown = git(code, "diff")
    assert VALUE in shown
    assert "kind: Secret" not in shown.partition("old.yaml")[2]
    filled = await review(code, tmp_path, detail="thorough")
    assert "word-4" in filled.text
    assert OTHER not in filled.text
    old = filled.text.partition("git diff of old.yaml")[2]
    assert old.count("word-4") == 2
    assert VALUE not in old
    assert any("never write" in each for each in filled.missing)


@pytest.mark.promise("code.read")
async def test_the_line_above_that_git_names_in_a_hunk_has_no_secret(code: Path, tmp_path: Path) -> None:
    body = "".join(f"    row {n}\n" for n in range(30))
    (code / "set.txt").write_text(f"password = Tr0ub4dor-and-3-boats\n{body}")
    git(code, "add", ".")
    git(code, "commit", "-q", "-m", "settings")
    (code / "set.txt").write_text(f"password = Tr0ub4dor-and-3-boats\n{body.replace('row 20', 'row twenty')}")
    assert "@@ password = Tr0ub4dor" in git(code, "diff")
    filled = await review(code, tmp_path)
    assert "+    row twenty" in filled.text
    assert "Tr0ub4dor" not in filled.text


@pytest.mark.promise("code.read")
@pytest.mark.parametrize("what", ["all", "large", "gone", "not as git has it"])
async def test_a_difference_is_left_out_with_a_word_where_no_secrets_can_be_looked_for(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    (code / "large.txt").write_text("".join(f"mooring {n}\n" for n in range(9_000)))
    git(code, "add", ".")
    git(code, "commit", "-q", "-m", "large")
    (code / "large.txt").write_text((code / "large.txt").read_text() + f"password: {VALUE}\n")
    (code / "boat.py").write_text("sails = 3333\n")
    if what == "all":
        monkeypatch.setattr(changes, "MASKING_SECONDS", 0.0)
    elif what == "large":
        monkeypatch.setattr(masking, "SECONDS", 0.0)
    elif what == "gone":  # what is a link in the index is none here
        (code / "large.txt").unlink()
        (code / "large.txt").symlink_to(f"password: {VALUE}")
    else:
        monkeypatch.setattr(changes, "MAX_TEXT", 4_000)
    filled = await review(code, tmp_path)
    assert VALUE not in filled.text
    assert ("+sails = 3333" in filled.text) is (what != "all")
    (said,) = [each for each in filled.missing if "no secrets could be looked for in" in each]
    assert "large.txt" in said


@pytest.mark.promise("prompts.review")
async def test_files_that_come_and_go_are_told_with_marks(code: Path, tmp_path: Path) -> None:
    (code / "same.py").unlink()
    (code / "added.py").write_text("password = 'Tr0ub4dor-and-3-boats'\nanchor = 1")
    (code / "empty.py").touch()
    (code / "boat.py").chmod(0o755)
    git(code, "add", ".")
    filled = await review(code, tmp_path, detail="thorough")
    for part in ("-keel = 1", "+anchor = 1", "+sails = 2222", "[secret left out: password]", "No newline"):
        assert part in filled.text, part
    assert "Tr0ub4dor" not in filled.text
