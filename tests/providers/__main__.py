"""Have libraries convert the tools of every profile, each in an environment of its own; compare the outcome.

`python tests/providers [--environments FOLDER] [LIBRARY...]` installs each library with `uv`. Each starts a
server for every profile and form of schemas. It ends with 1 where a tool does not convert, where a
conversion loses a parameter or its type, or where the outcome is not what `support.provider_rules` says that
its provider takes; with 2 where nothing failed and a library could not be installed. `.ci/nightly` runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support.provider_rules import OPENAI_STRICT, PROVIDERS, faults  # noqa: E402 - it lies beside this folder

from greenroom.actors.core.auth.tool_profiles import TOOL_PROFILES, SchemaForm  # noqa: E402
from greenroom.transports import TOOLS  # noqa: E402
from greenroom.transports.auth.caller import ToolChoice  # noqa: E402
from greenroom.transports.mcp.tools.offered_tools import ToolOffers  # noqa: E402

PATIENCE = 3_600  # seconds for all profiles: on a busy machine one takes some minutes
GREENROOM = str(Path(sys.executable).with_name("greenroom"))
TABLE = {**PROVIDERS, "OpenAI, strict": OPENAI_STRICT}
OFFERS = ToolOffers(TOOLS, ("core",))


class Library(NamedTuple):
    """A library that declares tools to models.

    Attributes:
        packages: What brings it.
        forms: The forms of schemas that its users are told to ask for.
    """

    packages: tuple[str, ...]
    forms: tuple[SchemaForm, ...] = ("plain",)


LIBRARIES: Mapping[str, Library] = {
    "google_genai": Library(("google-genai", "mcp<2")),
    "langchain": Library(("langchain-google-genai", "langchain-mcp-adapters", "google-genai")),
    "openai_agents": Library(("openai-agents",), ("plain", "nullable")),
    "pydantic_ai": Library(
        ("pydantic-ai-slim[mcp,google,openai,anthropic,mistral,bedrock]",), ("plain", "nullable")
    ),
    "google_adk": Library(("google-adk[mcp]",)),
    "anthropic": Library(("anthropic[mcp]",)),
    "smolagents": Library(("smolagents[mcp]", "mcp<2"), ("plain", "nullable")),
    "crewai": Library(("crewai", "crewai-tools[mcp]")),
}


def main() -> int:
    """Convert; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path, help="folder that keeps what is installed")
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help=", ".join(LIBRARIES))
    chosen = parser.parse_args()
    wanted = chosen.libraries or list(LIBRARIES)
    failed, missing = [], []
    with tempfile.TemporaryDirectory() as work:
        environment = server_environment(Path(work))
        for name in wanted:
            folder = (chosen.environments or Path(work)) / name
            if not install(LIBRARIES[name].packages, folder):
                missing.append(name)
                continue
            for form in LIBRARIES[name].forms:
                made, wrong = converted(name, folder, form, environment)
                said = [f"{name}, {form}: {made} schemas made of tools{', FAILED' if wrong else ''}"]
                print(*said, *(f"{name}, {form}, {each}" for each in wrong), sep="\n", flush=True)
                failed += wrong
    print(*(f"{name} cannot be installed here" for name in missing), sep="\n")
    return 1 if failed else 2 if missing else 0


def install(packages: tuple[str, ...], folder: Path) -> bool:
    """Make an environment with these packages; return whether they could be had."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, folder], check=True)
    done = subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, *packages], check=False)
    return done.returncode == 0


def server_environment(work: Path) -> dict[str, str]:
    """Return the environment of servers whose client may do everything, administer as well."""
    told = {"GREENROOM_DATA": str(work / "data"), "HOME": str(work), "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    environment = {**os.environ, **told, "CREWAI_DISABLE_TELEMETRY": "true"}
    made = subprocess.run(
        [GREENROOM, "keys", "create", "--name", "driver", "--scopes", "*,admin,audit:read"],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return {**environment, "GREENROOM_API_KEY": made.stdout.strip()}


def converted(
    library: str, folder: Path, form: SchemaForm, environment: Mapping[str, str]
) -> tuple[int, list[str]]:
    """Return of how many tools a library has made schemas, and what is wrong with them."""
    done = subprocess.run(
        [folder / "bin" / "python", HERE / f"with_{library}.py", GREENROOM, *TOOL_PROFILES],
        env={**environment, "GREENROOM_SCHEMAS": form}, check=False, capture_output=True, text=True,
        timeout=PATIENCE,
    )  # fmt: skip
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"tool"')]
    wrong = [f"ended with {done.returncode}: {done.stderr.strip()[-500:]}"] if done.returncode else []
    for profile in TOOL_PROFILES:
        offer = OFFERS.of(ToolChoice((profile,), form))
        listed = {tool["name"]: tool for tool in offer.listing_of(offer.listed)}
        made = [each for each in told if each["profile"] == profile]
        wrong += [f"{profile}: {each}" for each in wrong_of(made, listed)]
    return len(told), wrong


def wrong_of(made: list[dict[str, Any]], listed: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """Yield what is wrong with what a library made of a profile's tools."""
    if missing := listed.keys() - {each["tool"] for each in made}:
        yield f"not converted: {', '.join(sorted(missing))}"
    for each in made:
        tool, schema = listed[each["tool"]], each["schema"]
        if (before := shape(tool["inputSchema"])) != (after := shape(schema)):
            yield f"{each['tool']}: {before} became {after}"
        if each["provider"]:
            said = faults(TABLE[each["provider"]], {**tool, "inputSchema": schema})
            yield from (f"{each['tool']}: {one}" for one in said)


def shape(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """Return the types in a schema, however it is written; null is left out, and of several all are told."""
    root = schema if root is None else root
    if "$ref" in schema:
        return shape(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    choices = schema.get("anyOf") or schema.get("any_of")
    if choices:
        meant = [each for each in choices if each.get("type") != "null"]
        return shape(meant[0], root) if len(meant) == 1 else sorted(each["type"].lower() for each in meant)
    types = schema.get("type")
    kinds = sorted(kind.lower() for kind in ([types] if isinstance(types, str) else types or ["string"]))
    kinds = [kind for kind in kinds if kind != "null"]
    if kinds == ["object"]:
        return {name: shape(each, root) for name, each in (schema.get("properties") or {}).items()}
    if kinds == ["array"]:
        return [shape(schema.get("items") or {}, root)]
    return kinds[0] if len(kinds) == 1 else kinds


if __name__ == "__main__":
    sys.exit(main())
