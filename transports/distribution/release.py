"""Makes the files of a release: wheel, sdist, MCP bundle, and the registry's `server.json`.

    python transports/distribution/release.py dist --namespace com.example

All contents come from pyproject.toml and the settings, so a new version needs no change here.
"""

import argparse
import json
import os
import tomllib
import zipfile
from pathlib import Path
from typing import Any, Final

from hatchling.build import build_sdist, build_wheel

from greenroom.transports.base.config import settings

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SUMMARY: Final = "Shared sessions, memory, knowledge and code search for AI agents, kept in one folder."
REGISTRY_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
VARIABLES: Final = ("data", "agent", "user", "project", "tools")
"""The settings that a client may offer when it installs the server from the registry."""
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the bundle: the earliest in a zip file."""
ENTRY: Final = '''\
"""Starts Greenroom on standard input and output."""

import sys

from greenroom.transports.ops.cli.main import main

sys.exit(main(["serve", *sys.argv[1:]]))
'''


def main() -> None:
    """Parse the command line and make the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="output folder")
    parser.add_argument("--namespace", help="namespace of server.json, such as com.example")
    chosen = parser.parse_args()
    release(chosen.folder.absolute(), chosen.namespace)


def release(folder: Path, namespace: str | None = None) -> None:
    """Make the files.

    Args:
        folder: The output folder.
        namespace: The publisher's reversed domain in the registry; None makes no `server.json`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    build_sdist(str(folder))
    wheel = folder / build_wheel(str(folder))
    make_bundle(folder / f"greenroom-{PROJECT['version']}.mcpb", wheel)
    if namespace is not None:
        (folder / "server.json").write_text(as_json(registry_entry(namespace)))


def make_bundle(bundle: Path, wheel: Path) -> None:
    """Write the MCP bundle: the wheel, and files to run it with uv."""
    files = {
        "manifest.json": as_json(manifest()).encode(),
        "pyproject.toml": bundle_project(wheel.name).encode(),
        "server.py": ENTRY.encode(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        wheel.name: wheel.read_bytes(),
    }
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)


def manifest() -> dict[str, Any]:
    """Return the manifest of the bundle, with the server's tools and prompts."""
    return {
        "manifest_version": "0.4",
        "name": PROJECT["name"],
        "display_name": "Greenroom",
        "version": PROJECT["version"],
        "description": SUMMARY,
        "author": {"name": "The Greenroom founders"},
        "license": PROJECT["license"],
        "keywords": PROJECT["keywords"],
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {"command": "uv", "args": ["run", "--directory", "${__dirname}", "server.py"]},
        },
        "tools_generated": True,
        "prompts_generated": True,
        "compatibility": {
            "platforms": ["darwin", "linux"],
            "runtimes": {"python": PROJECT["requires-python"]},
        },
    }


def bundle_project(wheel: str) -> str:
    """Return the `pyproject.toml` of the bundle, by which uv installs the wheel."""
    return (
        f'[project]\nname = "greenroom-bundle"\nversion = "{PROJECT["version"]}"\n'
        f'requires-python = "{PROJECT["requires-python"]}"\ndependencies = ["greenroom"]\n\n'
        f'[tool.uv]\npackage = false\n\n[tool.uv.sources]\ngreenroom = {{ path = "{wheel}" }}\n'
    )


def registry_entry(namespace: str) -> dict[str, Any]:
    """Return `server.json`: how a client runs the package with uvx."""
    variables = [
        {
            "name": settings.variable(key),
            "description": settings.all_settings()[key].help,
            "isRequired": False,
        }
        for key in VARIABLES
    ]
    return {
        "$schema": REGISTRY_SCHEMA,
        "name": f"{namespace}/{PROJECT['name']}",
        "title": "Greenroom",
        "description": SUMMARY,
        "version": PROJECT["version"],
        "packages": [
            {
                "registryType": "pypi",
                "identifier": PROJECT["name"],
                "version": PROJECT["version"],
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": "serve"}],
                "environmentVariables": variables,
            }
        ],
    }


def as_json(record: dict[str, Any]) -> str:
    """Return a record as a file of JSON."""
    return json.dumps(record, indent=2) + "\n"


if __name__ == "__main__":
    main()
