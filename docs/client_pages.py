"""Writes a page for each client of `greenroom setup`, from the table of clients."""

from collections.abc import Iterator
from typing import Final

from greenroom.transports.clients.setup.change import put_in
from greenroom.transports.clients.table import BY_HAND, CLIENTS, HOOK_CLIENTS, Client

PROGRAM: Final = "/path/to/greenroom"
HOOKS: Final = "[What they do](../hooks.md), and how they are taken out again."
MAC: Final = "Library/Application Support"

NOTES: Final = {
    "claude-code": """\
Where `claude` is on the path, it writes the file itself (`claude mcp add-json --scope user`), and takes
the entry out itself (`claude mcp remove`), because it may be running and writes its file all the time. If
that fails, setup reports it and edits the file as it edits those of other clients.

A session is in the project of the folder that Claude Code works in, which it tells each server
(`CLAUDE_PROJECT_DIR`).

Version 2.1.316 is run in the tests: it adds the server, connects to it and removes it.""",
    "claude-code-project": """\
The file is that of the current folder, so go there first. It is written only where you name
`claude-code-project`, and `--check` runs its entry only as it was written: such a file comes with
a repository, and anybody may have written it.

The path of the program is that of this machine, so the file is not for others. No key is in it.

Version 2.1.316 is run in the tests: it finds the file and asks for approval.""",
    "vscode": """\
The file is that of the default profile. VS Code reports the open folder as its root, and
sessions are in the project of that folder.""",
    "cursor": """\
Cursor reports the open folder as its root, and sessions are in the project of that folder.""",
    "zed": """\
The settings are one file with much else in it; its comments and layout stay. The entry has a `source`,
which versions of 2025 need and later ones do not mind.""",
    "cline": """\
The file is the one that its extensions and its command line share since 2026. Older versions of the
extension for VS Code kept theirs below `globalStorage`; newer ones take over what is there.

Version 3.0.65 of its command line is run in the tests: it lists the server.""",
    "continue": """\
The file is one of Greenroom's own, in a folder of which Continue reads each file. So `config.yaml` is
not touched.""",
    "codex": """\
A session is in the project of the folder that Codex CLI works in: it starts each server there.

Version 0.166.0 is run in the tests: it lists the server, and goes on with what hooks of Claude Code kept.""",
    "gemini": """\
Gemini CLI connects to servers only in folders that it trusts. One that is running and saves its
settings writes them as it knows them, without the entry; so end it first, and `--check` afterwards.
Its own `gemini mcp add` would not help with that, and is not used.

Version 0.61.0 is run in the tests: it connects.""",
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
        places.append(f"where `{client.variable[0]}` names a folder `{client.variable[1]}` there")
    return "\n".join(
        [
            f"# {client.title}\n",
            "```sh",
            f"greenroom setup {name}            # shows the change, asks, writes it, and tries the server",
            f"greenroom setup {name} --check    # what is there, and what is wrong",
            f"greenroom setup {name} --undo     # takes back exactly that",
            "```\n",
            f"This goes into {'; '.join(places)}:\n",
            f"```{client.format}",
            f"{(text or '').rstrip()}",
            "```\n",
            "What else is in the file stays as it is. Before anything is written you see it:\n",
            "```console",
            f"$ greenroom setup {name} --print",
            f"--- …/{client.linux}",
            f"+++ …/{client.linux}",
            "…",
            *_around_agent(client, text or "", name),
            "```\n",
            f"Then {client.after}.\n",
            *([f"{NOTES[name]}\n"] if name in NOTES else []),
            *(
                [f"It has hooks, too: `greenroom setup {name} --hooks`. {HOOKS}\n"]
                if name in HOOK_CLIENTS
                else []
            ),
            "[All clients](../set-up-clients.md), and what holds for each of them.\n",
        ]
    )


def _around_agent(client: Client, text: str, name: str) -> Iterator[str]:
    """Yield the line that names the agent, and a sign for what follows."""
    agent, lines = name.removesuffix("-project"), text.splitlines()
    place = next(n for n, line in enumerate(lines) if agent in line and client.command not in line)
    yield f"+{lines[place]}"
    if place + 1 < len(lines):
        yield "…"


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
            "[All clients](../set-up-clients.md), and what holds for each of them.\n",
        ]
    )
