"""What files imports mean, and what depends on what over several steps."""

from __future__ import annotations

import pytest

from greenroom.actors.content.syntax import Import, Places, invert, reach, resolve_import

FILES = [
    "src/shop/__init__.py",
    "src/shop/shelf.py",
    "src/shop/parts/__init__.py",
    "src/shop/parts/row.py",
    "src/shop/types.py",
    "libs/one/far/away/__init__.py",
    "libs/one/far/away/there.py",
    "tests/test_shelf.py",
    "tests/helper.py",
    "tests/platform.py",
    "web/src/index.ts",
    "web/src/cart.ts",
    "web/src/list/index.tsx",
    "web/src/util.js",
    "web/tsconfig.json",
    "web/src/lib/deep.ts",
    "packages/server/src/index.ts",
    "packages/server/src/adapters/node.ts",
    "packages/server/package.json",
    "go/go.mod",
    "go/main.go",
    "go/stock/shelf.go",
    "go/stock/row.go",
    "go/stock/shelf_test.go",
    "rust/Cargo.toml",
    "rust/src/lib.rs",
    "rust/src/shelf.rs",
    "rust/src/shelf/row.rs",
    "rust/src/parts/mod.rs",
    "rust/src/parts/a.rs",
    "rust/crates/side-line/Cargo.toml",
    "rust/crates/side-line/src/lib.rs",
    "rust/crates/side-line/src/deep.rs",
    "app/java/org/shop/Shelf.java",
    "app/java/org/shop/Row.java",
    "other/java/org/shop/Twice.java",
    "app/java/org/far/Twice.java",
    "app/java/org/far/Only.java",
    "c/include/shop/shelf.h",
    "c/src/shelf.c",
    "c/src/internal.h",
    "c/test/internal.h",
    "c/src/unix/loop.c",
    "net/Harbour.Boats/Harbour.Boats.csproj",
    "net/Harbour.Boats/Ferry.cs",
    "net/Harbour.Boats/Parts/Line.cs",
    "net/Harbour.Boats/Parts/Anchor.cs",
    "net/Tides/Harbour/Tides/Table.cs",
    "php/composer.json",
    "php/src/Boats/Ferry.php",
    "php/src/Parts/Line.php",
    "php/src/helpers.php",
    "php/tests/Boats/FerryTest.php",
    "php/old/Legacy/Raft.php",
    "ruby/lib/harbour.rb",
    "ruby/lib/harbour/ferry.rb",
    "ruby/lib/harbour/json.rb",
    "ruby/app/models/car.rb",
    "sh/build.sh",
    "sh/lib/log.sh",
    "kotlin/src/harbour/parts/Line.kt",
    "kotlin/src/harbour/parts/more.kt",
    "kotlin/src/harbour/Old.java",
    "lua/ferry.lua",
    "lua/parts/line.lua",
    "lua/parts/init.lua",
    "nvim/lua/only.lua",
    "deep/down/cjson.lua",
    "swift/Sources/Boats/Ferry.swift",
    "swift/Sources/Boats/Deck/Upper.swift",
    "swift/Tests/BoatsTests/FerryTests.swift",
    "scala/src/harbour/parts/Line.scala",
]
MANIFESTS = {
    "web/tsconfig.json": '{"compilerOptions": {"baseUrl": ".", /* a */ "paths": {"@/*": ["src/lib/*"],}}}',
    "packages/server/package.json": '{"name": "@shop/server"}',
    "go/go.mod": "module example.com/shop\n\ngo 1.22\n",
    "rust/Cargo.toml": '[workspace]\nmembers = []\n[package]\nkeywords = ["a"]\nname = "shop"\n',
    "rust/crates/side-line/Cargo.toml": '[package]\nname = "side-line"\n',
    "php/composer.json": '{"autoload": {"psr-4": {"Harbour\\\\": "src/"}},'
    ' "autoload-dev": {"psr-4": {"Tests\\\\": ["tests"], "Odd": 3}}}',
    "broken/composer.json": '{"autoload": [], "autoload-dev": {"psr-4": 1}}',
    "broken/package.json": "{",
    "odd/tsconfig.json": '{"compilerOptions": {"paths": 3}}',
}
PLACES = Places(FILES, MANIFESTS)


@pytest.mark.parametrize(
    ("language", "importer", "module", "name", "found"),
    [
        ("python", "src/shop/shelf.py", ".parts", "Row", "src/shop/parts/__init__.py"),
        ("python", "src/shop/shelf.py", ".parts", "row", "src/shop/parts/row.py"),
        ("python", "src/shop/parts/row.py", "..", "shelf", "src/shop/shelf.py"),
        ("python", "src/shop/parts/row.py", "..shelf", "Shelf", "src/shop/shelf.py"),
        ("python", "src/shop/parts/row.py", "....", "x", ""),
        ("python", "tests/test_shelf.py", "shop.shelf", "Shelf", "src/shop/shelf.py"),
        ("python", "tests/test_shelf.py", "shop.parts.row", "", "src/shop/parts/row.py"),
        ("python", "tests/test_shelf.py", "helper", "", "tests/helper.py"),
        ("python", "tests/test_shelf.py", "platform", "", ""),
        ("python", "src/shop/shelf.py", "types", "", ""),
        ("python", "src/shop/shelf.py", "helper", "", ""),
        ("python", "tests/test_shelf.py", "far.away.there", "", "libs/one/far/away/there.py"),
        ("python", "tests/test_shelf.py", "parts.row", "", ""),
        ("python", "tests/test_shelf.py", "requests", "get", ""),
        ("typescript", "web/src/index.ts", "./cart", "a", "web/src/cart.ts"),
        ("typescript", "web/src/index.ts", "./cart.js", "a", "web/src/cart.ts"),
        ("tsx", "web/src/list/index.tsx", "../util", "a", "web/src/util.js"),
        ("javascript", "web/src/util.js", "./list", "", "web/src/list/index.tsx"),
        ("typescript", "web/src/index.ts", "@/deep", "a", "web/src/lib/deep.ts"),
        ("typescript", "web/src/index.ts", "src/cart", "a", "web/src/cart.ts"),
        ("typescript", "go/index.ts", "@/deep", "a", ""),
        ("typescript", "web/src/index.ts", "@shop/server", "a", "packages/server/src/index.ts"),
        (
            "typescript",
            "web/src/index.ts",
            "@shop/server/adapters/node",
            "a",
            "packages/server/src/adapters/node.ts",
        ),
        ("typescript", "web/src/index.ts", "react", "a", ""),
        ("typescript", "web/src/index.ts", "../../../../etc/passwd", "a", ""),
        ("go", "go/main.go", "example.com/shop/stock", "", "go/stock/row.go go/stock/shelf.go"),
        ("go", "go/stock/row.go", "example.com/shop", "", "go/main.go"),
        ("go", "go/main.go", "example.com/shopping", "", ""),
        ("go", "go/main.go", "fmt", "", ""),
        ("rust", "rust/src/lib.rs", "self", "shelf", "rust/src/shelf.rs"),
        ("rust", "rust/src/shelf/row.rs", "crate::parts::a", "A", "rust/src/parts/a.rs"),
        ("rust", "rust/src/shelf/row.rs", "crate", "Thing", "rust/src/lib.rs"),
        ("rust", "rust/src/shelf/row.rs", "super", "Shelf", "rust/src/shelf.rs"),
        ("rust", "rust/src/shelf/row.rs", "super::super::parts", "*", "rust/src/parts/mod.rs"),
        ("rust", "rust/src/parts/mod.rs", "self::a", "A", "rust/src/parts/a.rs"),
        ("rust", "rust/src/parts/a.rs", "super", "B", "rust/src/parts/mod.rs"),
        ("rust", "rust/src/lib.rs", "shelf::row", "Row", "rust/src/shelf/row.rs"),
        ("rust", "rust/src/lib.rs", "side_line::deep", "D", "rust/crates/side-line/src/deep.rs"),
        ("rust", "rust/src/lib.rs", "std::path", "Path", ""),
        (
            "java",
            "app/java/org/shop/Row.java",
            "org.shop",
            "Shelf",
            "app/java/org/shop/Shelf.java",
        ),
        (
            "java",
            "app/java/A.java",
            "org.shop.Shelf",
            "add",
            "app/java/org/shop/Shelf.java",
        ),
        (
            "java",
            "app/java/A.java",
            "org.shop.Shelf.Inner",
            "*",
            "app/java/org/shop/Shelf.java",
        ),
        (
            "java",
            "app/java/A.java",
            "org.far",
            "*",
            "app/java/org/far/Only.java app/java/org/far/Twice.java",
        ),
        ("java", "app/java/A.java", "org.shop", "*", ""),
        ("java", "app/java/A.java", "java.util", "List", ""),
        ("c", "c/src/shelf.c", '"internal.h"', "", "c/src/internal.h"),
        ("c", "c/src/unix/loop.c", '"internal.h"', "", "c/src/internal.h"),
        ("c", "app/a.c", '"internal.h"', "", ""),
        ("c", "c/src/shelf.c", "<shop/shelf.h>", "", "c/include/shop/shelf.h"),
        ("cpp", "c/src/shelf.cc", "<vector>", "", ""),
        (
            "csharp",
            "net/Harbour.Boats/Ferry.cs",
            "Harbour.Boats.Parts",
            "*",
            "net/Harbour.Boats/Parts/Anchor.cs net/Harbour.Boats/Parts/Line.cs",
        ),
        (
            "csharp",
            "net/Harbour.Boats/Ferry.cs",
            "Harbour.Boats.Parts",
            "Line",
            "net/Harbour.Boats/Parts/Line.cs",
        ),
        ("csharp", "net/Harbour.Boats/Ferry.cs", "Harbour.Tides", "*", "net/Tides/Harbour/Tides/Table.cs"),
        (
            "csharp",
            "net/Harbour.Boats/Ferry.cs",
            "Harbour.Tides.Table",
            "*",
            "net/Tides/Harbour/Tides/Table.cs",
        ),
        ("csharp", "net/Harbour.Boats/Ferry.cs", "System", "*", ""),
        ("csharp", "net/Harbour.Boats/Ferry.cs", "System.Parts", "*", ""),
        ("php", "php/src/Boats/Ferry.php", "Harbour\\Parts", "Line", "php/src/Parts/Line.php"),
        ("php", "php/src/Boats/Ferry.php", "Tests\\Boats", "FerryTest", "php/tests/Boats/FerryTest.php"),
        ("php", "php/src/Boats/Ferry.php", "Legacy", "Raft", "php/old/Legacy/Raft.php"),
        ("php", "php/src/Boats/Ferry.php", "../helpers.php", "", "php/src/helpers.php"),
        ("php", "php/src/Boats/Ferry.php", "", "RuntimeException", ""),
        ("ruby", "ruby/lib/harbour.rb", "./harbour/ferry", "", "ruby/lib/harbour/ferry.rb"),
        ("ruby", "ruby/lib/harbour.rb", "harbour/ferry", "", "ruby/lib/harbour/ferry.rb"),
        ("ruby", "ruby/lib/harbour.rb", "car", "", "ruby/app/models/car.rb"),
        ("ruby", "ruby/lib/harbour.rb", "json", "", ""),
        ("bash", "sh/build.sh", "./lib/log.sh", "", "sh/lib/log.sh"),
        ("bash", "bin/all.sh", "lib/log.sh", "", "sh/lib/log.sh"),
        ("kotlin", "kotlin/src/harbour/A.kt", "harbour.parts", "Line", "kotlin/src/harbour/parts/Line.kt"),
        (
            "kotlin",
            "kotlin/src/harbour/A.kt",
            "harbour.parts",
            "weigh",
            "kotlin/src/harbour/parts/Line.kt kotlin/src/harbour/parts/more.kt",
        ),
        ("kotlin", "kotlin/src/harbour/A.kt", "harbour", "Old", "kotlin/src/harbour/Old.java"),
        ("kotlin", "kotlin/src/harbour/A.kt", "kotlin.test", "Test", ""),
        ("java", "kotlin/src/harbour/Old.java", "harbour.parts", "Line", "kotlin/src/harbour/parts/Line.kt"),
        ("lua", "lua/ferry.lua", "parts.line", "", "lua/parts/line.lua"),
        ("lua", "lua/ferry.lua", "parts", "", "lua/parts/init.lua"),
        ("lua", "lua/ferry.lua", "only", "", "nvim/lua/only.lua"),
        ("lua", "lua/ferry.lua", "cjson", "", ""),
        (
            "swift",
            "swift/Tests/BoatsTests/FerryTests.swift",
            "Boats",
            "*",
            "swift/Sources/Boats/Deck/Upper.swift swift/Sources/Boats/Ferry.swift",
        ),
        (
            "swift",
            "swift/Tests/BoatsTests/FerryTests.swift",
            "Boats",
            "Ferry",
            "swift/Sources/Boats/Ferry.swift",
        ),
        ("swift", "swift/Sources/Boats/Ferry.swift", "Foundation", "*", ""),
        ("scala", "scala/src/A.scala", "harbour.parts", "Line", "scala/src/harbour/parts/Line.scala"),
        ("", "notes.txt", "a", "", ""),
    ],
)
def test_an_import_means_a_file_where_the_language_says_so(
    language: str, importer: str, module: str, name: str, found: str
) -> None:
    assert resolve_import(Import(module, name, "", 1), importer, language, PLACES) == found.split()


GRAPH = {
    "a": ["b", "c"],
    "b": ["d", "a"],
    "c": ["d"],
    "d": ["e", "d"],
    "e": ["a"],
}


def test_what_a_file_leads_to_is_told_with_its_distance_and_the_ways_back() -> None:
    found = reach(GRAPH, "a", depth=10)
    assert [(each.path, each.depth, each.via) for each in found.files] == [
        ("b", 1, "a"),
        ("c", 1, "a"),
        ("d", 2, "b"),
        ("e", 3, "d"),
    ]
    assert found.cycles == [["a", "b"], ["a", "b", "d", "e"]]
    assert not found.is_cut


def test_what_leads_to_a_file_is_found_in_the_inverted_map() -> None:
    found = reach(invert(GRAPH), "d", depth=1)
    assert [each.path for each in found.files] == ["b", "c"]
    assert found.is_cut
    assert found.cycles == [["d"]]


@pytest.mark.parametrize(
    ("depth", "most", "names"), [(1, 10, "bc"), (2, 10, "bcd"), (9, 2, "bc"), (0, 9, "")]
)
def test_no_more_is_looked_for_than_is_asked_and_that_is_said(depth: int, most: int, names: str) -> None:
    found = reach(GRAPH, "a", depth=depth, most=most)
    assert "".join(each.path for each in found.files) == names
    assert found.is_cut


def test_an_unknown_file_leads_nowhere() -> None:
    assert reach(GRAPH, "z", depth=3).files == []
