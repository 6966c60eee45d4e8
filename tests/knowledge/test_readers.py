"""What reads files: which of two is newer, and what is said of files that none has read."""

from __future__ import annotations

import sys

import pytest

from greenroom.actors.knowledge.corpora.storage.readers import (
    describe_unread,
    explain_unread,
    find_missing,
    get_reader,
    is_newer,
    mark_too_much,
    unread_by,
)

HERE = get_reader("a.py", "code", is_source=True)


@pytest.mark.promise("code.renewed")
@pytest.mark.parametrize(
    ("reader", "than", "newer"),
    [
        ("syntax:python 1.1 0.26 0.25", "syntax:python 0", True),
        ("syntax:python 1.1 0.26 0.25", "code 1", True),
        ("syntax:python 1.1 0.26 0.25", "", True),
        ("syntax:python 1.1 0.26 0.25", "syntax:python 1.1 0.26 0.25", False),
        ("syntax:python 1.1 0.26 0.25", "syntax:python 1.1 0.26 0.25 !", False),
        ("syntax:python 1.1 0.26 0.25.1", "syntax:python 1.1 0.26 0.25 !", True),
        ("syntax:python 1.2 0.26 0.25", "syntax:python 1.1 0.26 0.25", True),
        ("syntax:python 1.1 0.26 0.100", "syntax:python 1.1 0.26 0.25", True),
        ("syntax:python 1.2 0.26 0.24", "syntax:python 1.1 0.26 0.25", False),
        ("syntax:python 1.1 0.26 0.25", "syntax:python 1.2 0.26 0.24", False),
        ("syntax:python 0", "syntax:python 1.1 0.26 0.25", False),
        ("syntax:python 0", "", False),
        ("code 1", "syntax:python 1.1 0.26 0.25", False),
        ("markdown 1", "", False),
        ("markdown 2", "", True),
        ("pdf 1 7.1.1", "pdf 0", True),
        ("", "pdf 1 7.1.1", False),
        ("", "", False),
    ],
)
def test_a_reader_is_newer_where_nothing_of_it_is_older(reader: str, than: str, *, newer: bool) -> None:
    assert is_newer(reader, than) is newer


@pytest.mark.promise("code.renewed")
def test_no_two_readers_are_newer_than_each_other() -> None:
    versions = ["0", "1.1 0.26 0.25", "1.2 0.26 0.24", "1.1 0.27 0.25", "1.1 0.26 0.25 !"]
    readers = ["", "code 1", *(f"syntax:python {each}" for each in versions)]
    assert not [
        (one, other) for one in readers for other in readers if is_newer(one, other) and is_newer(other, one)
    ]


def test_it_is_said_of_which_files_the_symbols_are_not_known_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (unread_by(HERE), explain_unread(HERE), unread_by("markdown 1"), describe_unread({})) == (
        "",
        "",
        "",
        "",
    )
    assert find_missing() is None
    counts = {unread_by("syntax:python 0"): 1_200, unread_by(mark_too_much("syntax:go 1.1 0.26 0.25")): 1}
    assert describe_unread(counts) == (
        "the symbols of 1,200 Python files are not known: they were read where no parser was installed, and"
        " are read again in the background; the symbols of 1 Go file are not known: what reads Go failed, so"
        " they were read as text"
    )
    for name in ("tree_sitter_go", "pypdf"):
        monkeypatch.setitem(sys.modules, name, None)
    assert (
        "1 Go file are not known: reading Go by syntax takes tree-sitter-go, not installed here: pip install "
        in (describe_unread(counts))
    )
    found = find_missing()
    assert found is not None
    assert found.lack.endswith(
        "takes tree-sitter-go, pypdf, not installed here: pip install tree-sitter-go pypdf"
    )
