"""Markdown that agents wrote, as the console shows it: its structure as elements, everything else as text."""

from __future__ import annotations

import re
import string
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.transports.web.console.markdown import beginning, markdown

ELEMENTS = {
    "p",
    "br",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "blockquote",
    "pre",
    "code",
    "em",
    "strong",
    "hr",
}
ELEMENTS |= {"bdi", "div", "table", "thead", "tbody", "tr", "th", "td"}
ATTRIBUTES = {"class", "dir", "value", "scope", "tabindex", "role", "aria-label"}


class Read(HTMLParser):
    """The texts and elements of HTML, with a check that nothing of it does anything."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS
        assert {name for name, _ in attrs} <= ATTRIBUTES
        self.tags.append(tag)
        self.texts += [value or "" for name, value in attrs if name == "value"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(text: str) -> str:
    return "".join(markdown(text))


MARKS = re.compile(f"[\\s{re.escape(string.punctuation)}]+")


def words(text: str) -> str:
    return MARKS.sub("", text.replace("\0", "\N{REPLACEMENT CHARACTER}"))


PIECES = st.sampled_from(
    [
        *[
            "word",
            "é",
            "1. ",
            "2) ",
            "- ",
            "* ",
            "> ",
            "# ",
            "## ",
            "```",
            "```sh evil",
            "~~~",
            "`",
            "**",
            "_",
        ],
        *[
            "__",
            "*",
            '[a](http://x/y "t")',
            "[",
            "]",
            "](",
            "(",
            ")",
            "![p](q)",
            "<b onclick=1>",
            "<!-- h -->",
        ],
        *["&amp;", "&#0;", "\\", "| a | b |", "|---|--:|", "| 1 | 2 | 3 |", '[x]: http://h "hid"', "[x]"],
        *["<http://u>", "\n", "\n\n", "    ", "\t", "---", "===", "\u202e", "\0", "\r", "a" * 400],
    ]
)


@pytest.mark.promise("console.inert")
@given(st.lists(PIECES, max_size=60).map("".join))
def test_no_word_of_a_text_is_hidden_or_moved_and_nothing_of_it_is_html(text: str) -> None:
    read = Read(shown(text))
    assert words("".join(read.texts)) == words(text)


@pytest.mark.promise("console.inert")
@pytest.mark.parametrize(
    "text",
    [
        '[x]: http://hidden.example "what agents read and people do not"',
        "| a |\n|---|\n| 1 | hidden |",
        ">" * 30 + " deep",
        "- " * 30 + "deep",
        "<!-- hidden -->",
        "![hidden](http://tracker.example/pixel.png)",
        "[a](javascript:alert(1))",
        "```sh hidden words\nls\n```",
        "&lt;script&gt;",
        "a" * 5_000 + " **b**",
    ],
)
def test_what_markdown_hides_is_seen(text: str) -> None:
    assert words("".join(Read(shown(text)).texts)) == words(text)


def test_structure_becomes_elements_and_links_are_text_with_their_address() -> None:
    text = (
        "# Deploy\n\nRead [the runbook](https://wiki.example/run) first.\n\n3. build\n4. tag\n\n"
        "| step | minutes |\n|---|--:|\n| build | 4 |\n\n```sh\nmake <all>\n```\n\n> said\n"
    )
    html = shown(text)
    tags = Read(html).tags
    for tag in ("h3", "ol", "table", "td", "pre", "blockquote"):
        assert tag in tags, tag
    assert '<li value="3">' in html
    assert "the runbook <bdi class='address'>(https://wiki.example/run)</bdi> first" in html
    assert "make &lt;all&gt;" in html


def test_names_with_underscores_and_ends_of_lines_stay() -> None:
    html = shown("see __init__.py and _private_\nand *this*")
    assert "__init__.py and _private_<br>" in html
    assert "<em>this</em>" in html


def test_what_would_take_long_to_read_stays_as_it_was_written() -> None:
    for text in ("[a](b) " * 201, "a" * 3_001 + " **b**", "|a" * 40 + "\n" + "|-" * 40 + "\n" + "|1\n" * 300):
        assert not {"bdi", "strong", "table"} & set(Read(shown(text)).tags), text[:20]


@pytest.mark.parametrize("piece", ["[", "![", ">" * 19 + "a\n\n", "|" * 60 + "\n", "#\n", "* a\n", "*a **a "])
def test_a_text_made_to_grow_does_not(piece: str) -> None:
    text = (piece * 100_000)[:50_000]
    assert len(shown(text)) < 11 * len(text)


@pytest.mark.parametrize(
    ("text", "title", "rest"),
    [
        ("Tabs, not spaces.", "Tabs, not spaces.", ""),
        ("# Deploy\n\n1. Build `it`", "Deploy", "Build it"),
        ("The checkout is one page. A third left.", "The checkout is one page.", "A third left."),
        ("word " * 30, "word " * 15 + "word…", "… " + "word " * 13 + "word"),
        ("word " * 20 + "end", "word " * 20 + "end", ""),
        ("---\n\n> **bold** words", "bold words", ""),
        ("x" * 200, "x" * 79 + "…", "…" + "x" * 121),
        ("***", "", ""),
    ],
)
def test_a_title_is_the_first_words(text: str, title: str, rest: str) -> None:
    assert beginning(text) == (title, rest)
    assert unescape(title) == title
