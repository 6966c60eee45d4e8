"""Writes docs/reference/ from the code: `python docs/generate.py`, or `--check` to compare only.

The tools from their requests and replies, the same as paths of HTTP, the prompts from their arguments, the
settings from their table, the metrics from the fields of statistics, and a page for each public package of
Python from its sources. A page for each client of `greenroom setup`, and the tables of docs/security.md, from
the policy, of docs/how-to/set-up-clients.md, and of docs/benchmarks.md, from what was measured. Besides the
manual page greenroom(1) and the dashboard for Grafana. What is to be changed is the code, never the page.
The requests of all operations get their lines in `greenroom.actors`, which type checkers read.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from inspect import cleandoc
from pathlib import Path
from typing import Final

import msgspec
from access_tables import TABLES as ACCESS_TABLES
from client_pages import client_pages, files_of_clients, hooks_of_clients
from dashboard import dashboard
from figures import tables as figure_tables
from http_page import http_page
from man_page import man_page
from page_parts import table
from python_names import python_pages
from tools_page import anchors, tools_page

from greenroom.actors import API_REQUESTS, MemoryLine, PromptArgument
from greenroom.actors.app.prompts.catalogue import listed as prompts_listed
from greenroom.actors.core.validation.types import UNLISTED
from greenroom.actors.sessions.passports.envelope import VERSION, Passport
from greenroom.actors.sessions.passports.packing import PassportPayload
from greenroom.actors.sessions.requests.payloads import PayloadMessage
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config import settings
from greenroom.transports.base.config.parsers import boolean
from greenroom.transports.base.observability.metrics import METRICS
from greenroom.transports.base.observability.prometheus import (
    connection_families,
    request_families,
    savings_families,
)

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
NOTICE: Final = "<!-- Written by docs/generate.py from the code. -->\n\n"

PROMPTS_INTRODUCTION: Final = """\
# Prompts

All arguments are texts; in parentheses is how they are completed. How they are filled, and how to add
prompts of your own: [use prompts](../how-to/use-prompts.md). Several prompts take these:

"""


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
    pages |= python_pages(anchors())
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
    """Return the page of the prompts; what several take stands once."""
    prompts = prompts_listed()
    counted = Counter(prompt_argument(each) for prompt in prompts for each in prompt.arguments)
    parts = [PROMPTS_INTRODUCTION, *(line for line, count in counted.items() if count > 1)]
    for prompt in prompts:
        lines = {each.name: prompt_argument(each) for each in prompt.arguments}
        also = ", ".join(f"`{name}`" for name, line in lines.items() if counted[line] > 1)
        own = "".join(line for line in lines.values() if counted[line] == 1)
        shared = f"- also {also}\n" if also else ""
        parts.append(f"\n## {prompt.name}\n\n{prompt.description}\n\n{own}{shared}")
    return "".join(parts)


def prompt_argument(argument: PromptArgument) -> str:
    """Return the line of an argument."""
    completed = argument.completes or ", ".join(f"`{value}`" for value in argument.values)
    needed = ", required" if argument.required else ""
    return f"- `{argument.name}`{needed}: {argument.description}{f' ({completed})' if completed else ''}\n"


# -- metrics ---------------------------------------------------------------------


def metrics_page() -> str:
    """Return the page of what `/metrics` says."""
    families = [*request_families([]), *connection_families({}), *savings_families([])]
    said = [(each.type, each.name, each.documentation) for each in families]
    said += [(metric.kind, metric.name, metric.help) for metric in METRICS]
    lines = [
        f"- `{name}{'_total' if kind == 'counter' else ''}` ({kind}): {text}\n"
        for kind, name, text in sorted(said, key=lambda each: each[1])
    ]
    return (
        "# Metrics\n\n"
        "What `/metrics` says, besides `process_…` and `greenroom_build_info`. How to scrape it and what to "
        "watch: [deploy](../how-to/deploy.md#metrics).\n\n"
        f"{''.join(lines)}"
    )


# -- settings --------------------------------------------------------------------


def settings_page() -> str:
    """Return the page of the settings and of the exit codes."""
    lines = []
    for key, setting in settings.all_settings().items():
        default = getattr(settings.Settings, key, None)
        value = "" if setting.reader is boolean else f" {setting.reader.metavar}"
        known = f", default `{setting.reader.show(default)}`" if default else ""
        variable = f"`{settings.variable(key)}`"
        lines.append(f"- `{settings.flag(key)}{value}` ({variable}{known}): {setting.help}\n")
    exits = [(str(code), meaning) for code, meaning in exit_codes.MEANINGS.items()]
    return (
        "# Settings\n\n"
        "A flag wins over a variable, a variable over the file, the file over the default. "
        "In parentheses is the variable; the file has `max_size` for `--max-size`. "
        "`greenroom config` shows what is in force and where it came from. How to use them: "
        "[configure](../how-to/configure.md).\n\n"
        f"{''.join(lines)}\n"
        f"The file is the one that `--config FILE` or `{settings.CONFIG_VARIABLE}` names, "
        "else `greenroom/config.toml` in the platform's folder for a user's configuration.\n\n"
        f"## Exit codes\n\n{table(('code', 'meaning'), exits)}"
    )


if __name__ == "__main__":
    sys.exit(main())
