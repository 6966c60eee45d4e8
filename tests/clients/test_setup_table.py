"""The table of clients beside what their makers publish: where each file is, and what an entry may have."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from greenroom.actors.sessions.storage.migrations import ADAPTERS
from greenroom.transports.clients.table import BY_HAND, CLIENTS

pytestmark = pytest.mark.promise("cli.setup-clients")


class Published(NamedTuple):
    """What the makers of a client say.

    Attributes:
        source: Where, and as of when it was read.
        linux: The file below the home folder.
        required: What an entry must have.
        allowed: What it may have besides.
        macos: The file on macOS, where it is another.
        variable: The variable that names another folder, and the file below that.
    """

    source: str
    linux: str
    required: set[str]
    allowed: set[str]
    macos: str | None = None
    variable: tuple[str, str] | None = None


_COMMON = {"args", "env"}
PUBLISHED = {
    "claude-desktop": Published(
        "modelcontextprotocol.io/docs/develop/connect-local-servers names the file for macOS; the one for "
        "Linux is where Electron puts it, as guides say",
        ".config/Claude/claude_desktop_config.json",
        {"command"},
        _COMMON,
        macos="Library/Application Support/Claude/claude_desktop_config.json",
    ),
    "claude-code": Published(
        "code.claude.com/docs/en/mcp; run in test_setup_clients with its variable",
        ".claude.json",
        {"command"},
        {"type", *_COMMON},
        variable=("CLAUDE_CONFIG_DIR", ".claude.json"),
    ),
    "claude-code-project": Published(
        "code.claude.com/docs/en/mcp, project scope; run in test_setup_clients",
        ".mcp.json",
        {"command"},
        {"type", *_COMMON},
    ),
    "cursor": Published(
        "cursor.com/docs/mcp, by guides that follow it, October 2026",
        ".cursor/mcp.json",
        {"command"},
        {"type", "envFile", *_COMMON},
    ),
    "vscode": Published(
        "microsoft/vscode-docs docs/copilot/customization/mcp-servers.md, 8 January 2026: mcp.json in the "
        "user's profile, `servers`, type and command required",
        ".config/Code/User/mcp.json",
        {"type", "command"},
        {"envFile", "dev", *_COMMON},
        macos="Library/Application Support/Code/User/mcp.json",
    ),
    "windsurf": Published(
        "docs.windsurf.com/windsurf/cascade/mcp: mcp_config.json, the shape of Claude Desktop",
        ".codeium/windsurf/mcp_config.json",
        {"command"},
        {"disabled", *_COMMON},
    ),
    "zed": Published(
        "zed-industries/zed docs/src/ai/mcp.md and docs/src/configuring-zed.md; versions of 2025 need the "
        "source, later ones the arguments (ContextServerSettingsContent)",
        ".config/zed/settings.json",
        {"source", "command", "args"},
        {"env", "enabled", "remote", "timeout"},
    ),
    "cline": Published(
        "cline/cline docs/getting-started/config.mdx and sdk/packages/core/src/extensions/mcp/"
        "config-loader.ts, August 2026; run in test_setup_clients with its variable",
        ".cline/data/settings/cline_mcp_settings.json",
        {"command"},
        {"type", "cwd", "disabled", "timeout", "autoApprove", *_COMMON},
        variable=("CLINE_DATA_DIR", "settings/cline_mcp_settings.json"),
    ),
    "continue": Published(
        "continuedev/continue core/context/mcp/json/loadJsonMcpConfigs.ts and docs/customize/deep-dives/"
        "mcp.mdx, June 2026: each JSON file of the folder, in the shape of Claude Desktop",
        ".continue/mcpServers/greenroom.json",
        {"command"},
        {"type", "envFile", *_COMMON},
        variable=("CONTINUE_GLOBAL_DIR", "mcpServers/greenroom.json"),
    ),
    "codex": Published(
        "openai/codex docs/config.md; run in test_setup_clients with its variable",
        ".codex/config.toml",
        {"command"},
        {"enabled", "cwd", "startup_timeout_sec", "tool_timeout_sec", *_COMMON},
        variable=("CODEX_HOME", "config.toml"),
    ),
    "gemini": Published(
        "google-gemini/gemini-cli docs/tools/mcp-server.md and docs/reference/configuration.md, August 2026; "
        "run in test_setup_clients with its variable",
        ".gemini/settings.json",
        {"command"},
        {"cwd", "timeout", "trust", "includeTools", "excludeTools", *_COMMON},
        variable=("GEMINI_CLI_HOME", ".gemini/settings.json"),
    ),
    "goose": Published(
        "block/goose documentation/docs/guides/config-files.md and crates/goose/src/config/paths.rs",
        ".config/goose/config.yaml",
        {"name", "type", "cmd", "enabled"},
        {"args", "timeout", "bundled", "display_name", "description", "env_keys", "envs"},
        variable=("GOOSE_PATH_ROOT", "config/config.yaml"),
    ),
}


def test_every_row_of_the_table_is_as_published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert set(PUBLISHED) == set(CLIENTS)
    assert not set(BY_HAND) & set(CLIENTS)
    for name, client in CLIENTS.items():
        published = PUBLISHED[name]
        if published.variable is not None:
            monkeypatch.delenv(published.variable[0], raising=False)
        assert client.path("linux") == tmp_path / published.linux, name
        assert client.path("darwin") == tmp_path / (published.macos or published.linux), name
        entry = set(client.entry("/a/greenroom", ["serve"]))
        assert published.required <= entry <= published.required | published.allowed, name


@pytest.mark.parametrize("name", [name for name, each in PUBLISHED.items() if each.variable is not None])
def test_the_folder_that_a_variable_names_is_followed(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    variable, below = PUBLISHED[name].variable or ("", "")
    monkeypatch.setenv(variable, str(tmp_path / "own"))
    assert CLIENTS[name].path() == tmp_path / "own" / below
    monkeypatch.setenv(variable, "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert CLIENTS[name].path() == tmp_path / PUBLISHED[name].linux


def test_the_freedesktop_folder_is_followed_on_linux_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    assert CLIENTS["zed"].path("linux") == tmp_path / "own/zed/settings.json"
    assert CLIENTS["zed"].path("darwin") == tmp_path / ".config/zed/settings.json"


def test_signs_of_a_client_are_its_folder_its_program_or_its_extension(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CONTINUE_GLOBAL_DIR", raising=False)
    client = CLIENTS["continue"]
    assert not client.is_installed()
    (tmp_path / ".vscode/extensions/continue.continue-1.2.3-linux-x64").mkdir(parents=True)
    assert client.is_installed()
    (tmp_path / ".vscode").rename(tmp_path / ".continue")
    assert client.is_installed()
    (tmp_path / ".continue").rename(tmp_path / "bin")
    assert not client.is_installed()
    (tmp_path / "bin/cn").write_text("#!/bin/sh\n")
    (tmp_path / "bin/cn").chmod(0o700)
    assert client.is_installed()


def test_a_client_has_one_title_for_setup_and_in_sessions() -> None:
    known = {adapter.tool_id: adapter.title for adapter in ADAPTERS}
    both = known.keys() & CLIENTS.keys()
    assert {name: CLIENTS[name].title for name in both} == {name: known[name] for name in both}
    assert len(both) > 5
