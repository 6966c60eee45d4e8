"""What patterns of code find, and outlines within a budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.content.syntax import (
    Found,
    PatternError,
    Source,
    make_sieve,
    match_names,
    outline,
    parse_pattern,
    read_source,
    search_bytes,
)

SHOP = b'''import os.path
from stock.shelf import Shelf as Rack

LIMIT = "the limit's"


class Store(Rack):
    """A store of things."""

    def load_all(self):
        """Load what there is."""
        self.load_one(LIMIT)
        return os.path.join("a", 'load this')

    def load_one(self, thing):
        return thing.load()


class StoreError(base.Error):
    pass


def load():
    return Store().load_all()


def _hidden(first, second):
    return f"load {first}"
'''
CART = b"""import { a } from './cart.js';
export interface Cart extends Basket { add(): void }
const s = `load ${a}`;
"""


def _find(pattern: str, path: str = "shop.py", data: bytes = SHOP) -> list[Found]:
    parsed = parse_pattern(pattern)
    if parsed.what in {"symbols", "uses", "imports"}:
        return list(match_names(parsed, read_source(path, data)))
    return search_bytes(parsed, path, data)


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("function load*", [10, 15, 23]),
        ("method load*", [10, 15]),
        ("function load", [23]),
        ("function Store.load*", [10, 15]),
        ("function Other.load*", []),
        ("class Store", [7]),
        ("class *Error", [19]),
        ("constant *", [4]),
        ("symbol *o*a*", [10, 15, 23]),
        ("load", [23]),
        ("Store", [7]),
        ("LIMIT", [4]),
        ("Store.load*", [10, 15]),
        ("  *Error ", [19]),
        ("no_such_name", []),
        ("calls load*", [12, 16, 24]),
        ("calls self.load_one", [12]),
        ("calls Store", [24]),
        ("inherits Rack", [7]),
        ("inherits base.Error", [19]),
        ("inherits *", [7, 19]),
        ("imports os.path", [1]),
        ("imports stock*", [2]),
        ("imports Rack", [2]),
        ("imports stock.shelf.Shelf", [2]),
        ("imports os", []),
        ("string load*", [13, 28]),
        ("string the limit's", [4]),
        ("string a", [13]),
        ("regex ^def \\w+", [23, 27]),
        ("(call function: (identifier) @called)", [24]),
        ('((call function: (attribute attribute: (identifier) @_name)) @call (#eq? @_name "join"))', [13]),
        ("(interface_declaration) @found", []),
    ],
)
def test_a_pattern_finds_the_lines_that_it_means(pattern: str, lines: list[int]) -> None:
    assert [each.line for each in _find(pattern)] == lines


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("class Cart", Found(2, 2, "Cart", "Cart", "export interface Cart extends Basket")),
        ("inherits Bask*", Found(2, 2, "Basket", "Cart", "Basket")),
        ("imports ./cart*", Found(1, 1, "a", "", "./cart.js a")),
        ("string load*", Found(3, 3, "", "", "const s = `load ${a}`;")),
        ("regex c.nst", Found(3, 3, "", "", "const s = `load ${a}`;")),
        ("(interface_declaration name: (_) @it)", Found(2, 2, "it", "", CART.decode().splitlines()[1])),
    ],
)
def test_what_is_found_says_where_it_is_and_how_it_reads(pattern: str, found: Found) -> None:
    assert _find(pattern, "cart.ts", CART) == [found]


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("loads things", "a pattern begins with one of calls, class, constant"),
        ("load()", "a name alone or a query of tree-sitter in parentheses; 'load()' is none of these"),
        ("", "a pattern begins with one of"),
        ("function", "what 'function' is to find is missing: a name, such as function load*"),
        ("regex (", "'(' is no expression of RE2: missing )"),
        ("regex (a)\\1", "is no expression of RE2: invalid escape sequence"),
        ("regex (?=a)", "is no expression of RE2"),
        ("(nonsense) @x", "the query is none of any language: "),
        ('((identifier) @x (#match? @x "(a+)+$"))', "#match? is not read in queries"),
        ("symbol", "what 'symbol' is to find is missing: a name, such as symbol load*"),
        ("x" * 3_000, "the pattern has 3000 characters, and may have 2000"),
    ],
)
def test_what_is_no_pattern_is_said(pattern: str, sentence: str) -> None:
    with pytest.raises(PatternError) as raised:
        _find(pattern)
    assert sentence in str(raised.value)


@pytest.mark.slow
def test_patterns_that_would_take_for_ever_elsewhere_have_an_answer() -> None:
    text = b"a" * 200_000
    assert _find("regex (a+)+$", "a.txt", b"%s!" % text) == []
    assert len(_find("regex (a|aa)+", "a.txt", text)) == 1
    assert _find("regex x*", "a.txt", text) == []
    name = "a*" * 500 + "b"
    assert _find(f"symbol {name}", "a.py", b"def %s(): pass" % text[:200]) == []


def test_no_more_places_are_told_than_are_asked_for() -> None:
    assert len(search_bytes(parse_pattern("regex a"), "a.txt", b"a\n" * 5_000)) == 1_000
    assert len(search_bytes(parse_pattern("(identifier) @name"), "a.py", b"a\n" * 5_000, most=7)) == 7


_PIECES = st.sampled_from(
    [
        "'",
        '"',
        "load",
        "this",
        "e\u0301",
        "\u00e9",
        "\u0301",
        " ",
        "\n",
        "# ",
        "(",
        "x = ",
        "*",
        "lo",
        "f'",
        "\u6f22",
    ]
)


@pytest.mark.promise("code.patterns")
@given(
    st.lists(_PIECES, max_size=20).map("".join),
    st.sampled_from(["utf-8", "utf-16", "latin-1", "utf-8-sig"]),
    st.sampled_from(
        [
            *(
                "string load*",
                "string *this",
                "string *",
                "string e\u0301*",
                "string *\u00e9*",
                "string lo*is",
            ),
            *("regex lo+ad", "regex ^x", "regex \u00e9$", "regex (?i)LOAD", "regex [^a-z]\u0301", "regex x*"),
        ]
    ),
)
def test_a_file_that_the_quick_test_rules_out_has_no_match(text: str, encoding: str, pattern: str) -> None:
    data, parsed = text.encode(encoding, errors="replace"), parse_pattern(pattern)
    may_match = make_sieve(parsed)
    found = search_bytes(parsed, "shop.py", data)
    if may_match is not None and not may_match(data):
        assert found == []
    if parsed.what == "regex":
        assert may_match is not None
        assert may_match(data) == bool(found)


def test_what_needs_the_bytes_of_a_file_is_not_looked_for_without() -> None:
    with pytest.raises(PatternError, match="'regex' is found in the bytes of a file"):
        list(match_names(parse_pattern("regex a"), read_source("a.py", b"")))


def _shop() -> Source:
    return read_source("shop.py", SHOP)


def test_an_outline_has_all_symbols_and_their_sentences_where_there_is_room() -> None:
    found = outline([_shop()], 1_000)
    assert found.text.splitlines() == [
        "shop.py (28 lines)",
        '  4 LIMIT = "the limit\'s"',
        "  7-16 class Store(Rack)  # A store of things.",
        "    10-13 def load_all(self)  # Load what there is.",
        "    15-16 def load_one(self, thing)",
        "  19-20 class StoreError(base.Error)",
        "  23-24 def load()",
        "  27-28 def _hidden(first, second)",
    ]
    assert (found.shown, found.left_out) == (7, 0)
    assert found.tokens == -(-len(found.text.encode() + b"\n") // 4)


@pytest.mark.parametrize(
    ("budget", "names"),
    [
        (57, "LIMIT Store load_all load_one StoreError load _hidden"),
        (56, "LIMIT Store load_all load_one StoreError load"),
        (42, "Store load_all load_one StoreError load"),
        (25, "Store StoreError load"),
        (21, "Store StoreError"),
        (8, ""),
        (0, ""),
    ],
)
def test_with_less_room_what_others_use_comes_first_and_the_rest_is_counted(budget: int, names: str) -> None:
    found = outline([_shop()], budget)
    assert found.tokens <= budget
    shown = [each.name for each in _shop().symbols if f" {each.signature}" in found.text]
    assert " ".join(shown) == names
    assert (found.shown, found.left_out) == (len(shown), 7 - len(shown))


def test_an_outline_of_a_folder_names_its_files_first() -> None:
    found = outline([_shop(), read_source("cart.ts", CART), read_source("notes.txt", b"Hello.")], 42)
    assert found.text.splitlines() == [
        "cart.ts (3 lines)",
        "  2 export interface Cart extends Basket",
        "notes.txt (1 lines)",
        "shop.py (28 lines)",
        "  7-16 class Store(Rack)",
        "  19-20 class StoreError(base.Error)",
    ]


def test_a_part_is_not_shown_without_what_it_is_in() -> None:
    wide = b"class %s:\n    def f(self): ...\n" % (b"Wide" * 30)
    assert outline([read_source("a.py", wide)], 20).text == "a.py (2 lines)"
