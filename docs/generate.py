"""Writes docs/reference/ from the code: `python docs/generate.py`, or `--check` to compare only.

The tools from their requests and replies, the same as paths of HTTP, the prompts from their arguments, the
settings from their table, the metrics from the fields of statistics, and a page for each public package of
Python from its sources. A page for each client of `greenroom setup`, and the tables of docs/security.md, from
the policy, of docs/how-to/set-up-clients.md, and of docs/benchmarks.md, from what was measured. Besides the
manual page greenroom(1) and the dashboard for Grafana. What is to be changed is the code, never the page.
The requests of all operations get their lines in `greenroom.actors`, which type checkers read.
"""

import argparse
import ast
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from access_tables import TABLES as ACCESS_TABLES
from client_pages import client_pages, files_of_clients, hooks_of_clients
from dashboard import dashboard
from figures import tables as figure_tables
from http_page import http_page
from man_page import man_page
from python_names import prose, python_pages

from greenroom.actors import API_REQUESTS, MemoryLine, is_write
from greenroom.actors.app.prompts.catalogue import listed as prompts_listed
from greenroom.actors.core.replies.empty_reasons import REASONS
from greenroom.actors.core.validation.types import UNLISTED
from greenroom.actors.sessions.passports.envelope import VERSION, Passport
from greenroom.actors.sessions.passports.packing import PassportPayload
from greenroom.actors.sessions.requests.payloads import PayloadMessage
from greenroom.runtime import reply_type
from greenroom.transports import TOOLS, Tool
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config import settings
from greenroom.transports.base.config.parsers import boolean
from greenroom.transports.base.observability.metrics import METRICS
from greenroom.transports.base.observability.prometheus import (
    connection_families,
    request_families,
    savings_families,
)
from greenroom.transports.mcp.tools.aliases import ALIASES
from greenroom.transports.mcp.tools.schema import input_schema
from greenroom.transports.mcp.tools.tool_errors import _PLAIN as PLAIN_ERRORS
from greenroom.transports.mcp.tools.tool_profiles import PROFILES

ROOT: Final = Path(__file__).resolve().parent.parent
SECURITY: Final = ROOT / "docs" / "security.md"
EXPORTS: Final = ROOT / "actors" / "greenroom" / "actors" / "__init__.py"
BENCHMARKS: Final = ROOT / "docs" / "benchmarks.md"
CLIENTS: Final = ROOT / "docs" / "how-to" / "clients"
HOOKS: Final = ROOT / "docs" / "how-to" / "hooks.md"
CONSOLE: Final = ROOT / "docs" / "how-to" / "use-the-console.md"
IMAGES: Final = ROOT / "docs" / "images"
SET_UP: Final = ROOT / "docs" / "how-to" / "set-up-clients.md"
REFERENCE: Final = ROOT / "docs" / "reference"
NOTICE: Final = "<!-- Written by docs/generate.py; change the code, not this page. -->\n\n"

TOOLS_INTRODUCTION: Final = """\
# Tools

Times are UTC in RFC 3339 with `Z`, durations are seconds. Every success carries `success: true`.
A tool that fails answers `isError: true` and, as JSON in `content[0].text`, `success: false`,
`error` (a sentence), `code` (see [codes](#codes)) and `details`.

A program asks the same requests in Python; the class is named with each tool. Where an answer has an
estimate of tokens, a token is four bytes of UTF-8.

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
listed under the [profile](../how-to/connect-a-client.md#which-tools-are-listed) of their system alone. Every
answer says so in `_meta`, under `greenroom/deprecated`.

"""

PROFILES_INTRODUCTION: Final = """\
## Profiles

Which tools a client is listed: [how to choose](../how-to/connect-a-client.md#which-tools-are-listed).

"""

OLDER_ANSWERS: Final = """\
Under these profiles answers have older names besides today's, or another meaning of one of today's:

"""

PROMPTS_INTRODUCTION: Final = """\
# Prompts

All arguments are texts. How they are filled, and how to add prompts of your own:
[use prompts](../how-to/use-prompts.md).

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


def main() -> int:
    """Write the pages, or with ``--check`` say which of them are not up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a page would change")
    check = parser.parse_args().check
    files = {EXPORTS: with_requests(EXPORTS.read_text())}
    if not check:
        EXPORTS.write_text(files[EXPORTS])  # the pages of Python are made of it
    pages = {"tools.md": tools_page(), "settings.md": settings_page(), "metrics.md": metrics_page()}
    pages["prompts.md"] = prompts_page()
    pages["http.md"] = http_page()
    pages |= python_pages()
    files |= {REFERENCE / name: NOTICE + text for name, text in pages.items()}
    files[REFERENCE / "greenroom.1"] = man_page()
    files[ROOT / "docs" / "passport.schema.json"] = passport_schema()
    files[ROOT / "docs" / "monitoring" / "dashboard.json"] = dashboard()
    files |= {CLIENTS / name: NOTICE + text for name, text in client_pages().items()}
    files[BENCHMARKS] = with_tables(BENCHMARKS.read_text(), figure_tables())
    files[SECURITY] = with_tables(SECURITY.read_text(), ACCESS_TABLES)
    head = ("client", "its name here", "file, on Linux", "on macOS, where it is another", "variable")
    files[SET_UP] = with_tables(SET_UP.read_text(), {"clients": (head, files_of_clients)})
    head = ("client", "its file", "its event for each hook", "what you do then")
    files[HOOKS] = with_tables(HOOKS.read_text(), {"hooks": (head, hooks_of_clients)})
    files[CONSOLE] = with_pictures(CONSOLE.read_text())
    stale = []
    for path, text in files.items():
        if not path.exists() or path.read_text() != text:
            stale.append(path.name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    if check and stale:
        print(f"{', '.join(stale)}: not up to date; run `python docs/generate.py`")
        return 1
    return 0


def with_tables(
    page: str, tables: Mapping[str, tuple[tuple[str, ...], Callable[[], Iterable[tuple[str, ...]]]]]
) -> str:
    """Return a page with its tables as the code has them now."""
    for name, (head, rows) in tables.items():
        place = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->\n)", re.DOTALL)
        match = place.search(page)
        assert match is not None, f"the page has a place for the table {name}"
        page = page[: match.end(1)] + table(head, rows()) + page[match.start(2) :]
    return page


def with_requests(source: str) -> str:
    """Return the source of `greenroom.actors` with the requests of all operations among what it exports."""
    line = re.compile(r"^    from (\S+) import (\w+) as \w+\n", re.MULTILINE)
    names = {*line.findall(source), *((each.__module__, each.__name__) for each in API_REQUESTS.values())}

    def order(export: tuple[str, str]) -> tuple[str, int, str]:
        home, name = export
        return home, 0 if name.isupper() else 1 if name[0].isupper() else 2, name.lower()

    start = next(line.finditer(source)).start()
    block = "".join(f"    from {home} import {name} as {name}\n" for home, name in sorted(names, key=order))
    return source[:start] + block + line.sub("", source[start:])


def with_pictures(page: str) -> str:
    """Return the console's page with the pictures of it that there are: `docs/images/console-VIEW.png`."""
    before, mark, rest = page.partition("<!-- pictures -->\n")
    _, end, after = rest.partition("<!-- end -->\n")
    assert end, "the page has a place for pictures"
    found = (path.stem for path in IMAGES.glob("console-*.png"))
    names = sorted(found, key=lambda name: (name != "console-overview", name))
    views = [(name, name.removeprefix("console-").replace("-", " ")) for name in names]
    pictures = "".join(f"\n![The console: {view}](../images/{name}.png)\n" for name, view in views)
    return before + mark + pictures + end + after


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table; a bar in a cell is escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


# -- tools ---------------------------------------------------------------------


def tools_page() -> str:
    """Return the page of the tools: parameters, replies, codes."""
    objects: dict[str, type[msgspec.Struct]] = {}
    listed = [tool for tool in TOOLS.values() if tool.alias is None]
    parts = [TOOLS_INTRODUCTION, *(tool_section(tool, objects) for tool in listed)]
    parts.append(EMPTY_INTRODUCTION + table(("code", "sentence", "remedy"), reasons()) + "\n")
    parts.append(OLDER_INTRODUCTION + table(("name", "parameters", "carried out as"), older_names()) + "\n")
    parts.append(PROFILES_INTRODUCTION + table(("profile", "tools"), profiles()) + "\n")
    parts.append(OLDER_ANSWERS + table(("profile", "in", "name", "today"), older_answers()) + "\n")
    parts.append("## Objects\n\nParts of the answers above.\n\n")
    waiting = list(objects.values())
    seen: set[str] = set()
    while waiting:
        struct = waiting.pop(0)
        if struct.__name__ not in seen:
            seen.add(struct.__name__)
            inner: dict[str, type[msgspec.Struct]] = {}
            parts.append(
                f"### {struct.__name__}\n\n{prose(struct.__doc__)}\n\n{reply_table(struct, inner)}\n"
            )
            waiting += inner.values()
    rows = [(f"`{code}`", " ".join(when)) for code, when in sorted(codes().items())]
    parts.append("## Codes\n\n" + table(("code", "when"), rows))
    return "".join(parts)


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
    """Return the older names of members of answers."""
    return [
        (f"`{name}`", struct.__name__, f"`{old}`", f"`{today}`" if isinstance(today, str) else "")
        for name, profile in PROFILES.items()
        for struct, older in profile.older.items()
        for old, today in older.items()
    ]


def json(value: Any) -> str:
    """Return a value as JSON."""
    return msgspec.json.encode(value).decode()


def tool_section(tool: Tool, objects: dict[str, type[msgspec.Struct]]) -> str:
    """Return the section of one tool, and collect the objects of its answer."""
    schema = input_schema(tool.request)
    required = schema.get("required", [])
    rows = [
        (f"`{name}`", schema_type(field), schema_default(name, field, required), schema_limits(field))
        for name, field in schema["properties"].items()
    ]
    reply = reply_type(tool.request)
    return (
        f"## {tool.name}\n\n{tool.description}\n\n"
        f"{'' if is_write(tool.request) else 'Reads only. '}In Python: `{tool.request.__name__}`.\n\n"
        f"{table(('parameter', 'type', 'default', 'limits'), rows)}\n"
        f"{answer_words(reply)}{reply_table(reply, objects)}\n"
    )


def answer_words(reply: type[msgspec.Struct]) -> str:
    """Return what the docstring of an answer says besides what it answers."""
    words = re.sub(r"^(?:Answers|Reply to) `\w+`(?:(?:,| and) `\w+`)*[\s.,;:]*", "", prose(reply.__doc__))
    words = words.replace("**Attributes**\n\n", "")
    if words.startswith("- "):
        return f"Answer:\n\n{words}\n\n"
    return f"Answer: {words}\n\n" if words else ""


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


def reply_table(struct: type[msgspec.Struct], objects: dict[str, type[msgspec.Struct]]) -> str:
    """Return the fields of an answer, and note the objects among them."""
    hints = get_type_hints(struct, include_extras=True)
    names = [field.name for field in msgspec.structs.fields(struct) if field.name != "success"]
    return table(("answer", "type"), [(f"`{name}`", type_words(hints[name], objects)) for name in names])


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
        return " or ".join(words) + ("; may be absent" if len(there) < len(arguments) else "")
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


# -- passports -------------------------------------------------------------------


def passport_schema() -> str:
    """Return the JSON schema of passports, with that of what is inside among its definitions."""
    (root,), parts = msgspec.json.schema_components([Passport], ref_template="#/$defs/{name}")
    for inside in (PassportPayload, PayloadMessage, MemoryLine):
        _, more = msgspec.json.schema_components([inside], ref_template="#/$defs/{name}")
        parts |= more
    for part in (root, *parts.values()):
        if "description" in part:
            part["description"] = cleandoc(part["description"])  # msgspec takes the indent off since 0.23
    context = parts["SessionContext"]["properties"]
    parts["SessionContext"]["properties"] = {
        name: member for name, member in context.items() if not UNLISTED.items() <= member.items()
    }
    payload = parts["PassportPayload"]["properties"]
    payload["messages"]["items"] = {"$ref": "#/$defs/PayloadMessage"}
    payload["memories"]["items"] = {"$ref": "#/$defs/MemoryLine"}
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:greenroom:passport:{VERSION}",
        "title": f"Greenroom passport, version {VERSION}",
        "$comment": "Written by docs/generate.py; change the code, not this file.",
        **root,
        "$defs": dict(sorted(parts.items())),
    }
    # In JSON schema's dialect `$` ends the text; in Python a newline may follow it.
    text = msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()
    return text.replace(r"(?!\\n)$", "$") + "\n"


# -- prompts ---------------------------------------------------------------------


def prompts_page() -> str:
    """Return the page of the prompts: what each is for and takes."""
    parts = [PROMPTS_INTRODUCTION]
    for prompt in prompts_listed():
        rows = [
            (
                f"`{each.name}`",
                "required" if each.required else "",
                each.completes or ", ".join(f"`{value}`" for value in each.values),
                each.description,
            )
            for each in prompt.arguments
        ]
        head = ("argument", "", "completed with", "meaning")
        parts.append(f"## {prompt.name}\n\n{prompt.description}\n\n{table(head, rows)}\n")
    return "".join(parts).rstrip() + "\n"


# -- metrics ---------------------------------------------------------------------


def metrics_page() -> str:
    """Return the page of what `/metrics` says."""
    families = [*request_families([]), *connection_families({}), *savings_families([])]
    said = [(each.type, each.name, each.documentation) for each in families]
    said += [(metric.kind, metric.name, metric.help) for metric in METRICS]
    rows = [
        (f"`{name}_total`" if kind == "counter" else f"`{name}`", kind, text)
        for kind, name, text in sorted(said, key=lambda each: each[1])
    ]
    return (
        "# Metrics\n\n"
        "What `/metrics` says, besides `process_…` and `greenroom_build_info`. How to scrape it and what to "
        "watch: [deploy](../how-to/deploy.md#metrics).\n\n"
        f"{table(('name', 'kind', 'meaning'), rows)}"
    )


# -- settings --------------------------------------------------------------------


def settings_page() -> str:
    """Return the page of the settings and of the exit codes."""
    rows = []
    for key, setting in settings.all_settings().items():
        default = getattr(settings.Settings, key, None)
        shown = f"`{setting.reader.show(default)}`" if default else ""
        flag = (
            f"`{settings.flag(key)}`"
            if setting.reader is boolean
            else f"`{settings.flag(key)} {setting.reader.metavar}`"
        )
        rows.append((flag, f"`{settings.variable(key)}`", f"`{key}`", shown, setting.help))
    head = ("flag", "variable", "key of the file", "default", "meaning")
    exits = [(str(code), meaning) for code, meaning in exit_codes.MEANINGS.items()]
    return (
        "# Settings\n\n"
        "A flag wins over a variable, a variable over the file, the file over the default. "
        "`greenroom config` shows what is in force and where it came from. How to use them: "
        "[configure](../how-to/configure.md).\n\n"
        f"{table(head, rows)}\n"
        f"The file is the one that `--config FILE` or `{settings.CONFIG_VARIABLE}` names, "
        "else `greenroom/config.toml` in the platform's folder for a user's configuration.\n\n"
        f"## Exit codes\n\n{table(('code', 'meaning'), exits)}"
    )


if __name__ == "__main__":
    sys.exit(main())
