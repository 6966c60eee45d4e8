"""Entities in texts and files: names found, declarations read, names suggested, typing errors forgiven."""

from __future__ import annotations

import string
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from greenroom.actors.knowledge.entities import (
    EntityMatcher,
    EntityName,
    MatchedNames,
    NameCounter,
    UnreadableDeclarationsError,
    fold,
    look_up,
    parse_declarations,
)
from greenroom.actors.knowledge.entities.records import EntityDeclaration, Relation
from greenroom.runtime import finish


def mentions(entities: Sequence[MatchedNames], *texts: str, context: str = "") -> list[dict[int, int]]:
    found: list[dict[int, int]] = finish(EntityMatcher(entities).match(texts, context))
    return found


def named(*names: str) -> list[MatchedNames]:
    return [MatchedNames(key, [name]) for key, name in enumerate(names, 1)]


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("Redis", "Redis, redis and REDIS; Redises too. (redis)", 5),
        ("Redis", "Predis and rediscovered", 0),
        ("redis", "redis_client.get, redis-py, redis.asyncio", 3),
        ("React Native", "react-native, React  Native,\nreact_native and React\nNative", 4),
        ("vector databases", "a vector database, two vector databases", 2),
        ("Proxy", "three proxies", 1),
        ("Rails", "a rail is no Rails", 1),
        ("C", "C, C++ and C#", 1),
        ("C++", "C, C++ and C++11, C+++", 2),
        (".NET", "on .NET 8, not the net", 1),
        ("Straße", "STRASSE", 1),
        ("Ⅷ", "viii", 1),
        ("日本語", "これは 日本語 です", 1),
        ("(a+)+$", "an a is not (a+)+$ here", 1),
        (".*", "anything .* but", 1),
        ("'; DROP TABLE x; --", "say '; drop table x; -- twice", 1),
        ("\\d{3}", "123 \\d{3}", 1),
    ],
)
@pytest.mark.promise("entities.words")
def test_a_name_is_found_as_a_whole_word_and_is_nothing_but_text(name: str, text: str, count: int) -> None:
    assert mentions(named(name), text) == [{1: count} if count else {}]


@pytest.mark.promise("entities.words")
def test_of_names_that_overlap_the_longest_counts() -> None:
    entities = named("React", "React Native", "Native Client")
    assert mentions(entities, "React Native Client; React") == [{1: 1, 2: 1}]


@pytest.mark.promise("entities.context")
def test_an_ambiguous_name_counts_beside_another_name_of_its_own_or_of_a_relative() -> None:
    go = MatchedNames(1, ["Go", "golang"], ambiguous=["Go"], related=frozenset({2}))
    gin = MatchedNames(2, ["Gin Web"])
    assert mentions([go, gin], "Let it go.", "Go on.") == [{}, {}]
    assert mentions([go, gin], "Go is golang.", "Go.") == [{1: 2}, {1: 1}]
    assert mentions([go, gin], "Gin Web.", "In Go.") == [{2: 1}, {1: 1}]
    assert mentions([go, gin], "In Go.", context="About golang") == [{1: 1}]


@pytest.mark.promise("entities.context")
def test_a_name_of_two_entities_is_that_of_the_one_spoken_of() -> None:
    planet, god = MatchedNames(1, ["Mercury", "planet X"]), MatchedNames(2, ["Mercury", "Hermes"])
    assert mentions([planet, god], "Mercury") == [{}]
    assert mentions([planet, god], "Hermes is Mercury") == [{2: 2}]
    assert mentions([planet, god], "Hermes is Mercury", "planet X: Mercury") == [{2: 2}, {1: 2}]


@pytest.mark.promise("entities.context")
@pytest.mark.parametrize("text", ["`click`", "import click", "pip install click", "require('click')"])
def test_an_ambiguous_name_that_is_plainly_code_needs_no_context(text: str) -> None:
    click = MatchedNames(1, ["click"], ambiguous=["click"])
    assert mentions([click], text) == [{1: 1}]
    assert mentions([click], "a click to import the clicks") == [{}]


@given(st.lists(st.text(min_size=1, max_size=8), max_size=20), st.text(max_size=200))
def test_any_names_and_any_text_are_matched(names: list[str], text: str) -> None:
    found = mentions(named(*names), text)
    assert all(0 < count <= len(text) for count in found[0].values())


words = st.text(alphabet=string.ascii_lowercase, min_size=3, max_size=10)


@given(st.lists(words, min_size=1, unique=True), st.data())
def test_every_whole_word_is_found(vocabulary: list[str], data: st.DataObject) -> None:
    text = data.draw(st.lists(st.sampled_from(vocabulary), max_size=30))
    name = data.draw(st.sampled_from(vocabulary))
    [found] = mentions(named(name), " ".join(text))
    assert found.get(1, 0) >= text.count(name)
    assert sum(found.values()) <= len(text)


def whole_words(names: Sequence[str], text: str) -> dict[int, int]:
    """Find names slowly: of those that begin first, the longest whole word."""
    found: dict[int, int] = {}
    place = 0
    while place < len(text):
        fitting = [name for name in names if text.startswith(name, place) and is_whole(text, name, place)]
        if fitting:
            longest = max(fitting, key=len)
            key = names.index(longest) + 1
            found[key] = found.get(key, 0) + 1
        place += len(longest) if fitting else 1
    return found


def is_whole(text: str, name: str, place: int) -> bool:
    before, after = text[place - 1 : place], text[place + len(name) : place + len(name) + 1]
    if name[0].isalnum() and before.isalnum():
        return False
    return not ((name[-1].isalnum() and (after.isalnum() or after in {"+", "#"})) or after == name[-1] == "+")


odd = st.text(alphabet="a+#.\0\1é", min_size=1, max_size=5)


@given(st.lists(odd, min_size=1, max_size=8, unique=True), st.text(alphabet="a+#.\0\1é ", max_size=40))
@example(["a a", "a", "a+", "+"], "a aa a++ a+a")
def test_of_all_names_the_first_and_longest_whole_words_are_found(names: list[str], text: str) -> None:
    # The marks are one and the same sign in names and texts; plurals begin with three letters.
    signs = str.maketrans("\0\1", "\ufffd\ufffd")
    names = list(
        dict.fromkeys(name.translate(signs) for name in names if "aaa" not in name and len(name) < 3)
    )
    assert mentions(named(*names), text) == [whole_words(names, text.translate(signs))]


def test_names_that_begin_alike_take_no_memory_for_each_of_them_at_each_place() -> None:
    names = named(*("a" * length for length in range(1, 100)), *("a " * length for length in range(2, 100)))
    for text in ("a" * 20_000, "a " * 10_000):
        matcher = EntityMatcher(names)
        tracemalloc.start()
        try:
            matcher.mentions(text)
            assert tracemalloc.get_traced_memory()[1] < 4 << 20
        finally:
            tracemalloc.stop()


# -- looking up -------------------------------------------------------------------------------

KNOWN = [
    EntityName(fold(name), key)
    for key, names in {
        1: ["Stripe"],
        2: ["PostgreSQL", "Postgres"],
        3: ["Kubernetes", "k8s"],
        4: ["React"],
        5: ["React Native"],
        6: ["(a+)+$"],
    }.items()
    for name in names
]


def keys(wanted: str) -> list[int]:
    found: list[tuple[int, float]] = finish(look_up(KNOWN, wanted))
    return [key for key, _ in found]


@pytest.mark.promise("entities.typing-errors")
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("stripe", [1]),
        ("STIRPE", [1]),
        ("stipe", [1]),
        ("postgress", [2]),
        ("Postgre", [2]),
        ("kubernets", [3]),
        ("k8s", [3]),
        ("k9s", []),
        ("react", [4, 5]),
        ("react-native", [5]),
        ("native", [5]),
        ("re*e", [5]),
        ("*", [1, 2, 3, 4, 5, 6]),
        ("s?ripe", [1]),
        ("??????", [1, 6]),
        ("(a+)+$", [6]),
        (".*", []),
        ("[a-z]+", []),
        ("reaction engines", []),
    ],
)
def test_an_entity_is_found_by_a_name_a_part_a_pattern_or_with_typing_errors(
    wanted: str, found: list[int]
) -> None:
    assert keys(wanted) == found


@given(st.text(alphabet="*?ab", max_size=12), st.text(alphabet="ab", min_size=1, max_size=12))
@example("*a*", "aa")
@example("?aaaaaa", "aaaaaa")
def test_a_pattern_means_the_same_as_in_a_shell(pattern: str, name: str) -> None:
    from fnmatch import fnmatchcase  # noqa: PLC0415 - the oracle of this test alone

    found = finish(look_up([EntityName(name, 1)], pattern))
    if "*" in pattern or "?" in pattern:
        assert bool(found) == fnmatchcase(name, pattern)


# -- declarations in files ----------------------------------------------------------------------


@pytest.mark.promise("entities.files")
def test_a_yaml_file_declares_entities() -> None:
    text = """
entities:
  - name: Stripe
    type: vendor
    aliases: [Stripe Payments]
    ambiguous: [Stripe]
    description: Takes payments.
    relations:
      - {to: Checkout, type: offers}
  - {name: Checkout, type: service}
"""
    stripe, checkout = parse_declarations("entities.yaml", text)
    assert stripe == EntityDeclaration(
        name="Stripe",
        type="vendor",
        aliases=["Stripe Payments"],
        ambiguous=["Stripe"],
        description="Takes payments.",
        relations=[Relation("Checkout", "offers")],
    )
    assert checkout.relations == []


@pytest.mark.promise("entities.files")
@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", "entities: 3", "no list of entities"),
        ("a.yaml", "- {name: A, type: planet}", "entity 1: Invalid enum value 'planet'"),
        ("a.yaml", "- {name: A, type: vendor, colour: red}", "unknown field `colour`"),
        ("a.yaml", "- {name: A", "it is no YAML"),
        ("a.yaml", "- !!int ''", "it is no YAML"),
        ("a.yaml", "- !!bool perhaps", "it is no YAML"),
        ("a.yaml", "- !!timestamp now", "it is no YAML"),
        ("a.yaml", "a: &a [1]\nb: [*a, *a]", "refers to itself"),
        ("a.yaml", "[" * 100 + "]" * 100, "nested too deeply"),
        ("a.yaml", "x" * (1_048_576 + 1), "the limit is 1,048,576"),
        ("x/pyproject.toml", "a = ", "it cannot be read"),
        ("package.json", '{"dependencies": ', "it cannot be read"),
        ("package.json", "[" * 100_000, "it cannot be read"),
        ("Cargo.toml", "= 3", "it cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(name: str, text: str, said: str) -> None:
    with pytest.raises(UnreadableDeclarationsError, match=f"^{name}: ") as raised:
        parse_declarations(name, text)
    assert said in str(raised.value)


MANIFESTS = {
    "pyproject.toml": (
        """
[project]
name = "My-Project"
dependencies = ["httpx[http2]>=0.27; python_version > '3'", "click", "ruamel.yaml (>=0.18)", 3]
[project.optional-dependencies]
x = ["Scikit-Learn==1.5"]
all = ["my_project[x]"]
[dependency-groups]
dev = ["pytest", {include-group = "x"}]
[tool.poetry.dependencies]
python = "^3.11"
attrs = {version = "^24", extras = ["x"]}
""",
        {
            "httpx": ">=0.27",
            "click": None,
            "ruamel.yaml": ">=0.18",
            "Scikit-Learn": "==1.5",
            "pytest": None,
            "attrs": "^24",
        },
    ),
    "package.json": (
        '{"dependencies": {"react": "^19.0.0", "@angular/core": "~18"}, "devDependencies": {"vite": 3}}',
        {"react": "^19.0.0", "@angular/core": "~18", "vite": None},
    ),
    "go.mod": (
        """module example.com/x
go 1.22
require github.com/spf13/cobra v1.8.1
require (
    github.com/go-chi/chi/v5 v5.1.0 // a router
    golang.org/x/sys v0.20.0 // indirect
    gopkg.in/yaml.v3 v3.0.1
)
replace a => b v1.0.0
""",
        {"cobra": "v1.8.1", "chi": "v5.1.0", "yaml.v3": "v3.0.1"},
    ),
    "Cargo.toml": (
        """
[dependencies]
serde = { version = "1", features = ["derive"] }
tokio = "1.40"
local = { path = "../local" }
[target.'cfg(unix)'.dependencies]
nix-x = "0.29"
""",
        {"serde": "1", "tokio": "1.40", "local": None, "nix-x": "0.29"},
    ),
}


@pytest.mark.promise("entities.files")
@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_declares_libraries_with_their_versions(name: str) -> None:
    text, expected = MANIFESTS[name]
    found = parse_declarations(f"some/folder/{name}", text)
    assert {each.name: each.version for each in found} == expected
    assert {each.type for each in found} == {"library"}


def test_a_library_whose_name_is_an_english_word_is_ambiguous() -> None:
    click, httpx = parse_declarations("pyproject.toml", '[project]\ndependencies = ["click", "httpx"]')
    assert (click.ambiguous, httpx.ambiguous) == (["click"], [])


def test_a_go_module_is_known_by_its_path_too() -> None:
    [found] = parse_declarations("go.mod", "require github.com/go-chi/chi/v5 v5.1.0")
    assert (found.name, found.aliases) == ("chi", ["github.com/go-chi/chi/v5"])


@given(st.sampled_from([*MANIFESTS, "a.yaml"]), st.text(max_size=300))
def test_whatever_a_file_says_it_is_read_or_refused(name: str, text: str) -> None:
    try:
        found = parse_declarations(name, text)
    except UnreadableDeclarationsError:
        return
    assert all(1 <= len(each.name) <= 100 for each in found)


HOSTILE = (
    "/b" * 50_000,
    "\n" * 200_000,
    "a_b" * 50_000 + "_",
    "a" * 200_000,
    "Aa " * 50_000,
    "`" * 200_000,
    "- " * 99_000,
)


@pytest.mark.promise("entities.files")
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_text_that_is_made_to_take_long_does_not(text: str) -> None:
    for name in MANIFESTS:
        with suppress(UnreadableDeclarationsError):
            parse_declarations(name, f"require a{text}" if name == "go.mod" else text)
    with suppress(UnreadableDeclarationsError):
        parse_declarations("pyproject.toml", f'[project]\ndependencies = ["""a{text}"""]')
    suggested([text])
    mentions(named("a b", "aa", "b"), text)
    finish(look_up([EntityName("b" * 100, 1)], "*b" * 49 + "c"))


# -- suggestions ------------------------------------------------------------------------------

TEXTS = [
    "We pay by Stripe. The server of Acme Cloud asks Stripe for `charge_id`.",
    "At night Acme Cloud runs retry_policy. Then `charge_id` is kept; nothing else of Stripe is.",
    "When a job fails, retry_policy and `charge_id` say so to Acme Cloud. The Server is down. When?",
]


def suggested(
    texts: Sequence[str], known: Sequence[str] = (), least: int = 2
) -> list[tuple[str, str, int, int]]:
    counts = NameCounter()
    for chunk, text in enumerate(texts):
        counts.add(chunk, text)
    return [
        (each.name, each.looks_like, each.count, each.chunks) for each in counts.suggest(known, least, 50)
    ]


def test_a_long_word_of_many_parts_is_read_in_time_of_its_length() -> None:
    assert suggested(["a." * 400_000 + "a_"]) == []  # hours, where each part is tried with all that follow


@pytest.mark.promise("entities.suggestions")
def test_names_and_identifiers_that_recur_are_suggested_with_counts() -> None:
    assert suggested(TEXTS) == [
        ("Acme Cloud", "name", 3, 3),
        ("charge_id", "code", 3, 3),
        ("Stripe", "name", 3, 2),
        ("retry_policy", "code", 2, 2),
    ]
    assert [name for name, *_ in suggested(TEXTS, known=["acme-cloud", "STRIPE"])] == [
        "charge_id",
        "retry_policy",
    ]


def test_counts_of_parts_are_those_of_the_whole() -> None:
    whole, some, more = NameCounter(), NameCounter(), NameCounter()
    for chunk, text in enumerate(TEXTS):
        whole.add(chunk, text)
        (some if chunk < 1 else more).add(chunk, text)
    some.merge(more.export())
    assert some.suggest((), 1, 50) == whole.suggest((), 1, 50)


@given(st.lists(st.text(max_size=200), max_size=5))
def test_any_text_is_counted(texts: list[str]) -> None:
    assert all(1 < len(name) <= 100 for name, *_ in suggested(texts, least=1))
