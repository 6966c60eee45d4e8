"""Java, Kotlin and Scala: languages in which imports name packages, and packages are folders."""

from __future__ import annotations

import re
from posixpath import basename
from typing import Final

from greenroom.actors.content.syntax.languages.language import (
    ImportedName,
    Language,
    Resolve,
    hides_after,
)
from greenroom.actors.content.syntax.places import Places, prefixes
from greenroom.actors.content.syntax.source import Import


def _in_packages(*suffixes: str, has_functions: bool = False) -> Resolve:
    """Return a resolver for imports of packages.

    The extensions of the importer's own language come first. ``has_functions``: whether a package may contain
    names without a file of that name.
    """

    def resolve(imported: Import, importer: str, places: Places) -> list[str]:
        """Resolve a package to its folder, a name to its file or its class's file."""
        package = imported.module.replace(".", "/")
        names = [package] if imported.name == "*" else [f"{package}/{imported.name}", package]
        for name in names:
            for path in prefixes(name, "/"):
                if basename(path)[:1].islower():
                    break
                for suffix in suffixes:
                    found = places.ending(path + suffix, importer)
                    if found is not None:
                        return [found]
        if imported.name != "*" and not has_functions:
            return []
        packages = [
            [path for path in places.folder(folder) if path.endswith(suffixes)]
            for folder in places.folders_ending(package)
        ]
        filled = [each for each in packages if each]
        return filled[0] if len(filled) == 1 else []

    return resolve


_JAVA_DEFINITIONS: Final = """
(class_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(annotation_type_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(enum_constant name: (identifier) @name) @constant
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(compact_constructor_declaration name: (identifier) @name) @method
(annotation_type_element_declaration name: (identifier) @name) @method
(class_body (field_declaration declarator: (variable_declarator name: (identifier) @name)) @variable)
(interface_body (constant_declaration declarator: (variable_declarator name: (identifier) @name)) @constant)

(import_declaration (scoped_identifier scope: (_) @from name: (_) @name) . ";") @import
(import_declaration (scoped_identifier) @from (asterisk) @name) @import
"""
_JAVA_USES: Final = """
(method_invocation name: (identifier) @call)
(method_reference (identifier) @call .)
(object_creation_expression type: (type_identifier) @call)
(object_creation_expression type: (generic_type . (type_identifier) @call))
(object_creation_expression type: (scoped_type_identifier (type_identifier) @call .))
(marker_annotation name: (identifier) @call)
(annotation name: (identifier) @call)
(superclass (type_identifier) @inherits)
(superclass (generic_type . (type_identifier) @inherits))
(superclass (scoped_type_identifier (type_identifier) @inherits .))
(super_interfaces (type_list (type_identifier) @inherits))
(super_interfaces (type_list (generic_type . (type_identifier) @inherits)))
(extends_interfaces (type_list (type_identifier) @inherits))
(extends_interfaces (type_list (generic_type . (type_identifier) @inherits)))
(type_identifier) @type
(identifier) @other
(line_comment) @above
(block_comment) @above
"""
_JAVA_HIDDEN: Final = re.compile(r"\b(?:private|protected)\b")
JAVA: Final = Language(
    name="java",
    title="Java",
    suffixes="java",
    package="tree_sitter_java",
    definitions=_JAVA_DEFINITIONS,
    uses=_JAVA_USES,
    strings="(string_literal) @string",
    hides=lambda signature, _name: bool(_JAVA_HIDDEN.search(signature)),
    resolve=_in_packages(".java", ".kt"),
    members_are_bare=True,
    shares_folder=True,
    imports_members=True,
    type_is_first=True,
)


_KOTLIN_DEFINITIONS: Final = """
(class_declaration "interface" name: (identifier) @name) @interface
(class_declaration (modifiers (class_modifier "enum")) name: (identifier) @name) @enum
(class_declaration name: (identifier) @name) @class
(object_declaration name: (identifier) @name) @class
(companion_object name: (identifier) @name) @class
(enum_entry (identifier) @name) @constant
(function_declaration (user_type . (identifier) @scope) . "." . name: (identifier) @name) @function
(function_declaration name: (identifier) @name) @function
(type_alias type: (identifier) @name) @type
(class_parameter ["val" "var"] (identifier) @name) @variable
(property_declaration (modifiers (property_modifier "const"))
  (variable_declaration (identifier) @name)) @constant
(property_declaration (variable_declaration (identifier) @name)) @variable

(import) @import
"""
_KOTLIN_TYPE: Final = "(user_type (identifier) {0} .)"
_KOTLIN_USES: Final = f"""
(call_expression . (identifier) @call)
(call_expression . (navigation_expression (identifier) @call .))
(annotation (constructor_invocation {_KOTLIN_TYPE.format("@call")}))
(annotation {_KOTLIN_TYPE.format("@call")})
(delegation_specifier (constructor_invocation (user_type (identifier) @inherits)))
(delegation_specifier (user_type (identifier) @inherits))
(delegation_specifier (explicit_delegation . (user_type (identifier) @inherits)))
(user_type (identifier) @type)
(identifier) @other
(line_comment) @above
(block_comment) @above
"""
_KOTLIN_IMPORT: Final = re.compile(r"import\s+([\w.`]+?)(\.\*)?(?:\s+as\s+(\w+))?\s*;?$")


def _kotlin_names_of(text: str) -> list[ImportedName]:
    found = _KOTLIN_IMPORT.match(text.strip())
    if found is None:
        return []
    path = found[1].replace("`", "")
    if found[2]:
        return [ImportedName(path, "*")]
    module, _, name = path.rpartition(".")
    return [ImportedName(module, name, found[3] or "")]


KOTLIN: Final = Language(
    name="kotlin",
    title="Kotlin",
    suffixes="kt kts",
    package="tree_sitter_kotlin",
    definitions=_KOTLIN_DEFINITIONS,
    uses=_KOTLIN_USES,
    strings="(string_literal) @string (multiline_string_literal) @string",
    hides=hides_after("private", "protected"),
    resolve=_in_packages(".kt", ".java", has_functions=True),
    names_of=_kotlin_names_of,
    joins=". ?. !!. ::",
    members_are_bare=True,
    shares_folder=True,
    imports_members=True,
)


_SCALA_DEFINITIONS: Final = """
(class_definition name: (identifier) @name) @class
(object_definition name: (identifier) @name) @class
(package_object name: (identifier) @name) @module
(trait_definition name: (identifier) @name) @trait
(enum_definition name: (identifier) @name) @enum
(simple_enum_case name: (identifier) @name) @constant
(full_enum_case name: (identifier) @name) @constant
(function_definition name: (_) @name) @function
(function_declaration name: (_) @name) @function
(type_definition name: (type_identifier) @name) @type
(given_definition name: (identifier) @name) @variable
(val_definition pattern: (identifier) @name) @variable
(var_definition pattern: (identifier) @name) @variable
(val_declaration name: (identifier) @name) @variable
(var_declaration name: (identifier) @name) @variable

(import_declaration) @import
"""
_SCALA_NAMED: Final = """[
  (type_identifier) {0}
  (generic_type type: (type_identifier) {0})
  (stable_type_identifier (type_identifier) {0})]"""
_SCALA_USES: Final = f"""
(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (identifier) @call))
(call_expression function: (generic_function function: (identifier) @call))
(call_expression function: (generic_function function: (field_expression field: (identifier) @call)))
(instance_expression {_SCALA_NAMED.format("@call")})
(annotation name: {_SCALA_NAMED.format("@call")})
(extends_clause {_SCALA_NAMED.format("@inherits")})
(derives_clause {_SCALA_NAMED.format("@inherits")})
(type_identifier) @type
(identifier) @other
(comment) @above
(block_comment) @above
"""
_SCALA_PART: Final = re.compile(  # before Python 3.11.5 a possessive group that backtracks matches too much
    r"((?:[\w$`]++\s*+\.\s*+)*)(?:\{([^{}]*+)\}|([\w$`*]++)(?:\s+as\s+(\w++))?)\s*+(?:,|$)"
)
_SCALA_RENAMED: Final = re.compile(r"\s*(?:=>|\bas\b)\s*")
_SCALA_ALL: Final = frozenset({"_", "*", "given"})
_SCALA_MOST: Final = 1_000


def _scala_names_of(text: str) -> list[ImportedName]:
    """Return the names of an import such as `import a.{B, C => D}, e._`."""
    found: list[ImportedName] = []
    for part in _SCALA_PART.finditer(text.removeprefix("import").strip()):
        module = "".join(part[1].split()).strip(".").replace("`", "")
        for name in (
            part[2].split(",") if part[2] is not None else [f"{part[3]} as {part[4]}" if part[4] else part[3]]
        ):
            own, *alias = _SCALA_RENAMED.split(name.strip())
            if alias != ["_"] and own:
                found.append(ImportedName(module, "*" if own.split()[0] in _SCALA_ALL else own, *alias))
    return found[:_SCALA_MOST]


SCALA: Final = Language(
    name="scala",
    title="Scala",
    suffixes="scala sc sbt mill",
    package="tree_sitter_scala",
    extra="scala",
    definitions=_SCALA_DEFINITIONS,
    uses=_SCALA_USES,
    strings="(string) @string (interpolated_string) @string",
    hides=hides_after("private", "protected"),
    resolve=_in_packages(".scala", ".java", has_functions=True),
    names_of=_scala_names_of,
    joins=". #",
    members_are_bare=True,
    shares_folder=True,
    imports_members=True,
)
