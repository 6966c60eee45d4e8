"""What switches hooks off or excludes paths: files in projects, and what the person set."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import clean_environment
from hypothesis import given
from hypothesis import strategies as st
from support.commands import run_on_store, serving
from support.forking import forked_program
from support.hook_inputs import STOPS, called, returned, said, transcript

from greenroom.transports.clients.hooks.dialects import HookInput
from greenroom.transports.clients.hooks.enqueue import turns_of_event
from greenroom.transports.clients.hooks.spool import names_in, read_entry
from greenroom.transports.clients.hooks.switches import FILE, BadSwitchError, Switches
from greenroom.transports.clients.hooks.tool_calls import tool_call

pytestmark = pytest.mark.promise("hooks.switches")


def write(folder: Path, text: str | bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(text if isinstance(text, bytes) else text.encode())


def run(home: Path, name: str, told: dict[str, Any], **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a hook to its end, which must be a good one."""
    done = subprocess.run(
        [*forked_program(), "hook", name, "--data", str(home / "store"), "--user", "ann", "--limit", "60"],
        input=json.dumps(told).encode(),
        env=clean_environment(home, **variables),
        cwd=home,
        capture_output=True,
        check=True,
    )
    assert isinstance(json.loads(done.stdout), dict)
    return done


def stop(home: Path, folder: Path, **variables: str) -> list[str]:
    """Tell the end of a turn in a folder; return what of it waits then."""
    lines = (
        said("user", "Use tabs."),
        returned("0", "nobody knows of what"),
        called("Write", "1", file_path=str(folder / "private" / "plan.md")),
        returned("1", "ok"),
        called("Bash", "2", command="cat 'private/plan.md' | wc"),
        returned("2", "of the plan"),
        called("Bash", "3", command="make"),
        returned("3", "made"),
    )
    told = STOPS["claude-code"] | {"transcript_path": str(transcript(home, *lines)), "cwd": str(folder)}
    run(home, "stop", told, **variables)
    entries = [read_entry(home / "store", name) for name in names_in(home / "store")]
    return [turn.text or turn.command or turn.path for each in entries for turn in each.event.turns]


# -- which files count ---------------------------------------------------------------------


@pytest.mark.quick
def test_a_file_counts_for_its_folder_and_all_below(tmp_path: Path) -> None:
    below = tmp_path / "app" / "src" / "deep"
    below.mkdir(parents=True)
    assert not Switches(str(below)).off
    write(tmp_path / "app", "hooks = false")
    assert Switches(str(below)).off
    assert Switches(str(tmp_path / "app")).off
    assert not Switches(str(tmp_path)).off
    write(below, "hooks = true")
    assert Switches(str(below)).off, "a file nearer by switched on what one above switches off"


def test_a_file_counts_in_a_worktree_and_where_a_link_leads(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, "hooks = false")
    (tree / ".git").write_text(f"gitdir: {tmp_path}/app/.git/worktrees/tree\n")
    (tree / "src").mkdir()
    (tmp_path / "link").symlink_to(tree / "src")
    assert Switches(str(tree / "src")).off
    assert Switches(str(tmp_path / "link")).off
    assert Switches(str(tmp_path / "link" / "..")).off


def test_what_the_person_set_counts_before_the_files(tmp_path: Path) -> None:
    assert Switches(str(tmp_path), "off").off
    write(tmp_path, 'hooks = false\nexclude = ["private"]')
    switches = Switches(str(tmp_path), "on")
    assert not switches.off
    assert switches.excludes("private")
    assert Switches(str(tmp_path / "private"), "on").off


@pytest.mark.parametrize(
    ("pattern", "path", "is_excluded"),
    [
        ("private", "private", True),
        ("private/", "a/b/Private/c.txt", True),
        ("*.pem", "keys/a.pem", True),
        ("*.pem", "keys/a.pem.txt", False),
        ("/keys", "keys/a", True),
        ("/keys", "a/keys", False),
        ("a/keys", "a/keys/b", True),
        ("a/keys", "b/a/keys", False),
        ("a/*/c", "a/b/c/d", True),
        ("private", "publicly", False),
        ("private", "../private/x", False),
        ("x", "private/../x", True),
        ("private", "priv*/x", True),
        ("private", "*/x", False),
        ("a/keys/b", "a/*/b", True),
    ],
)
def test_a_pattern_is_a_name_anywhere_or_a_path_from_the_file(
    tmp_path: Path, *, pattern: str, path: str, is_excluded: bool
) -> None:
    app = tmp_path / "app"
    write(app, f"exclude = [{pattern!r}]")
    assert Switches(str(app)).excludes(path) is is_excluded
    assert Switches(str(app)).excludes(str(app / path)) is is_excluded


@pytest.mark.parametrize(
    ("path", "is_excluded"),
    [("keys/b", True), ("../keys/b/c", True), ("b", False), ("c/keys/b", False), ("/keys/b", False)],
)
def test_the_end_of_an_excluded_path_is_excluded_too(tmp_path: Path, *, path: str, is_excluded: bool) -> None:
    write(tmp_path, "exclude = ['a/keys/b']")
    assert Switches(str(tmp_path)).excludes(path) is is_excluded


def test_a_link_to_what_is_excluded_is_excluded(tmp_path: Path) -> None:
    write(tmp_path, 'exclude = ["/private"]')
    (tmp_path / "private").mkdir()
    (tmp_path / "open").symlink_to(tmp_path / "private")
    assert Switches(str(tmp_path)).excludes("open/plan.md")
    assert Switches(str(tmp_path / "open")).off


def test_the_persons_patterns_are_names_or_paths_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    switches = Switches(str(tmp_path / "app"), None, ["~/notes", str(tmp_path / "app" / "x"), "*.key"])
    assert not switches.off
    assert switches.excludes("~/notes/today.md")
    assert switches.excludes("x/y")
    assert switches.excludes("deep/down/a.key")
    assert not switches.excludes("notes")
    assert Switches(str(tmp_path / "notes" / "today"), None, ["~/notes"]).off


# -- what is in them -------------------------------------------------------------------------


def _link(place: Path) -> None:
    place.with_name("elsewhere").write_text("")
    place.symlink_to(place.with_name("elsewhere"))


def _wrote(content: str | bytes) -> Callable[[Path], None]:
    return lambda place: write(place.parent, content)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_link, "Too many levels of symbolic links"),
        (os.mkfifo, "is no plain file"),
        (lambda place: place.mkdir(), "is no plain file"),
        (_wrote(b"# " + b"x" * (4 << 10)), "is larger than"),
        (_wrote("hooks = true\n" + "a." * 1_000 + "a = 1"), r"has '\.a.* in line 2, but"),
        (_wrote("hooks = {" + "a." * 1_000 + "a = 1}"), "has '{a.* in line 1, but"),
        (_wrote('x = """\n""" # ' + "a." * 1_000), "in line 1, but"),
        (_wrote("exclude = ['private"), 'has "\'private" in line 1, but'),
        (_wrote(b"hooks = true # \xff"), "is not TOML"),
        (_wrote("hooks"), "is not TOML"),
        (_wrote("x = " + "[" * 4_000), "is not TOML"),
        (_wrote("hook = false"), "has 'hook', but"),
        (_wrote("hooks = 'on'"), "for hooks, but false is allowed"),
        (_wrote("hooks = 1"), "for hooks, but false is allowed"),
        (_wrote("exclude = 'private'"), "no list of at most"),
        (_wrote("exclude = [1]"), "no list of at most"),
        (_wrote(f"exclude = {['x'] * 201}"), "no list of at most"),
        (_wrote("exclude = ['!private']"), "a name or a path is allowed"),
        (_wrote("exclude = ['a/**/b']"), "a name or a path is allowed"),
        (_wrote("exclude = ['../other']"), "a name or a path is allowed"),
        (_wrote("exclude = ['']"), "a name or a path is allowed"),
        (_wrote("exclude = ['/']"), "a name or a path is allowed"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused_with_the_reason(
    tmp_path: Path, make: Callable[[Path], None], why: str
) -> None:
    make(tmp_path / FILE)
    for switch in (None, "on"):
        with pytest.raises(BadSwitchError, match=why) as refused:
            Switches(str(tmp_path), switch)
        assert str(refused.value).startswith(str(tmp_path / FILE))
        assert len(str(refused.value)) < 1_000
    assert Switches(str(tmp_path), "off").off


def test_dots_and_braces_are_allowed_in_texts_and_remarks(tmp_path: Path) -> None:
    write(
        tmp_path,
        """exclude = [  # a {b} c.d
        "a.b", '{c.d}', "e\\".f",
        'g."h']""",
    )
    switches = Switches(str(tmp_path))
    assert all(map(switches.excludes, ("a.b", "{c.d}", 'e".f', 'g."h')))


def test_a_pattern_that_could_be_tried_in_many_ways_takes_no_time(tmp_path: Path) -> None:
    write(tmp_path, f"exclude = ['{'*a' * 50}b']")
    assert not Switches(str(tmp_path)).excludes("a" * 4_000)


@given(
    st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: f"exclude = [{text!r}]".encode()))
)
def test_no_file_widens_what_hooks_do(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    above = tmp_path_factory.mktemp("widens")
    write(above, 'hooks = false\nexclude = ["private"]')
    write(above / "app", content)
    for switch in (None, "on", "off"):
        try:
            switches = Switches(str(above / "app"), switch)
        except BadSwitchError:
            continue
        assert switches.off or switch == "on"
        assert switches.excludes("private/x") or switch == "off"


# -- what hooks do ---------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_kept_or_given_where_hooks_are_off(tmp_path: Path) -> None:
    app = tmp_path / "app"
    write(app, "hooks = false")
    (app / "src").mkdir()
    known = tmp_path / "known.jsonl"
    known.write_text(json.dumps({"key": "k", "content": "We use tabs.", "tags": ["decision"]}))
    run_on_store(tmp_path, "import", str(known), "--user", "ann", "--embedder", "none")
    start = {"session_id": "s", "source": "startup", "cwd": str(app / "src")}
    assert stop(tmp_path, app / "src") == []
    assert run(tmp_path, "session-start", start).stdout == b"{}\n"
    with serving(tmp_path, "--user", "ann", "--embedder", "none"):
        assert stop(tmp_path, app / "src") == []
        assert run(tmp_path, "session-start", start).stdout == b"{}\n"
        assert b"We use tabs." in run(tmp_path, "session-start", start, GREENROOM_RUN_HOOKS="on").stdout
        away = start | {"cwd": str(tmp_path), "session_id": "t"}
        assert run(tmp_path, "session-start", away, GREENROOM_RUN_HOOKS="off").stdout == b"{}\n"
        excluded = {"GREENROOM_RUN_HOOKS": "on", "GREENROOM_HOOKS_EXCLUDE": f"{app}, *.pem"}
        assert run(tmp_path, "session-start", start | {"session_id": "u"}, **excluded).stdout == b"{}\n"


@pytest.mark.slow
@pytest.mark.parametrize("is_owned", [False, True])
def test_nothing_of_an_excluded_path_is_kept(tmp_path: Path, *, is_owned: bool) -> None:
    app = tmp_path / "app"
    write(app, "exclude = ['private']")
    if not is_owned:
        assert stop(tmp_path, app) == ["Use tabs.", "made"]
        return
    with serving(tmp_path, "--user", "ann", "--agent", "claude-code", "--embedder", "none") as server:
        stop(tmp_path, app)
        texts: list[str] = []
        while not any("make" in each for each in texts):
            for session in server.call("list_sessions")["sessions"]:
                page = server.call("get_messages", session_id=session["session_id"])
                texts += [message["content"] for message in page["messages"]]
        assert not any("plan" in each for each in texts)


PATCH = """*** Begin Patch
*** Update File: open.txt
+x
*** Update File: {0}
+x
*** End Patch"""


@pytest.mark.parametrize(
    "command",
    [
        "cd sub && cat secret/key.txt",
        "cd sub/secret; cat key.txt",
        "cd sub; cd secret; cat key.txt",
        "git -C sub/secret diff key.txt",
        "git show HEAD:sub/secret/key.txt",
        "curl -d @sub/secret/key.txt localhost",
        "curl file://{0}/sub/secret/key.txt",
        "sed -n 1p sub/secret/key.txt:12",
        "cat sub/s*/key.txt",
        PATCH.format("sub/secret/key.txt"),
        PATCH.format("open.txt\n*** Move to: sub/secret/key.txt"),
    ],
)
def test_a_call_names_an_excluded_path_however_it_is_written(tmp_path: Path, command: str) -> None:
    write(tmp_path, "exclude = ['sub/secret/key.txt']")
    excludes = Switches(str(tmp_path)).excludes
    for written, kept in ((command.replace("{0}", str(tmp_path)), 0), (command.replace("key", "lock"), 1)):
        call = tool_call({"tool_name": "Bash", "tool_input": {"command": written}, "tool_response": "x"})
        told = HookInput(session="s", folder=str(tmp_path), call=call, excludes=excludes)
        assert len(turns_of_event(told)) == kept


@pytest.mark.slow
def test_a_file_that_cannot_be_understood_switches_hooks_off_and_they_say_so(tmp_path: Path) -> None:
    app = tmp_path / "app"
    write(app, "hook = false")
    told = STOPS["claude-code"] | {
        "transcript_path": str(transcript(tmp_path, said("user", "Use tabs."))),
        "cwd": str(app),
    }
    done = run(tmp_path, "stop", told, GREENROOM_RUN_HOOKS="on")
    assert (done.stdout, names_in(tmp_path / "store")) == (b"{}\n", [])
    said_so = f"greenroom hook: {app / FILE} has 'hook', but only hooks and exclude are known"
    assert done.stderr.decode().startswith(said_so)
    assert done.stderr.count(b"\n") == 1
    start = {"session_id": "s", "source": "startup", "cwd": str(app)}
    assert b"has 'hook', but" in run(tmp_path, "session-start", start).stdout
