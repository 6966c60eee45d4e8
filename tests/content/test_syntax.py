"""Source files by their syntax: what each language's constructs are found as."""

from __future__ import annotations

import pytest
from support.code_samples import SAMPLES

from greenroom.actors.content.syntax import read_source

PYTHON = b'''"""Keeps stock. More of it follows."""

import os
from .shelf import Shelf as Rack, weigh

LIMIT = 3
_hidden: int = 4


# What a thing costs.
@cached
def price(item: Item) -> Money:
    total = weigh(item)
    return Money(total)


class Store(Rack, base.Open[str]):
    """A store of things."""

    size = 1

    async def add(self, item: Item) -> None:
        """Put a thing in.

        It is weighed first.
        """
        os.path.join(self.root, LIMIT)

        def inner() -> None: ...
'''
JAVASCRIPT = b"""import React, { useState as state } from './react.js';
const { join } = require('path');

/**
 * Shows a list.
 * @param {Array} items
 */
export default function List({ items }) {
  const local = 1;
  return <Row key={1}>{items.map((each) => each.draw())}</Row>;
}
export const total = (items) => items.length;
class Cart extends base.Basket {
  #secret() {}
  add(item) { return new Item(item); }
}
List.prototype.clear = function () {};
module.exports.reset = async () => { join(LIMIT); };
const handlers = { click() {}, drag: () => 1 };
"""
TYPESCRIPT = b"""import type { Item } from '../item';
export * from './basket';
/** A colour. */
export enum Color { Red }
export abstract class Cart<T> extends Basket<T> implements Closable {
  private count: number = 0;
  protected abstract weigh(item: Item): number;
  add = (item: T): void => { this.log(item); };
}
interface Closable extends Openable { close(): void }
type Price = number | Amount;
namespace Shop.Inner { export function open(): void {} }
declare function over(a: string): void;
"""
GO = b"""package shop

import (
\t"fmt"
\tstock "example.com/shop/stock"
)

// Shelf holds things.
type Shelf struct {
\tstock.Base
\tsize int
}

type Opener interface {
\tOpen(name string) error
}
type Names []string

const Limit = 3

var count int

// Add puts a thing on the shelf. It may fail.
func (s *Shelf) Add(item Item) error {
\tfmt.Println(item)
\treturn check(Limit)
}

func check[T any](most T) error { return nil }
"""
RUST = b"""//! Keeps stock.
use crate::{shelf::{self, Row as Line}, weigh::*};
mod parts;

/// A shelf of things.
#[derive(Debug)]
pub struct Shelf<T> { rows: Vec<T> }
pub enum Color { Red }
pub trait Opens: Closes { fn open(&self); }

impl<T> Opens for Shelf<T> {
    // Opens it.
    fn open(&self) { self.rows.clear(); check::<T>(); warn!("open"); Line::new() }
}
mod inner { pub fn deep() {} }
const LIMIT: usize = 3;
static COUNT: usize = 0;
type Rows = Vec<Line>;
macro_rules! warn { () => {} }
"""
JAVA = b"""package shop;

import java.util.List;
import static shop.Weights.weigh;
import shop.parts.*;

/** A shelf of things. It is open. */
@Stored
public class Shelf<T> extends Rack<T> implements Opens, Closes {
  private static final int LIMIT = 3;
  int count;
  public Shelf(int size) { super(size); }
  @Override
  protected void open(Item item) { weigh(item); this.rows.add(new Row<T>()); }
  enum Color { RED }
  interface Opens extends Closes { void open(); }
  record Price(int amount) {}
}
"""
C = b"""#include "shelf.h"
#include <stdio.h>
#define LIMIT 3
#define WEIGH(x) (x)

/* A shelf of things. */
struct shelf { int size; };
typedef struct { int amount; } price_t;
enum color { RED };
static const int count = 1;
int add(struct shelf *s);

/* Adds a thing.
   It may fail. */
static char *name_of(struct shelf *s)
{
    int local;
    s->open(1);
    return find(LIMIT);
}
"""
CPP = b"""#include "shelf.h"
namespace shop {
/// A shelf of things.
template <typename T>
class Shelf : public Rack<T>, private parts::Open {
 public:
  Shelf();
  ~Shelf();
  int size() const { return rows.size(); }
  bool operator==(const Shelf& other);
};
enum class Color { Red };
using Rows = std::vector<int>;
}
template <typename T>
auto shop::Shelf<T>::add(Item item) -> int { return weigh<T>(item) + ns::check(); }
int& shop::count() { return total; }
"""


FOUND = {
    "stock.py": (
        PYTHON,
        """
        constant LIMIT, variable _hidden, function price, class Store, variable Store.size, method
        Store.add, function Store.add.inner
        """,
    ),
    "list.jsx": (
        JAVASCRIPT,
        """
        function List, function total, class Cart, method Cart.#secret, method Cart.add, method
        List.clear, function reset, constant handlers, method handlers.click, function handlers.drag
        """,
    ),
    "cart.ts": (
        TYPESCRIPT,
        """
        enum Color, constant Color.Red,
        class Cart, method Cart.weigh, method Cart.add, interface Closable, method
        Closable.close, type Price, module Shop.Inner, function Shop.Inner.open, function over
        """,
    ),
    "shelf.go": (
        GO,
        """
        struct Shelf, interface Opener, method Opener.Open, type Names, constant Limit, variable count,
        method Shelf.Add, function check
        """,
    ),
    "shelf.rs": (
        RUST,
        """
        module parts, struct Shelf, enum Color, constant Color.Red,
        trait Opens, method Opens.open, method Shelf.open, module inner,
        function inner.deep, constant LIMIT, constant COUNT, type Rows, macro warn
        """,
    ),
    "Shelf.java": (
        JAVA,
        """
        class Shelf, constant Shelf.LIMIT, variable Shelf.count, method Shelf.Shelf, method Shelf.open,
        enum Shelf.Color, constant Shelf.Color.RED,
        interface Shelf.Opens, method Shelf.Opens.open, class Shelf.Price
        """,
    ),
    "shelf.c": (
        C,
        """
        constant LIMIT, macro WEIGH, struct shelf, type price_t, enum color, constant color.RED,
        constant count, function
        add, function name_of
        """,
    ),
    "shelf.cc": (
        CPP,
        """
        module shop, class shop.Shelf, method shop.Shelf.Shelf, method shop.Shelf.~Shelf, method
        shop.Shelf.size, method shop.Shelf.operator==, enum shop.Color, constant shop.Color.Red,
        type shop.Rows, method
        shop.Shelf.add, function shop.count
        """,
    ),
    **{path: (sample.data, sample.symbols) for path, sample in SAMPLES.items()},
}


@pytest.mark.parametrize("path", FOUND)
def test_definitions_of_each_language_are_found_with_their_scopes(path: str) -> None:
    data, symbols = FOUND[path]
    found = [f"{each.kind} {each.path}" for each in read_source(path, data).symbols]
    assert found == " ".join(symbols.split()).split(", ")


def test_functions_that_are_handed_over_are_found_by_their_own_names_and_once() -> None:
    found = read_source(
        "a.js",
        b"defineGetter(req, 'ip', function clientIp() { return 1 })\n"
        b"exports.open = function open() {}\nconst shut = function shut() {}\n"
        b"const Part = class Inner { weigh() {} }\nShelf.prototype.add = Shelf.prototype.push = addPart\n"
        b"const rules = { 'on-load': function () {} }\nconst [first, second] = [1, 2]\n"
        b"var { third, a: fourth } = b\n"
        b"later(function* steps() {})\n",
    ).symbols
    assert [f"{each.kind} {each.path}" for each in found] == [
        "function clientIp",
        "function open",
        "function shut",
        "class Part",
        "class Part.Inner",
        "method Part.Inner.weigh",
        "method Shelf.add",
        "method Shelf.push",
        "constant rules",
        "function rules.on-load",
        "constant first",
        "constant second",
        "variable third",
        "variable fourth",
        "function steps",
    ]


def test_associated_types_and_modules_in_other_files_are_definitions() -> None:
    found = read_source("a.rs", b"pub mod parts;\ntrait Sink { type Error: Show; }\n").symbols
    assert [f"{each.kind} {each.path}" for each in found] == ["module parts", "trait Sink", "type Sink.Error"]


@pytest.mark.parametrize(
    ("path", "data", "symbol", "signature", "summary", "lines"),
    [
        ("a.py", PYTHON, "price", "def price(item: Item) -> Money", "What a thing costs.", (10, 14)),
        ("a.py", PYTHON, "Store.add", "async def add(self, item: Item) -> None", "Put a thing in.", (22, 29)),
        ("a.js", JAVASCRIPT, "List", "export default function List({ items })", "Shows a list.", (4, 11)),
        ("a.ts", TYPESCRIPT, "Color", "export enum Color", "A colour.", (3, 4)),
        ("a.go", GO, "Shelf", "type Shelf struct", "Shelf holds things.", (8, 12)),
        (
            "a.go",
            GO,
            "Shelf.Add",
            "func (s *Shelf) Add(item Item) error",
            "Add puts a thing on the shelf.",
            (23, 27),
        ),
        ("a.rs", RUST, "Shelf", "pub struct Shelf<T>", "A shelf of things.", (5, 7)),
        ("a.java", JAVA, "Shelf.open", "@Override protected void open(Item item)", "", (13, 14)),
        ("a.c", C, "name_of", "static char *name_of(struct shelf *s)", "Adds a thing.", (13, 20)),
        (
            "a.cc",
            CPP,
            "shop.Shelf",
            "class Shelf : public Rack<T>, private parts::Open",
            "A shelf of things.",
            (3, 11),
        ),
        *((path, sample.data, *sample.above) for path, sample in SAMPLES.items()),
    ],
)
def test_a_symbol_has_its_signature_and_what_stands_above_it(
    path: str, data: bytes, symbol: str, signature: str, summary: str, lines: tuple[int, int]
) -> None:
    found = next(each for each in read_source(path, data).symbols if each.path == symbol)
    assert (found.signature, found.summary) == (signature, summary)
    assert (found.first_line, found.last_line) == lines
    assert data[found.name_byte :].startswith(found.name.encode())
    assert data[: found.first_byte].count(b"\n") + 1 == found.first_line


def _without_blanks(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("path", [*FOUND, "notes.xyz"])
def test_chunks_have_all_of_a_file_and_none_is_long(path: str) -> None:
    data = FOUND.get(path, (PYTHON, ""))[0] * 20
    source = read_source(path, data)
    assert _without_blanks("".join(each.text for each in source.chunks)) == _without_blanks(data.decode())
    assert max(len(_without_blanks(each.text)) for each in source.chunks) <= 2_000
    for each in source.chunks:
        assert data[each.first_byte : each.last_byte].decode() == each.text
        assert data.decode().split("\n")[each.first_line - 1 : each.last_line] == each.text.split("\n")
    if source.language:
        named = [path for each in source.chunks for path in each.symbols]
        assert sorted(named) == sorted(each.path for each in source.symbols)


def _long_method(statements: int) -> bytes:
    body = b"".join(b"        self.put(%d, 'a thing')\n" % number for number in range(statements))
    return b"class Store:\n    # Puts many.\n    def fill(self):\n" + body


def test_a_long_definition_is_cut_between_statements_and_its_parts_know_it() -> None:
    after = b"\n# Sells it.\ndef sell(thing):\n    return thing\n"
    chunks = read_source("a.py", _long_method(200) + after).chunks
    assert [each.scope for each in chunks] == ["", *["Store.fill"] * (len(chunks) - 2), ""]
    assert chunks[0].symbols == ["Store", "Store.fill"]
    assert all(each.text.strip().startswith("self.put(") for each in chunks[1:-1])
    assert all(each.text.endswith(")") for each in chunks[:-1])
    assert (chunks[-1].symbols, chunks[-1].text) == (["sell"], after.decode().strip())


def test_a_comment_is_in_the_chunk_of_what_it_is_above() -> None:
    functions = b"".join(
        b"# What comes before %d.\n@cached\ndef number_%d():\n%s\n"
        % (number, number, b"    work_of_some_length()\n" * 20)
        for number in range(20)
    )
    for chunk in read_source("a.py", functions).chunks:
        assert chunk.text.startswith("# What comes before")
        assert chunk.text.count("# What") == chunk.text.count("@cached") == len(chunk.symbols)


USED = {
    "stock.py": """
        call cached, call price>weigh, call price>Money, type price>Item, type price>Money,
        inherits Store>Rack, inherits Store>base.Open, call Store.add>os.path.join, other Store.add>LIMIT
        """,
    "list.jsx": """
        call List>Row, call List>items.map, call List>each.draw, inherits Cart>base.Basket,
        call Cart.add>Item, call reset>join
        """,
    "cart.ts": """
        inherits Cart>Basket, inherits Cart>Closable, call Cart.add>this.log, inherits Closable>Openable,
        type Price>Amount
        """,
    "shelf.go": """
        inherits Shelf>stock.Base, call Shelf.Add>fmt.Println, call Shelf.Add>check, other Shelf.Add>Limit
        """,
    "shelf.rs": """
        inherits Opens>Closes, inherits Shelf>Opens, call Shelf.open>self.rows.clear, call Shelf.open>check,
        call Shelf.open>warn, call Shelf.open>Line.new, type Rows>Line
        """,
    "Shelf.java": """
        call Stored, inherits Shelf>Rack, inherits Shelf>Opens, inherits Shelf>Closes, call Shelf.open>weigh,
        call Shelf.open>this.rows.add, call Shelf.open>Row, inherits Shelf.Opens>Closes
        """,
    "shelf.c": "call name_of>s.open, call name_of>find, type add>shelf, other name_of>LIMIT",
    "shelf.cc": """
        inherits shop.Shelf>Rack, inherits shop.Shelf>parts.Open, call shop.Shelf.size>rows.size,
        call shop.Shelf.add>weigh, call shop.Shelf.add>ns.check, type shop.Rows>std.vector
        """,
    **{path: sample.uses for path, sample in SAMPLES.items()},
}


@pytest.mark.parametrize("path", FOUND)
def test_what_a_symbol_uses_is_found_with_its_role_and_what_stands_before_it(path: str) -> None:
    found = [
        f"{each.role} {each.symbol and each.symbol + '>'}{each.qualifier and each.qualifier + '.'}{each.name}"
        for each in read_source(path, FOUND[path][0]).references
    ]
    assert set(" ".join(USED[path].split()).split(", ")) <= set(found)
    defined = {each.path for each in read_source(path, FOUND[path][0]).symbols}
    assert {each.split(">")[0].split()[-1] for each in found if ">" in each} <= defined


IMPORTED = {
    "stock.py": [("os", "", ""), (".shelf", "Shelf", "Rack"), (".shelf", "weigh", "")],
    "list.jsx": [
        ("./react.js", "default", "React"),
        ("./react.js", "useState", "state"),
        ("path", "join", ""),
    ],
    "cart.ts": [("../item", "Item", ""), ("./basket", "", "")],
    "shelf.go": [("fmt", "", ""), ("example.com/shop/stock", "", "stock")],
    "shelf.rs": [
        ("crate", "shelf", ""),
        ("crate::shelf", "Row", "Line"),
        ("crate::weigh", "*", ""),
        ("self", "parts", ""),
    ],
    "Shelf.java": [("java.util", "List", ""), ("shop.Weights", "weigh", ""), ("shop.parts", "*", "")],
    "shelf.c": [('"shelf.h"', "", ""), ("<stdio.h>", "", "")],
    "shelf.cc": [('"shelf.h"', "", "")],
    **{path: sample.imports for path, sample in SAMPLES.items()},
}


@pytest.mark.parametrize("path", FOUND)
def test_what_a_file_imports_is_told_as_it_is_written(path: str) -> None:
    imports = read_source(path, FOUND[path][0]).imports
    assert [(each.module, each.name, each.alias) for each in imports] == IMPORTED[path]


def test_other_forms_of_imports_are_read() -> None:
    found = read_source(
        "a.ts",
        b"import * as all from 'all';\nimport fs = require('fs');\nexport { a as b } from './a';\n"
        b"import 'side';\nconst part = await import('./late');\nconst x = require('plain');\n",
    ).imports
    assert [(each.module, each.name, each.alias) for each in found] == [
        ("all", "", "all"),
        ("fs", "", "fs"),
        ("./a", "a", "b"),
        ("side", "", ""),
        ("./late", "", ""),
        ("plain", "", "x"),
    ]
    source = read_source(
        "a.py", b"from . import a\nfrom .. import (b as c)\nfrom d.e import *\nimport f.g as h\n"
    )
    assert [(each.module, each.name, each.alias, each.line) for each in source.imports] == [
        (".", "a", "", 1),
        ("..", "b", "c", 2),
        ("d.e", "*", "", 3),
        ("f.g", "", "h", 4),
    ]
