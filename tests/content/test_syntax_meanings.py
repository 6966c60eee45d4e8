"""What uses of names mean, as far as scopes and imports say it, and names that are like others."""

from __future__ import annotations

from typing import Any

import pytest

from greenroom.actors.content.syntax import Meanings, Places, read_source
from greenroom.actors.content.syntax.similar_names import find_similar_names

PYTHON = {
    "shop/__init__.py": "from .goods import sink, Store as Shop\nfrom .more import *\n",
    "shop/goods.py": "def sink(): pass\nclass Store:\n"
    "    def add(self): self.fill(); sink(); self.lost(); fill()\n"
    "    def fill(self): pass\n"
    "    def part(self, sink, n: int = 1): sink()\n"
    "    def hold(self, way: Store): Store()\n",
    "shop/more.py": "def extra(): pass\n",
    "app.py": "from shop import sink as s, Shop, extra\nimport shop.goods\nimport shop as z\n"
    "def run():\n    s(); Shop.add(); extra(); shop.goods.sink(); z.Shop(); store.add(); nowhere()\n",
    "own.py": "from shop import sink\ndef sink(): pass\nsink()\n",
    "lone.py": "sink()\n",
    "outer.py": "def outer():\n    def inner(): pass\n    inner()\n",
}
GO = {
    "go.mod": "module x.y/m\n",
    "a/a.go": "package a\nfunc Sink() {}\nfunc use(other func()) { Sink(); other() }\ntype T struct {}\n"
    "func (t *T) M() { t.M() }\n",
    "a/b.go": "package a\nfunc other() {}\nfunc k() { Sink(); other() }\n",
    "c.go": 'package main\nimport "x.y/m/a"\nimport q "x.y/m/a"\nfunc f() { a.Sink(); q.Sink(); Sink() }\n',
}
C = {
    "x.h": '#include "y.h"\nvoid sink(int);\n',
    "y.h": "int deep(void);\n",
    "x.c": '#include "x.h"\nvoid sink(int a) { deep(); }\nvoid two(int (*sink)(int)) { sink(1); }\n',
    "u.c": '#include "x.h"\nint main() { sink(1); deep(); nope(); }\n',
    "n.hpp": "namespace ns { void inn(); class Q { void m(); void k() { m(); } }; }\n",
    "q.cpp": '#include "n.hpp"\nnamespace ns { void r() { inn(); } }\nvoid z() { ns::inn(); inn(); }\n',
    "twice.c": '#include "one.h"\n#include "other.h"\nint g() { both(); }\n',
    "one.h": "int both(void);\n",
    "other.h": "int both(void);\n",
}
RUST = {
    "src/lib.rs": "mod shop;\nuse crate::shop::{sink as s, Store};\nuse shop::*;\n"
    "fn f() { s(); Store::add(); crate::shop::sink(); shop::sink(); self::f(); g(); x.add(); }\n",
    "src/shop.rs": "pub fn sink() {}\npub fn g() {}\npub struct Store;\n"
    "impl Store { pub fn add() { Self::m(); sink(); } fn m() {} }\n",
}
SCRIPT = {
    "a.ts": 'export * from "./b";\nexport { k as kk } from "./b";\nimport D from "./d";\nD();\n',
    "b.ts": "export function sink() {}\nexport function k() {}\n",
    "c.ts": 'import { sink, kk } from "./a";\nimport * as N from "./a";\nsink(); kk(); N.sink();\n'
    "function f(sink) { sink() }\nclass Z { m() { this.n(); n() } n() {} }\n",
    "d.ts": "export default function D() {}\n",
}
JAVA = {
    "p/Store.java": "package p; public class Store { static void add() { fill(); } static void fill() {} }",
    "q/U.java": "package q; import p.Store; import static p.Store.add;\n"
    "class U { void m(Store s) { add(); Store.fill(); s.fill(); new Store(); } }",
    "p/V.java": "package p; class V extends Store { void m() { nowhere(); } }",
}
CSHARP = {
    "Boats/Ferry.cs": "using Harbour.Parts;\nusing R = Harbour.Parts.Rope;\nnamespace Boats {\n"
    "class Ferry { void Load(Car car) { Weigh(); new Line(); Anchor.Drop(); this.Weigh(); car.Weigh();\n"
    "new R(); nowhere(); } void Weigh() {} } }\n",
    "Boats/Anchor.cs": "namespace Boats; static class Anchor { public static void Drop() {} }\n",
    "Harbour/Parts/Line.cs": "namespace Harbour.Parts { public class Line {} }\n",
    "Harbour/Parts/Rope.cs": "namespace Harbour.Parts { public class Rope {} }\n",
}
PHP = {
    "composer.json": '{"autoload": {"psr-4": {"H\\\\": "src/"}}}',
    "src/Ferry.php": "<?php\nnamespace H;\nuse H\\Parts\\Line as Rope;\nuse function H\\Tides\\weigh;\n"
    "require 'helpers.php';\nclass Ferry { function load() { new Rope(); Rope::make(); weigh(); help();\n"
    "$this->sink(); self::sink(); sink(); new Anchor(); } function sink() {} }\n",
    "src/Anchor.php": "<?php\nnamespace H;\nclass Anchor {}\n",
    "src/Parts/Line.php": "<?php\nnamespace H\\Parts;\nclass Line { static function make() {} }\n",
    "src/Tides.php": "<?php\nnamespace H\\Tides;\nfunction weigh() {}\n",
    "src/helpers.php": "<?php\nfunction help() {}\n",
}
RUBY = {
    "lib/ferry.rb": "require 'parts/line'\nrequire_relative 'tides'\nclass Ferry < Vessel\n  def load(car)\n"
    "    weigh(car); Line.new(car); Tides.next(1); self.sink(1); car.sink(1); sink(2); nowhere(1)\n  end\n"
    "  def sink(deep); end\nend\n",
    "lib/parts/line.rb": "class Line\nend\n",
    "lib/tides.rb": "require_relative 'ferry'\nmodule Tides\n  def self.next(one); end\nend\n"
    "def weigh(car); end\n",
}
BASH = {
    "run.sh": 'source "$HERE/lib/log.sh"\nstart() { say hello; stop; nowhere; }\nstop() { :; }\n',
    "lib/log.sh": 'say() { echo "$1"; }\n',
}
KOTLIN = {
    "src/boats/Ferry.kt": "package boats\nimport harbour.parts.Line as Rope\nimport harbour.parts.weigh\n"
    "class Ferry { fun load(car: Car) { Rope(1); weigh(car); sink(); this.sink(); car.sink(); moor(); }\n"
    "fun sink() { }\n}\n",
    "src/boats/Dock.kt": "package boats\nfun moor() { }\n",
    "src/harbour/parts/Line.kt": "package harbour.parts\nclass Line(val size: Int)\n"
    "fun weigh(car: Car) { }\n",
}
LUA = {
    "ferry.lua": 'local Line = require "parts.line"\nlocal Ferry = {}\nlocal function sink() end\n'
    "function Ferry.new() sink(); Ferry.load(); self:load(); self.ropes:sink(); Line.new() end\n"
    "function Ferry.load() end\n",
    "parts/line.lua": "local M = {}\nfunction M.new() end\nreturn M\n",
}
CASES = [
    *((CSHARP, "Boats/Ferry.cs", *case) for case in (
        ("Weigh", "Boats/Ferry.cs:Ferry.Weigh"), ("Line", "Harbour/Parts/Line.cs:Line"),
        ("Anchor.Drop", "Boats/Anchor.cs:Anchor.Drop"), ("this.Weigh", "Boats/Ferry.cs:Ferry.Weigh"),
        ("car.Weigh", ""), ("R", "Harbour/Parts/Rope.cs:Rope"), ("nowhere", ""),
    )),
    *((PHP, "src/Ferry.php", *case) for case in (
        ("Rope", "src/Parts/Line.php:Line"), ("Rope.make", "src/Parts/Line.php:Line.make"),
        ("help", "src/helpers.php:help"), ("$this.sink", "src/Ferry.php:Ferry.sink"),
        ("self.sink", "src/Ferry.php:Ferry.sink"), ("sink", ""), ("Anchor", "src/Anchor.php:Anchor"),
    )),
    *((RUBY, "lib/ferry.rb", *case) for case in (
        ("weigh", "lib/tides.rb:weigh"), ("Line", "lib/parts/line.rb:Line"), ("car.sink", ""),
        ("Tides.next", "lib/tides.rb:Tides.next"), ("self.sink", "lib/ferry.rb:Ferry.sink"),
        ("sink", "lib/ferry.rb:Ferry.sink"), ("nowhere", ""),
    )),
    (BASH, "run.sh", "say", "lib/log.sh:say"), (BASH, "run.sh", "stop", "run.sh:stop"),
    (BASH, "run.sh", "nowhere", ""),
    *((KOTLIN, "src/boats/Ferry.kt", *case) for case in (
        ("Rope", "src/harbour/parts/Line.kt:Line"), ("weigh", "src/harbour/parts/Line.kt:weigh"),
        ("sink", "src/boats/Ferry.kt:Ferry.sink"), ("this.sink", "src/boats/Ferry.kt:Ferry.sink"),
        ("car.sink", ""), ("moor", "src/boats/Dock.kt:moor"),
    )),
    *((LUA, "ferry.lua", *case) for case in (
        ("sink", "ferry.lua:sink"), ("Ferry.load", "ferry.lua:Ferry.load"), ("self.ropes.sink", ""),
        ("self.load", "ferry.lua:Ferry.load"), ("Line.new", ""),
    )),
    *((PYTHON, "app.py", *case) for case in (
        ("s", "shop/goods.py:sink"), ("Shop.add", "shop/goods.py:Store.add"), ("extra", "shop/more.py:extra"),
        ("shop.goods.sink", "shop/goods.py:sink"), ("z.Shop", "shop/goods.py:Store"), ("store.add", ""),
        ("nowhere", ""),
    )),
    *((PYTHON, "shop/goods.py", *case) for case in (
        ("self.fill", "shop/goods.py:Store.fill"), ("self.lost", ""), ("fill", ""),
        ("sink", "shop/goods.py:sink", "add"), ("sink", "", "part"), ("Store", "shop/goods.py:Store", "hold"),
    )),
    (PYTHON, "own.py", "sink", "own.py:sink"),
    (PYTHON, "lone.py", "sink", ""),
    (PYTHON, "outer.py", "inner", "outer.py:outer.inner"),
    (GO, "a/a.go", "Sink", "a/a.go:Sink"), (GO, "a/a.go", "other", ""), (GO, "a/a.go", "t.M", ""),
    (GO, "a/b.go", "Sink", "a/a.go:Sink"), (GO, "a/b.go", "other", "a/b.go:other"),
    (GO, "c.go", "a.Sink", "a/a.go:Sink"), (GO, "c.go", "q.Sink", "a/a.go:Sink"), (GO, "c.go", "Sink", ""),
    (C, "x.c", "deep", "y.h:deep"), (C, "x.c", "sink", ""), (C, "u.c", "sink", "x.h:sink"),
    (C, "u.c", "deep", "y.h:deep"), (C, "u.c", "nope", ""), (C, "twice.c", "both", ""),
    (C, "q.cpp", "inn", "n.hpp:ns.inn", "r"), (C, "q.cpp", "inn", "", "z"),
    (C, "q.cpp", "ns.inn", "n.hpp:ns.inn"),
    (C, "n.hpp", "m", "n.hpp:ns.Q.m"),
    *((RUST, "src/lib.rs", *case) for case in (
        ("s", "src/shop.rs:sink"), ("Store.add", "src/shop.rs:Store.add"), ("shop.sink", "src/shop.rs:sink"),
        ("crate.shop.sink", "src/shop.rs:sink"), ("self.f", "src/lib.rs:f"), ("g", "src/shop.rs:g"),
        ("x.add", ""),
    )),
    (RUST, "src/shop.rs", "Self.m", "src/shop.rs:Store.m"), (RUST, "src/shop.rs", "sink", "src/shop.rs:sink"),
    *((SCRIPT, "c.ts", *case) for case in (
        ("sink", "b.ts:sink", ""), ("kk", "b.ts:k"), ("N.sink", "b.ts:sink"), ("sink", "", "f"),
        ("this.n", "c.ts:Z.n"), ("n", ""),
    )),
    (SCRIPT, "a.ts", "D", "d.ts:D"),
    *((JAVA, "q/U.java", *case) for case in (
        ("add", "p/Store.java:Store.add"), ("Store.fill", "p/Store.java:Store.fill"), ("s.fill", ""),
        ("Store", "p/Store.java:Store"),
    )),
    (JAVA, "p/Store.java", "fill", "p/Store.java:Store.fill"),
    (JAVA, "p/V.java", "Store", "p/Store.java:Store"),
    (JAVA, "p/V.java", "nowhere", ""),
]  # fmt: skip


def meanings_of(tree: dict[str, str]) -> Meanings:
    sources = {path: read_source(path, text.encode()) for path, text in tree.items()}
    return Meanings({path: source for path, source in sources.items() if source.language}, Places(tree, tree))


@pytest.mark.promise("code.exact")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]}:{':'.join(case[2:])}")
def test_a_use_means_what_scopes_and_imports_say(case: tuple[Any, ...]) -> None:
    tree, path, used, meant, *within = case
    uses = [
        use
        for use in read_source(path, tree[path].encode()).references
        if (f"{use.qualifier}.{use.name}" if use.qualifier else use.name) == used
        and (not within or use.symbol.rpartition(".")[2] == within[0])
    ]
    assert uses
    for use in uses:
        assert [f"{each.file}:{each.symbol}" for each in meanings_of(tree).of_use(path, use)] == [
            meant
        ] * bool(meant)


@pytest.mark.promise("code.exact")
def test_an_import_means_what_it_brings_in_also_through_others() -> None:
    meanings = meanings_of(PYTHON)
    for path, text in PYTHON.items():
        for brought in read_source(path, text.encode()).imports:
            found = {node.symbol for node in meanings.of_import(path, brought)}
            expected = {"Shop": {"Store"}, "Store": {"Store"}, "sink": {"sink"}, "extra": {"extra"}}
            assert found == expected.get(brought.name, set())


def test_a_file_that_would_hand_a_name_on_is_lacking_until_it_was_read() -> None:
    read = {path: read_source(path, SCRIPT[path].encode()) for path in ("b.ts", "c.ts")}
    meanings = Meanings(read, Places(SCRIPT))
    use = next(use for use in read["c.ts"].references if use.name == "sink")
    assert (meanings.of_use("c.ts", use), meanings.lacking) == (frozenset(), {"a.ts"})
    read["a.ts"] = read_source("a.ts", SCRIPT["a.ts"].encode())
    assert {node.file for node in meanings.of_use("c.ts", use)} == {"b.ts"}


def test_files_that_import_each_other_in_a_circle_mean_nothing_forever() -> None:
    tree = {
        "a.py": "from b import *\nfrom b import x\nx(); y()\n",
        "b.py": "from a import *\nfrom a import x\n",
    }
    meanings = meanings_of(tree)
    for use in read_source("a.py", tree["a.py"].encode()).references:
        assert not meanings.of_use("a.py", use)


def test_many_files_that_bring_in_each_other_are_gone_through_once() -> None:
    names = [f"{letter}.h" for letter in "abcdefghijklmnopqrstuvwxyz"]
    everything = "".join(f'#include "{name}"\n' for name in names)
    tree = dict.fromkeys(names, everything) | {
        "main.c": f"{everything}int main() {{ sink(); nowhere(); }}\n",
        "z.h": f"{everything}void sink(void);\n",
    }
    meanings = meanings_of(tree)
    uses = read_source("main.c", tree["main.c"].encode()).references
    found = {use.name: meanings.of_use("main.c", use) for use in uses}
    assert {name: {each.file for each in nodes} for name, nodes in found.items()} == {
        "sink": {"z.h"},
        "nowhere": set(),
    }


PATHS = [
    "drop_anchor",
    "Ship.drop_anchor",
    "Ship.dropSail",
    "DropAnchor",
    "anchor_chain",
    "haul",
    "hall",
    "x",
]


@pytest.mark.promise("code.symbols")
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("dropAnchor", ["DropAnchor", "drop_anchor"]),
        ("drop_ancor", ["DropAnchor", "drop_anchor"]),
        ("anchorDrop", ["DropAnchor", "drop_anchor"]),
        ("Ship.dropAnchor", ["Ship.drop_anchor"]),
        ("ship.drop_sail", ["Ship.dropSail"]),
        ("Shp.drop_sial", []),
        ("chains", ["anchor_chain"]),
        ("hual", ["haul"]),
        ("hul", []),
        ("y", []),
        ("", []),
        ("...", []),
        ("y" * 200, []),
        ("\u00e4\u0000\U0001f600", []),
    ],
)
def test_names_that_are_spelled_in_another_way_in_part_or_mistyped_are_alike(
    wanted: str, found: list[str]
) -> None:
    assert find_similar_names(wanted, PATHS, 10) == found


def test_no_more_names_are_alike_than_are_wanted() -> None:
    assert find_similar_names("anchor", PATHS, 2) == ["DropAnchor", "drop_anchor"]
