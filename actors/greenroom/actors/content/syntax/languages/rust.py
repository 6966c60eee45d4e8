"""Rust."""

from __future__ import annotations

import re
from posixpath import basename, dirname, join
from typing import Final

from greenroom.actors.content.syntax.languages.language import ImportedName, Language
from greenroom.actors.content.syntax.places import Places, ancestors, as_list, below
from greenroom.actors.content.syntax.source import Import

_DEFINITIONS: Final = """
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(struct_item name: (type_identifier) @name) @struct
(union_item name: (type_identifier) @name) @struct
(enum_item name: (type_identifier) @name) @enum
(enum_variant name: (identifier) @name) @constant
(trait_item name: (type_identifier) @name) @trait
(impl_item type: [
  (type_identifier) @name
  (generic_type type: (type_identifier) @name)
  (generic_type type: (scoped_type_identifier name: (type_identifier) @name))
  (scoped_type_identifier name: (type_identifier) @name)]) @container
(mod_item name: (identifier) @name) @module
(type_item name: (type_identifier) @name) @type
(associated_type name: (type_identifier) @name) @type
(const_item name: (identifier) @name) @constant
(static_item name: (identifier) @name) @variable
(macro_definition name: (identifier) @name) @macro
(source_file . (line_comment (inner_doc_comment_marker)) @about)

(use_declaration) @import
(mod_item !body) @import
(extern_crate_declaration) @import
"""
_USES: Final = """
(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (field_identifier) @call))
(call_expression function: (scoped_identifier name: (identifier) @call))
(call_expression function: (generic_function function: (identifier) @call))
(call_expression function: (generic_function function: (field_expression field: (field_identifier) @call)))
(call_expression function: (generic_function function: (scoped_identifier name: (identifier) @call)))
(macro_invocation macro: (identifier) @call)
(macro_invocation macro: (scoped_identifier name: (identifier) @call))
(impl_item trait: (type_identifier) @inherits)
(impl_item trait: (scoped_type_identifier name: (type_identifier) @inherits))
(impl_item trait: (generic_type type: (type_identifier) @inherits))
(impl_item trait: (generic_type type: (scoped_type_identifier name: (type_identifier) @inherits)))
(trait_item bounds: (trait_bounds (type_identifier) @inherits))
(trait_item bounds: (trait_bounds (scoped_type_identifier name: (type_identifier) @inherits)))
(trait_item bounds: (trait_bounds (generic_type type: (type_identifier) @inherits)))
(type_identifier) @type
(identifier) @other
(line_comment) @above
(block_comment) @above
(attribute_item) @above
"""
_ROOTS: Final = ("lib.rs", "main.rs")
_USE: Final = re.compile(
    r"^(?:#\[.*?\]\s*)*(?:pub\s*(?:\([^)]*\))?\s*)?(?:use|mod|extern\s+crate)\s+(.*?);?$", re.DOTALL
)
_MODULE: Final = re.compile(r"^(?:pub\s*(?:\([^)]*\))?\s*)?mod\s")
_PART: Final = re.compile(r"[{},]|[^{},]+")
_MOST: Final = 1_000
_MOST_DEPTH: Final = 20


def names_of(text: str) -> list[ImportedName]:
    """Return the names of `use a::{b as c, d::*}`, `mod` or `extern crate`."""
    found = _USE.match(text.strip())
    if found is None:
        return []
    if _MODULE.match(text):
        return [ImportedName("self", found[1])]
    names: list[ImportedName] = []
    prefixes, prefix = [""], ""
    for part in _PART.findall(found[1]):
        if part == "{":
            if len(prefixes) > _MOST_DEPTH:
                break
            prefixes.append(prefix)
        elif part == "}":
            prefixes = prefixes[:-1] or [""]
        elif part == ",":
            prefix = prefixes[-1]
        else:
            path, _, alias = " ".join(part.split()).partition(" as ")
            prefix = prefixes[-1] + path.replace(" ", "")
            if not prefix.endswith("::") and path.strip():
                names.append(_named(prefix, alias.strip()))
        if len(names) >= _MOST:
            break
    return names


def _named(path: str, alias: str) -> ImportedName:
    module, _, name = path.removesuffix("::self").rpartition("::")
    return ImportedName(module, name, alias) if module else ImportedName(name, "", alias)


def _rust(imported: Import, importer: str, places: Places) -> list[str]:
    """Resolve a path from the crate, the module, the parent module, or another crate."""
    first, *rest = [part for part in (*imported.module.split("::"), imported.name) if part not in {"", "*"}]
    own = dirname(importer) if basename(importer) in {*_ROOTS, "mod.rs"} else importer.removesuffix(".rs")
    if first in {"self", "super"}:
        while first == "super":
            own = below(own, "..")
            first, rest = (rest[0], rest[1:]) if rest and rest[0] == "super" else ("", rest)
        return as_list(_rust_file(own, rest, places))
    if first == "crate":
        roots = (each for each in ancestors(importer) if places.first(join(each, root) for root in _ROOTS))
        root = next(roots, None)
        return [] if root is None else as_list(_rust_file(root, rest, places))
    if first in places.crates:
        return as_list(_rust_file(join(places.crates[first], "src"), rest, places))
    return as_list(places.first(_rust_files(join(own, first)))) and as_list(
        _rust_file(own, [first, *rest], places)
    )


def _rust_file(folder: str, parts: list[str], places: Places) -> str | None:
    """Return the file of the innermost module in a path that begins at ``folder``."""
    found = places.first([*(join(folder, root) for root in _ROOTS), *_rust_files(folder)])
    for part in parts:
        folder = join(folder, part)
        inner = places.first(_rust_files(folder))
        if inner is None:
            break
        found = inner
    return found


def _rust_files(folder: str) -> tuple[str, str]:
    return f"{folder}.rs", join(folder, "mod.rs")


RUST: Final = Language(
    name="rust",
    title="Rust",
    suffixes="rs",
    package="tree_sitter_rust",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="(string_literal) @string (raw_string_literal) @string",
    hides=lambda signature, _name: not signature.startswith("pub"),
    names_of=names_of,
    resolve=_rust,
    imports_by_path=True,
)
