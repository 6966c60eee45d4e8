"""The reference page of the tools, from their requests and replies."""

import ast
import re
import types
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from page_parts import table
from python_names import prose

from greenroom.actors import Reply, is_write
from greenroom.actors.core.replies.empty_reasons import REASONS
from greenroom.runtime import reply_type
from greenroom.transports import TOOLS, Tool
from greenroom.transports.mcp.tools.aliases import ALIASES
from greenroom.transports.mcp.tools.schema import input_schema
from greenroom.transports.mcp.tools.tool_errors import _PLAIN as PLAIN_ERRORS
from greenroom.transports.mcp.tools.tool_profiles import PROFILES

ROOT: Final = Path(__file__).resolve().parent.parent
LISTED: Final = [tool for tool in TOOLS.values() if tool.alias is None]
MANY: Final = 5  # a parameter or member that as many have is explained once

TOOLS_INTRODUCTION: Final = """\
# Tools

Times are UTC in RFC 3339 with `Z`, durations are seconds. Every success carries `success: true`.
A tool that fails answers `isError: true` and, as JSON in `content[0].text`, `success: false`,
`error` (a sentence), `code` (see [codes](#codes)) and `details`.

A parameter may be left out, and is null then, unless it is required or has a default after `=`. Those
after "also" are [parameters of many tools](#parameters-of-many-tools). In answers `?` marks what may be
absent; a member without a type is one [of many answers](#members-of-many-answers).

A program asks the same requests in [Python](python.md), by the class named with each tool. An estimated
token is four bytes of UTF-8.

"""

EMPTY_INTRODUCTION: Final = """\
## Why an answer is empty

A search or listing that finds nothing has `empty_because`: a code of this table, a sentence, and mostly a
remedy, which names no tool that your scopes do not open. What you may not see leaves no trace in it: what
you may have meant is among what you may see.

"""

OLDER_INTRODUCTION: Final = """\
## Older names

Clients written for other systems call these. They are carried out as the tool beside them, and are
listed under the [profile](../how-to/which-tool-when.md#which-tools-are-listed) of their system alone. Every
answer says so in `_meta`, under `greenroom/deprecated`.

"""

PROFILES_INTRODUCTION: Final = """\
## Profiles

Which tools a client is listed: [how to choose](../how-to/which-tool-when.md#which-tools-are-listed).

"""

OLDER_ANSWERS: Final = """\
Under these profiles answers have older names besides today's, or another meaning of one of today's:

"""

PARAMETERS_INTRODUCTION: Final = """\
## Parameters of many tools

"""

MEMBERS_INTRODUCTION: Final = """\
## Members of many answers

Every answer may have `damaged`.

"""

PLAIN: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "text",
    bytes: "base64",
    datetime: "time",
    date: "date",
    msgspec.Raw: "any JSON",
    type(None): "null",
    Any: "any JSON",
}


def tools_page() -> str:
    """Return the page of the tools: parameters, replies, codes."""
    lines = Counter(line for tool in LISTED for line in parameters(tool).values())
    common = {line for line, count in lines.items() if count >= MANY}
    often = members_of_many()
    parts = [TOOLS_INTRODUCTION, *(tool_section(tool, common, often) for tool in LISTED)]
    parts.append(PARAMETERS_INTRODUCTION + "".join(f"{line}\n" for line in sorted(common)) + "\n")
    known = [*often.items(), *own_members(Reply).items()]
    parts.append(MEMBERS_INTRODUCTION + "".join(f"- `{name}`: {of}\n" for name, of in sorted(known)) + "\n")
    parts.append(EMPTY_INTRODUCTION + table(("code", "sentence", "remedy"), reasons()) + "\n")
    parts.append(OLDER_INTRODUCTION + table(("name", "parameters", "carried out as"), older_names()) + "\n")
    parts.append(PROFILES_INTRODUCTION + table(("profile", "tools"), profiles()) + "\n")
    parts.append(OLDER_ANSWERS + table(("profile", "in", "older names"), older_answers()) + "\n")
    parts.append("## Objects\n\nParts of the answers above.\n\n")
    parts += [
        f"### {struct.__name__}\n\n{without_title(struct)}\n\n{members_words(struct, {})}\n\n"
        for struct in objects()
    ]
    rows = [(f"`{code}`", " ".join(when)) for code, when in sorted(codes().items())]
    parts.append("## Codes\n\n" + table(("code", "when"), rows))
    return "".join(parts)


def anchors() -> dict[type[msgspec.Struct], str]:
    """Return where on the page the fields of requests, replies and objects stand."""
    found = {struct: struct.__name__.lower() for struct in objects()}
    for tool in reversed(LISTED):
        found |= {tool.request: tool.name, reply_type(tool.request): tool.name}
    return found


def objects() -> list[type[msgspec.Struct]]:
    """Return the objects in answers, and those in these."""
    found: dict[str, type[msgspec.Struct]] = {}
    waiting: list[type[msgspec.Struct]] = [reply_type(tool.request) for tool in LISTED]
    while waiting:
        inner: dict[str, type[msgspec.Struct]] = {}
        members(waiting.pop(0), inner)
        new = {name: struct for name, struct in inner.items() if name not in found}
        found |= new
        waiting += new.values()
    return list(found.values())


def reasons() -> list[tuple[str, ...]]:
    """Return why answers are empty; three dots are what differs."""
    return [
        (f"`{code}`", *(re.sub(r"\{.*?\}", "...", each) for each in (reason.sentence, reason.remedy)))
        for code, reason in REASONS.items()
    ]


def older_names() -> list[tuple[str, ...]]:
    """Return what there is to know of each older name."""
    rows: list[tuple[str, ...]] = []
    for alias in ALIASES:
        name = f"`{alias.name}`" + (f" with `{alias.told_by}`" if alias.told_by else "")
        schema = input_schema(alias.request)
        taken = [
            f"`{old}`" + (f" (`{json(field['default'])}`)" if "default" in field else "")
            for old, field in schema["properties"].items()
        ]
        parameters = "the same" if alias.takes is None else ", ".join(taken)
        given = [f"`{new}` for `{old}`" for old, new in (alias.takes or {}).items() if old != new]
        given += [f"`{new}` `{json(value)}`" for new, value in alias.fixed.items()]
        words = f" with {', '.join(given)}" if given else ""
        rows.append((name, parameters, f"[{alias.successor}](#{alias.successor}){words}"))
    return rows


def profiles() -> list[tuple[str, ...]]:
    """Return what each tool profile lists."""
    return [
        (
            f"`{name}`",
            "every tool above" if profile.tools is None else ", ".join(map("`{}`".format, profile.tools)),
        )
        for name, profile in PROFILES.items()
    ]


def older_answers() -> list[tuple[str, ...]]:
    """Return the older names of members of answers, with today's where these are others."""
    return [
        (
            f"`{name}`",
            struct.__name__,
            ", ".join(
                f"`{old}`" + (f" (`{new}`)" if isinstance(new, str) else "") for old, new in older.items()
            ),
        )
        for name, profile in PROFILES.items()
        for struct, older in profile.older.items()
    ]


def json(value: Any) -> str:
    """Return a value as JSON."""
    return msgspec.json.encode(value).decode()


def tool_section(tool: Tool, common: set[str], often: Mapping[str, str]) -> str:
    """Return the section of one tool; what many have is only named."""
    reply = reply_type(tool.request)
    lines = parameters(tool)
    also = ", ".join(f"`{name}`" for name, line in lines.items() if line in common)
    own = "".join(f"{line}\n" for line in lines.values() if line not in common)
    return (
        f"## {tool.name}\n\n{tool.description}\n\n"
        f"`{tool.request.__name__}`{'' if is_write(tool.request) else ' (reads only)'}\n\n"
        f"{own}{f'- also {also}{chr(10)}' if also else ''}\n"
        f"{answer_words(reply)}{members_words(reply, often)}\n\n"
    )


def parameters(tool: Tool) -> dict[str, str]:
    """Return a line for each parameter of a tool."""
    schema = input_schema(tool.request)
    required = schema.get("required", [])
    return {name: parameter(name, field, required) for name, field in schema["properties"].items()}


def parameter(name: str, field: Mapping[str, Any], required: list[str]) -> str:
    """Return the line of a parameter: its type, default and limits."""
    kind, default = schema_type(field), schema_default(name, field, required)
    if default == "null":
        kind = kind.removesuffix(" or null").removesuffix(", null")
    given = {"null": "", "required": ", required"}.get(default, f" = {default}")
    limits = schema_limits(field)
    return f"- `{name}`: {kind}{given}" + (f"; {limits}" if limits else "")


def answer_words(reply: type[msgspec.Struct]) -> str:
    """Return what the docstring of an answer says besides what it answers."""
    words = re.sub(r"^(?:Answers|Reply to) `\w+`(?:(?:,| and) `\w+`)*[\s.,;:]*", "", without_title(reply))
    if words.startswith("- "):
        return f"Answer:\n\n{words}\n\n"
    return f"Answer: {words}\n\n" if words else "Answer: "


def without_title(struct: type[msgspec.Struct]) -> str:
    """Return a docstring, in which the list of attributes needs no title."""
    return prose(struct.__doc__).replace("**Attributes**\n\n", "")


def schema_type(field: Mapping[str, Any]) -> str:
    """Return the type of a parameter, in words."""
    if "enum" in field:
        return ", ".join(f"`{value}`" if value is not None else "null" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(schema_type(choice) for choice in field["anyOf"])
    kinds = field.get("type", "any JSON")
    words = {"string": "time" if field.get("format") == "date-time" else "text"}
    return " or ".join(words.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def schema_default(name: str, field: Mapping[str, Any], required: list[str]) -> str:
    """Return what holds when the parameter is left out."""
    if name in required:
        return "required"
    if "default" in field:
        return f"`{json(field['default'])}`"
    return "`{}`" if takes_objects(field) else "null"


def takes_objects(field: Mapping[str, Any]) -> bool:
    """Return whether a parameter that may be left out is an object, and not null."""
    choices = (field, *field.get("anyOf", ()))
    return {"type": "null"} not in choices and any(choice.get("type") == "object" for choice in choices)


def schema_limits(field: Mapping[str, Any]) -> str:
    """Return a parameter's limits and the word on it."""
    found = [*ranges(field), *(limit for choice in field.get("anyOf", ()) for limit in ranges(choice))]
    if "description" in field:
        found.append(field["description"])
    if "properties" in field:
        found.append("of " + ", ".join(f"`{name}`" for name in field["properties"]))
    return "; ".join(found)


def ranges(field: Mapping[str, Any]) -> Iterator[str]:
    """Yield the limits of one type."""
    for least, most, unit in (("minLength", "maxLength", " characters"), ("minimum", "maximum", "")):
        if least in field or most in field:
            yield span(field.get(least), field.get(most)) + unit
    if "exclusiveMinimum" in field:
        yield f"more than {field['exclusiveMinimum']:,}"
    if "pattern" in field:
        yield f"`{field['pattern']}`"


def span(least: float | None, most: float | None) -> str:
    """Return two bounds, of which one may be missing, as words."""
    if most is None:
        return f"at least {least:,}"
    return f"at most {most:,}" if least is None else f"{least:,}-{most:,}"


def members(struct: type[msgspec.Struct], objects: dict[str, type[msgspec.Struct]]) -> dict[str, str]:
    """Return the members of an answer with their types, and note the objects among them."""
    hints = get_type_hints(struct, include_extras=True)
    words = {each.name: type_words(hints[each.name], objects) for each in msgspec.structs.fields(struct)}
    return {
        f"{name}?" if of.endswith(ABSENT) else name: of.removesuffix(ABSENT)
        for name, of in words.items()
        if name != "success"
    }


def own_members(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the members of an answer, without those of every answer."""
    return {name: of for name, of in members(struct, {}).items() if struct is Reply or name != "damaged?"}


def members_of_many() -> dict[str, str]:
    """Return the members that many answers have and that take words to explain."""
    replies = {reply_type(tool.request) for tool in LISTED}
    found = Counter(each for reply in replies for each in own_members(reply).items() if each[0].endswith("?"))
    return dict(each for each, count in found.items() if count >= MANY)


def members_words(struct: type[msgspec.Struct], often: Mapping[str, str]) -> str:
    """Return the members of an answer; neighbours of one type share its words."""
    groups: list[tuple[list[str], str]] = []
    for name, of in own_members(struct).items():
        shown = "" if often.get(name) == of else of
        if groups and groups[-1][1] == shown:
            groups[-1][0].append(name)
        else:
            groups.append(([name], shown))
    return "; ".join(
        ", ".join(f"`{name}`" for name in names) + (f": {of}" if of else "") for names, of in groups
    )


ABSENT: Final = "; may be absent"


def type_words(of: Any, objects: dict[str, type[msgspec.Struct]]) -> str:
    """Return a Python type in the words of JSON."""
    origin, arguments = get_origin(of), get_args(of)
    if isinstance(of, type) and issubclass(of, msgspec.Struct):
        objects[of.__name__] = of
        return f"[{of.__name__}](#{of.__name__.lower()})"
    if origin is None:
        return PLAIN[of]
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    there = [argument for argument in arguments if argument is not msgspec.UnsetType]
    words = [type_words(argument, objects) for argument in (there[:1] if origin is Annotated else there)]
    if origin in (Union, types.UnionType):
        return " or ".join(words) + (ABSENT if len(there) < len(arguments) else "")
    return {list: "list of ", dict: "object of ", Annotated: ""}[origin] + words[-1]


def codes() -> dict[str, list[str]]:
    """Return every code of a failed tool, and when it is answered."""
    found: dict[str, list[str]] = {}
    for path in [*sorted((ROOT / "actors").rglob("*.py")), *sorted((ROOT / "transports").rglob("*.py"))]:
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                sentence = prose(ast.get_docstring(function)).partition("\n")[0]
                for code in refusal_codes(function):
                    if not sentence:
                        raise SystemExit(f"{path}: {function.name} refuses with {code} and does not say when")
                    found.setdefault(code, []).append(sentence)
    for code, sentences in found.items():  # what only does so among other things says nothing of when
        found[code] = [each for each in sentences if re.match("Refuse|.* refusal", each)] or sentences
    for code, sentence in {**dict(PLAIN_ERRORS.values()), **EDGE_CODES}.items():
        found.setdefault(code, []).append(sentence)
    return found


EDGE_CODES: Final = {
    "OVERLOADED": "Too many requests wait for the same session or memory, or the folder's owner is silent; "
    "repeat after `retry_after_ms`: with the same `idempotency_key` if `outcome` is `unknown`.",
    "DEADLINE_EXCEEDED": "The time for this request ran out. Where `outcome` is `unknown`, it may be carried "
    "out, whole: repeat it with the same `idempotency_key`. Where it is `not_done`, nothing was done.",
    "INTERNAL_ERROR": "A fault of the server, which is in its log; nothing was carried out.",
}


def refusal_codes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yield the codes of the refusals that a function makes itself."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Refusal", "_refusal"} and node.args:
            code = node.args[0]
            if isinstance(code, ast.Constant):
                yield str(code.value)
