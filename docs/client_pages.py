"""Writes a page for each client of `greenroom setup`, from the table of clients."""

from collections.abc import Iterator
from typing import Final

from greenroom.transports.clients.setup.change import put_in
from greenroom.transports.clients.table import BY_HAND, CLIENTS, HOOK_CLIENTS, Client

PROGRAM: Final = "/path/to/greenroom"

NOTES: Final = {
    "claude-code": """\
Where `claude` is on the path, it writes the file itself (`claude mcp add-json --scope user`,
`claude mcp remove`). If that fails, setup reports it and edits the file. Claude Code's own notes there stay.

A session is in the project of the folder that Claude Code works in (`CLAUDE_PROJECT_DIR`).""",
    "claude-code-project": """\
Go to the folder first. The file is written only where you name `claude-code-project`. `--check` runs its
entry only as it was written, because such a file may come with a repository.

The path of the program is that of this machine, so the file is not for others. No key is in it.""",
    "vscode": """\
The file is that of the default profile. Sessions are in the project of the open folder.""",
    "cursor": """\
Sessions are in the project of the open folder.""",
    "zed": """\
Comments and layout of the settings stay. Versions of 2025 need the `source`.""",
    "cline": """\
Its extensions and its command line share this file since 2026.""",
    "continue": """\
The file is one of Greenroom's own; `config.yaml` is not touched.""",
    "codex": """\
A session is in the project of the folder that Codex CLI works in.""",
    "gemini": """\
Gemini CLI connects to servers only in folders that it trusts. End it first: when it saves its settings, it
drops the entry. Then use `--check`.""",
    "jetbrains": """\
Nothing is written, and `--check` and `--undo` know nothing of it.""",
}
"""What there is to know of a client besides its row of the table."""


def client_pages() -> dict[str, str]:
    """Return the pages by the names of their files."""
    pages = {f"{name}.md": _page(name, client) for name, client in CLIENTS.items()}
    return pages | {f"{name}.md": _page_by_hand(name, place) for name, place in BY_HAND.items()}


def files_of_clients() -> Iterator[tuple[str, ...]]:
    """Yield each client's row: page, file, file on macOS, and environment variable."""
    for name, client in CLIENTS.items():
        file = f"`{_below_home(client)}`" + (" in the current folder" if client.project else "")
        mac = f"`~/{client.macos}`" if client.macos else ""
        variable = f"`{client.variable[0]}`" if client.variable else ""
        yield f"[{client.title}](clients/{name}.md)", f"`{name}`", file, mac, variable
    for name in BY_HAND:
        title = BY_HAND[name].partition(":")[0]
        yield f"[{title}](clients/{name}.md)", f"`{name}`", "printed, and pasted by you", "", ""


def hooks_of_clients() -> Iterator[tuple[str, ...]]:
    """Yield the row of each client with hooks: file, events, and the user's steps."""
    for name, client in HOOK_CLIENTS.items():
        events = (
            f"`{hook}` `{event.name}`" + (f" of `{event.matcher}`" if event.matcher else "")
            for hook, event in client.events.items()
        )
        variable = f", or where `{client.variable[0]}` says" if client.variable else ""
        yield f"`{name}`", f"`~/{client.file}`{variable}", ", ".join(events), client.after


def _below_home(client: Client) -> str:
    return client.linux if client.project else f"~/{client.linux}"


def _page(name: str, client: Client) -> str:
    arguments = ["serve", "--agent", name.removesuffix("-project")]
    text, _ = put_in(client, None, client.entry(PROGRAM, arguments), None)
    places = [f"`{_below_home(client)}`"]
    if client.project:
        places[0] += " of the current folder"
    if client.macos:
        places.append(f"on macOS `~/{client.macos}`")
    if client.variable:
        places.append(f"where `{client.variable[0]}` names a folder, `{client.variable[1]}` there")
    hooks = [f"Hooks: `greenroom setup {name} --hooks`. [What they do](../hooks.md).\n"]
    return "\n".join(
        [
            f"# {client.title}\n",
            f"`greenroom setup {name}` writes this into {'; '.join(places)}:\n",
            f"```{client.format}",
            f"{(text or '').rstrip()}",
            "```\n",
            f"Then {client.after}.\n",
            *([f"{NOTES[name]}\n"] if name in NOTES else []),
            *(hooks if name in HOOK_CLIENTS else []),
            "[All clients](../set-up-clients.md)\n",
        ]
    )


def _page_by_hand(name: str, place: str) -> str:
    title, _, what = place.partition(": ")
    return "\n".join(
        [
            f"# {title}\n",
            "```console",
            f"$ greenroom setup {name}",
            f"{title}: {what}",
            "{",
            '  "mcpServers": {',
            '    "greenroom": {',
            '      "command": "/…",',
            '      "args": [',
            "…",
            f'        "{name}"',
            "…",
            "```\n",
            f"{NOTES[name]}\n",
            "[All clients](../set-up-clients.md)\n",
        ]
    )
