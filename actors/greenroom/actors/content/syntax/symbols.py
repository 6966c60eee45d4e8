"""The definitions of a tree: their names, scopes and spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

from greenroom.actors.content.syntax.comments import Above, summary_of
from greenroom.actors.content.syntax.languages import Language
from greenroom.actors.content.syntax.source import Kind, Lines, Symbol

if TYPE_CHECKING:
    from tree_sitter import Node

Captures = Mapping[str, "list[Node]"]
MAX_NAME: Final = 200
MAX_SIGNATURE: Final = 300
_KINDS: Final[Mapping[str, Kind]] = {kind: kind for kind in get_args(Kind)} | {"prototype": "function"}
_CONTAINER: Final = "container"
_TYPES: Final = frozenset({"class", "struct", "interface", "trait", "enum", _CONTAINER})
_LOCAL: Final = frozenset({"variable", "constant", "prototype"})
_NO_SCOPE: Final = frozenset({"", "exports", "module", "this", "window", "global", "globalThis", "prototype"})
_QUALIFIED: Final = "qualified_identifier"
_BROUGHT: Final = ("name", "alias", "star")
_BODIES: Final = frozenset({"class_body", "enum_class_body", "function_body"})
_MOST_SCOPES: Final = 20


class Definition(NamedTuple):
    """A definition that matched a query's pattern number ``rank``; ``scope`` is its stated owner."""

    rank: int
    capture: str
    node: Node
    name: Node
    scope: Node | None
    doc: Node | None


class Extent(NamedTuple):
    """The span in which a container, or a definition from its name on, uses names."""

    first: int
    last: int
    path: str
    capture: str


def definitions_in(matches: Sequence[tuple[int, Captures]]) -> list[Definition]:
    """Return the definitions that a query matched; imported names are left out."""
    brought = {
        node.start_byte
        for _, captures in matches
        if "import" in captures
        for part in _BROUGHT
        for node in captures.get(part, ())
    }
    found = (_definition_of(rank, captures) for rank, captures in matches)
    return [each for each in found if each is not None and each.name.start_byte not in brought]


def _definition_of(rank: int, captures: Captures) -> Definition | None:
    names = captures.get("name")
    for capture, nodes in captures.items():
        if names and (capture in _KINDS or capture == _CONTAINER):
            scope, doc = captures.get("scope", [None])[0], captures.get("doc", [None])[0]
            return Definition(rank, capture, nodes[0], names[0], scope, doc)
    return None


class Symbols:
    """Builds symbols from definitions."""

    def __init__(self, data: bytes, lines: Lines, above: Above, language: Language) -> None:
        self._data = data
        self._lines = lines
        self._above = above
        self._language = language
        self.names_at: set[int] = set()
        self.extents: list[Extent] = []
        self._modules: set[str] = set()

    def of(self, definitions: list[Definition], most: int) -> list[Symbol]:
        """Return the symbols of a file in order, at most ``most``."""
        found: list[Symbol] = []
        around: list[Extent] = []
        begins: list[int] = []
        for each in sorted(
            _distinct(definitions), key=lambda each: (each.node.start_byte, -each.node.end_byte)
        ):
            first, last = each.node.byte_range
            while around and (
                around[-1].last < last
                or around[-1].last <= first
                or (begins[-1], around[-1].last) == (first, last)
                or (each.scope is not None and around[-1].last == last)
            ):
                around.pop()  # definitions with several names in one statement have the same span or end
                begins.pop()
            parent = around[-1] if around else None
            self.names_at.add(each.name.start_byte)
            if each.capture in _LOCAL and parent is not None and parent.capture in {"function", "method"}:
                continue
            name, owners = self._name_of(each)
            if name in {"", "_"} or (parent is not None and _repeats(parent, name, last)):
                continue
            scope = ".".join([parent.path, *owners] if parent and parent.path else owners)
            begin = first if each.capture == _CONTAINER else each.name.start_byte
            extent = Extent(begin, last, f"{scope}.{name}" if scope else name, each.capture)
            self.extents.append(extent)
            if each.capture != "type" and len(around) < _MOST_SCOPES:  # a type in C may begin with a struct
                around.append(extent)
                begins.append(first)
            if each.capture != _CONTAINER and len(found) < most:
                found.append(self._symbol(each, name, scope, parent.capture if parent else "", bool(owners)))
        return found

    def _symbol(self, each: Definition, name: str, scope: str, parent: str, belongs: bool) -> Symbol:  # noqa: FBT001  a private helper
        node = each.node
        begin = self._above.beginning(node.start_byte)
        start = node.start_byte if begin is None else begin
        first = start if begin is None else self._above.first_of(begin)
        kind = _KINDS[each.capture]
        if kind == "module":
            self._modules.add(f"{scope}.{name}" if scope else name)
        if kind == "function" and scope not in self._modules and (belongs or parent in _TYPES):
            kind = "method"
        elif kind == "variable" and name.isupper():
            kind = "constant"
        signature = self._signature(node, start)
        doc = self._data[slice(*each.doc.byte_range)] if each.doc else self._data[first:start]
        return Symbol(
            name=name,
            kind=kind,
            scope=scope,
            line=self._lines.of(each.name.start_byte),
            first_line=self._lines.of(first),
            last_line=self._lines.of(max(start, node.end_byte - 1)),
            first_byte=first,
            last_byte=node.end_byte,
            name_byte=each.name.start_byte,
            signature=signature,
            summary=summary_of(doc),
            is_public=parent in {"trait", "interface"} or not self._language.hides(signature, name),
        )

    def _name_of(self, each: Definition) -> tuple[str, list[str]]:
        """Return a definition's name and its stated owners."""
        owners = self._text(each.scope).split(".") if each.scope else []
        node = each.name
        while node.type == _QUALIFIED and len(owners) < _MOST_SCOPES:
            scope, inner = node.child_by_field_name("scope"), node.child_by_field_name("name")
            owners.append(self._text(scope).partition("<")[0].strip() if scope else "")
            if inner is None:
                break
            node = inner
        self.names_at.update((node.start_byte, node.start_byte + 1))  # a destructor's name comes after ~
        name = self._text(node).strip("'\"`").lstrip(":").replace("::", ".")
        return name, [part for part in owners if part not in _NO_SCOPE]

    def _text(self, node: Node) -> str:
        first, last = node.byte_range
        return self._data[first : min(last, first + MAX_NAME)].decode(errors="replace")

    def _signature(self, node: Node, start: int) -> str:
        """Return a definition up to its body; without a body, its first line."""
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        body = _body_of(node) or (value and value.child_by_field_name("body"))
        ends = [body.start_byte] if body else []
        ends += [each.start_byte for each in node.children if each.type.endswith("comment")]
        end = min([*ends, node.end_byte, start + 2 * MAX_SIGNATURE])
        text = self._data[start:end].decode(errors="replace").strip()
        if body is None:
            text = text.partition("\n")[0]
        return " ".join(text.split())[:MAX_SIGNATURE].removesuffix("=>").rstrip(" {:=;,")


def _repeats(parent: Extent, name: str, last: int) -> bool:
    """Return whether ``f = function f() {}`` names a function for the second time."""
    return parent.last == last and parent.path.rpartition(".")[2] == name


def _body_of(node: Node) -> Node | None:
    """Return the body of a definition; the grammar of Kotlin has no field for bodies."""
    return node.child_by_field_name("body") or next(
        (child for child in node.children if child.type in _BODIES), None
    )


def _distinct(definitions: list[Definition]) -> list[Definition]:
    """Return one definition for each name: by the first pattern, preferably with a docstring."""
    by_name: dict[int, Definition] = {}
    for each in definitions:
        known = by_name.get(each.name.start_byte)
        if known is None or (each.rank, each.doc is None) < (known.rank, known.doc is None):
            by_name[each.name.start_byte] = each
    return list(by_name.values())
