"""Shapes of command lines: what is kept of them, and that no secret is."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from greenroom.actors.sessions.workflows.shapes import (
    LONGEST,
    OPTIONS,
    PROGRAMS,
    SECRETIVE,
    SUBCOMMANDS,
    Word,
    build_shape,
)

pytestmark = pytest.mark.promise("workflows.shapes")

SECRET = "hunter2x"  # noqa: S105 - it is what must not be kept
LETTERS = "swordfish"
"""A password that looks like a word."""


def shape(command: str, *, passed: bool = True) -> str:
    return build_shape(command, lambda _: False, passed=passed).text


@pytest.mark.parametrize("secret", [SECRET, LETTERS, "Tr0ub4dor#3", "sk-live_9aF", "ghp_" + "a1" * 18])
@pytest.mark.parametrize(
    "command",
    [
        "mysql -u root -p{} db",
        "mysql -u root --password={} db",
        'mysql -u root --password="{}" db',
        "mysql --password '{}'",
        "PGPASSWORD={} psql -h db",
        "TOKEN='{}' ./deploy",
        "export TOKEN={}",
        "set -x {}",
        "curl -H 'Authorization: Bearer {}' https://example.org",
        "curl -u ann:{} https://example.org/a",
        "curl https://ann:{}@example.org/a?b=1#c",
        "curl -d'{}' example.org",
        "git clone https://{}@github.com/a/b",
        "git -c http.extraheader='{}' fetch",
        "echo '{}' | sudo -S ls",
        "echo {}|docker login -u ann --password-stdin",
        "docker login -u ann -p {}",
        "docker login ann {}",
        "gh auth login {}",
        "aws configure set aws_secret_access_key {}",
        "sshpass -p {} ssh ann@host",
        "sshpass -p{} ssh ann@host",
        "htpasswd -b file ann {}",
        "openssl enc -k {} -in a",
        "vault kv put secret/x value={}",
        "sudo -u {} ls",
        "cat <<END\n{}\nEND",
        "psql <<< '{}'",
        "ls; X={} make",
        "(cd /srv && TOKEN={} make)",
        "`echo {}`",
        "$(printf {})",
        "tool --api-key {}",
        "tool --api-key={}",
        "tool key {}",
        "7z x -p{} a.7z",
        'python -c "print({!r})"',
        "cmd.exe /c '{}'",
        "ls > {}/x",
        "ls '{}",
        'ls "{}',
        "ls \\{}",
    ],
)  # fmt: skip
def test_no_secret_is_in_a_shape_nor_among_the_words_that_may_be_kept_later(
    command: str, secret: str
) -> None:
    given_command = command.format(secret)
    for passed in (True, False):
        found = build_shape(given_command, lambda _: True, passed=passed)
        for part in secret.split():
            assert part not in found.text
            assert part not in str(found.words)


def test_a_password_typed_for_a_command_did_not_pass_and_is_not_kept() -> None:
    assert shape(LETTERS, passed=False) == "<program>"
    assert shape(SECRET) == shape(SECRET, passed=False) == "<program>"
    assert shape(f"{LETTERS} {SECRET}", passed=False) == "<program> <value>"


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("git status", "git status"),
        ("  git   commit -am 'fix it'  ", "git commit -am <string>"),
        ("pytest -x tests/test_a.py tests/test_b.py", "pytest -x <path>"),
        ("python -m pytest -q", "python -m pytest -q"),
        ("docker compose up -d", "docker compose up -d"),
        ("kubectl get pods -n prod", "kubectl get pods -n <word>"),
        ("make all", "make <word>"),
        ("sleep 5", "sleep <number>"),
        ("git checkout deadbeef1", "git checkout <hash>"),
        ("cat a.txt | grep x > b", "cat <path> | grep <word> > <path>"),
        ("make 2>&1 && rm *.o", "make <number> > <number> && rm <path>"),
        ("curl --fail https://example.org", "curl --fail <url>"),
        ("echo hello there", "echo <value>"),
        ("cd $HOME", "cd <variable>"),
        ("/usr/bin/env python x.py", "env python <path>"),
        ("./configure --prefix=/usr", "<program> --prefix=<value>"),
        ("FOO=1 make", "FOO=<value> make"),
        ("read_file", "read_file"),
        ("mcp__files__read", "mcp__files__read"),
        ("Edit", "Edit"),
        ("cat <<E\nx\nE", "cat < <path> <lines>"),
        ("", "<program>"),
        ("\n\n", "<program>"),
        ("|||", "<program>"),
        ("😀 x", "<program> <value>"),
    ],
)  # fmt: skip
def test_what_is_done_is_kept_without_what_it_is_done_to(command: str, kept: str) -> None:
    assert shape(command) == kept


@pytest.mark.promise("workflows.words")
def test_a_word_is_kept_where_a_name_belongs_once_it_came_often() -> None:
    first = build_shape("just lint", lambda _: False)
    assert first.words == ()
    assert first.text == "just lint"
    unknown = build_shape("just frobnicate", lambda _: False)
    assert (unknown.text, unknown.words) == ("just <word>", (Word("just", "frobnicate"),))
    assert build_shape("just frobnicate", lambda _: True).text == "just frobnicate"
    assert (
        build_shape("./frobnicate.sh x", lambda word: word == Word("", "frobnicate.sh")).text
        == "frobnicate.sh <word>"
    )
    for never in (
        "just -x frobnicate",
        "just 'frobnicate'",
        "just a2b",
        "echo frobnicate",
        "just login frobnicate",
    ):
        assert "frobnicate" not in build_shape(never, lambda _: True).text
        assert "frobnicate" not in str(build_shape(never, lambda _: False).words)
    assert build_shape("just password", lambda _: True).text == "just <word>"


KIND = re.compile("<[a-z]+>|--[a-z-]+(=<value>)?|-[a-z]{1,3}|-[a-z]<value>")
SAFE = PROGRAMS | SUBCOMMANDS | SECRETIVE | OPTIONS
commands = st.text(max_size=80) | st.lists(
    st.sampled_from(
        ["git", "commit", "-m", "--x-y=1", "'a b'", '"', "'", "\\", "<path>", "<word>", "<", ">", "2>&1", "|",
         "&&", ";", "sudo", "-S", "A=1", "a/b", "echo", "env", "\n", "<lines>", "<program>", "login",
         "$(x)", "x" * 300, "make"]
    ),
    max_size=30,
).map(" ".join)  # fmt: skip


@given(commands, st.booleans())
@example("sudo <path>", True)
@example("A=1 <lines>", False)
@example("a" * 4_000, True)
def test_a_shape_is_its_own_shape_and_short(command: str, passed: bool) -> None:  # noqa: FBT001 - drawn
    found = shape(command, passed=passed)
    assert shape(found) == found
    assert 0 < len(found) <= LONGEST
    assert "\n" not in found


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-_=:./'\"$@ ", min_size=1, max_size=120))
def test_every_word_of_a_shape_is_known_or_says_no_more_than_its_kind(arguments: str) -> None:
    for word in shape(f"git status {arguments}").split():
        assert word in SAFE or KIND.fullmatch(word), word


@pytest.mark.parametrize(
    "unit", ["\\", '"', "'", "a'", "-", "=", "a=", "/", "a.", "<", "|", "(", "a@b:", "é", "0x"]
)
def test_the_longest_command_takes_no_longer_than_its_length(unit: str) -> None:
    assert len(shape("git " + unit * (3_900 // len(unit)))) <= LONGEST
