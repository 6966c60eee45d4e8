"""Makes the files of a release, as docs/publish.md says what to do with each.

    python transports/distribution/release.py dist --namespace com.example --homepage URL --sdist-url URL

Wheel, sdist, MCP bundle and the plugin for Claude Code are always made; `server.json` of the MCP registry and
the Homebrew formula need what only the publisher knows.
All contents come from pyproject.toml and the settings, so a new version needs no change here.
"""

import argparse
import hashlib
import json
import os
import tomllib
import zipfile
from pathlib import Path
from typing import Any, Final

from hatchling.build import build_sdist, build_wheel

from greenroom.transports.base.config import settings
from greenroom.transports.clients.setup.hook_files import hook_entries
from greenroom.transports.clients.setup.plugin import plugin_files
from greenroom.transports.clients.table import CLIENTS

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

FORMULA: Final = """\
class Greenroom < Formula
  desc "{summary}"
  homepage "{homepage}"
  url "{url}"
  sha256 "{digest}"
  license all_of: ["MIT", "0BSD", "Apache-2.0", "BSD-3-Clause", "ISC"]

  depends_on "python@3.13"

  def install
    system "python3.13", "-m", "venv", libexec
    system libexec/"bin/pip", "install", "--prefer-binary", buildpath
    bin.install_symlink libexec/"bin/greenroom"
    man1.install_symlink libexec/"share/man/man1/greenroom.1"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/greenroom --version")
    system bin/"greenroom", "demo"
  end
end
"""


def main() -> None:
    """Parse the command line and make the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="output folder")
    parser.add_argument("--namespace", help="namespace of server.json, such as com.example")
    parser.add_argument("--homepage", help="address of the project, for the Homebrew formula")
    parser.add_argument("--sdist-url", help="address of the published sdist, for the Homebrew formula")
    chosen = parser.parse_args()
    if (chosen.homepage is None) != (chosen.sdist_url is None):
        parser.error("the Homebrew formula needs both --homepage and --sdist-url")
    folder = chosen.folder.absolute()
    release(folder, chosen.namespace)
    if chosen.sdist_url is not None:
        sdist = folder / f"greenroom-{PROJECT['version']}.tar.gz"
        (folder / "greenroom.rb").write_text(formula(chosen.homepage, chosen.sdist_url, sdist))


def release(folder: Path, namespace: str | None = None) -> None:
    """Make the files.

    Args:
        folder: The output folder.
        namespace: The publisher's reversed domain in the registry; None makes no `server.json`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    build_sdist(str(folder))
    write_plugin(folder / "plugin")
    wheel = folder / build_wheel(str(folder))
    make_bundle(folder / f"greenroom-{PROJECT['version']}.mcpb", wheel)
    if namespace is not None:
        (folder / "server.json").write_text(as_json(registry_entry(namespace)))


def write_plugin(folder: Path) -> None:
    """Write the plugin for Claude Code, which runs the `greenroom` of each machine's PATH."""
    client, program = "claude-code", "greenroom"
    server = CLIENTS[client].entry(program, ["serve", "--agent", client])
    for name, text in plugin_files(server, hook_entries(client, [program]), on_path=True).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def formula(homepage: str, sdist_url: str, sdist: Path) -> str:
    """Return the Homebrew formula for a tap; pip brings the dependencies as wheels."""
    return FORMULA.format(
        summary=SUMMARY.partition(", kept")[0],  # 80 characters at most
        homepage=homepage,
        url=sdist_url,
        digest=hashlib.sha256(sdist.read_bytes()).hexdigest(),
    )


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
