"""The settings of `greenroom`, each declared once.

A field of `Settings` is the only declaration of its setting. From it follow the command line flag
(``--max-size``), the environment variable (``GREENROOM_MAX_SIZE``), the key of the configuration file
(``max_size``), the help text and the output of ``greenroom config``. `load` resolves the values in force.
"""

from __future__ import annotations

import functools
import getpass
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Literal

from greenroom.actors.app.savings.baselines import USUAL_PRICE
from greenroom.actors.core.auth.tool_profiles import SCHEMA_FORMS, TOOL_PROFILES, SchemaForm
from greenroom.actors.core.base.byte_sizes import AUDIT_SIZES, FREE_SIZES, STORE_SIZES
from greenroom.actors.core.base.default_folders import (
    default_data_folder,
    default_models_folder,
    default_secrets_folder,
)
from greenroom.actors.core.defaults import AUDIT_DAYS, CONTENT_LIMIT, DEBOUNCE_SECONDS
from greenroom.actors.sessions.conversation_tiers import TierSizes
from greenroom.transports.base.config.parsers import (
    KeyLocation,
    Model,
    Setting,
    baseline,
    boolean,
    embedder,
    file,
    folder,
    host_port,
    integer,
    key_location,
    language,
    line,
    list_of,
    name,
    network,
    number,
    origin,
    setting,
    signer,
    size,
    text_path,
    tiers,
    url,
    word,
    zone,
)
from greenroom.transports.base.defaults import (
    MAX_CONNECTIONS,
    MAX_IN_FLIGHT,
    MAX_MESSAGE_BYTES,
    PING_SECONDS,
    RATE_BURST,
    RATE_LIMIT,
    REQUEST_SECONDS,
    SESSION_IDLE_SECONDS,
)
from greenroom.transports.base.net.addresses import HostPort

PREFIX: Final = "GREENROOM_"
CONFIG_VARIABLE: Final = PREFIX + "CONFIG"
API_KEY_VARIABLE: Final = PREFIX + "API_KEY"
EMBEDDER_KEY_VARIABLE: Final = PREFIX + "EMBEDDER_KEY"
PASSPORT_SECRET_VARIABLE: Final = PREFIX + "PASSPORT_SECRET"
PASSPHRASE_VARIABLE: Final = PREFIX + "PASSPHRASE"
"""Not a setting: a secret belongs on no command line and in no file, and `greenroom config` omits it."""

_MIB: Final = 1 << 20
_GIB: Final = 1 << 30


def login_name() -> str:
    """Return the login name of this process's user, or the user's number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry
        return f"uid-{os.getuid()}"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings in force. Sizes are in bytes; each field states its unit of time."""

    data: Path = setting(
        default_data_folder,
        folder,
        "folder of the store; the platform's user data folder unless given",
        everywhere=True,
    )
    secrets: Path = setting(
        default_secrets_folder,
        folder,
        "folder of the secrets of stores, apart from their data; in the user's configuration folder "
        "unless given",
        everywhere=True,
    )
    encryption_key: KeyLocation | None = setting(
        None,
        key_location,
        "where the key of an encrypted store is kept: a file that no other user can read, an environment "
        "variable, or the system's keyring",
        everywhere=True,
    )
    encrypt: bool = setting(
        False,
        boolean,
        "make a new store encrypted, and refuse one that is not; `greenroom encrypt` rewrites one",
    )
    agent: str | None = setting(
        None, name(100), "agent id of the connection; taken from the client's own name unless given"
    )
    agent_type: str | None = setting(
        None,
        name(100, "TYPE"),
        "agent type: what one agent writes for `agent_only`, agents of its type see; private unless given",
    )
    user: str = setting(login_name, line(128), "user that the agent works for; the login name unless given")
    project: tuple[str, ...] = setting(
        (),
        list_of(name(128)),
        "project that the agent is a member of, once for each; a member of every project unless given",
    )
    ws: HostPort | None = setting(
        None,
        host_port,
        "serve WebSocket clients at this address, such as 127.0.0.1:8765; port 0 takes any free one; an "
        "address that other machines reach needs API keys and TLS",
    )
    http: HostPort | None = setting(
        None, host_port, "serve HTTP clients at this address, such as 127.0.0.1:8080, on the same terms"
    )
    http_session_idle: float = setting(
        SESSION_IDLE_SECONDS,
        number(1, 30 * 86_400, "seconds"),
        "how long an HTTP session may stay without a request and an open stream before it ends, in seconds",
    )
    stdio: bool = setting(
        False,
        boolean,
        "serve standard input and output besides WebSocket and HTTP; without --ws and --http they are "
        "served anyway",
    )
    tls_cert: Path | None = setting(
        None, file, "certificate with its chain, in PEM form: WebSocket and HTTP over TLS (wss, https)"
    )
    tls_key: Path | None = setting(None, file, "the certificate's key, in PEM form")
    require_key: bool = setting(
        False,
        boolean,
        "require an API key over WebSocket and HTTP, even while none exists; once the first key is made, "
        "that is so anyway",
    )
    behind_proxy: bool = setting(
        False,
        boolean,
        "a proxy in front of this server speaks TLS with clients: serve the outside without TLS, and accept "
        "every host name; every caller needs an API key",
    )
    base_url: str | None = setting(
        None,
        url,
        "URL at which clients reach HTTP, such as https://greenroom.example.org; one-time links begin with "
        "it, and unless given with the address of --http",
    )
    oauth_issuer: str | None = setting(
        None,
        url,
        "issuer whose OAuth 2.1 access tokens open this server besides its own keys, such as "
        "https://id.example.org",
    )
    oauth_resource: str | None = setting(
        None,
        url,
        "URL of this server as clients know it, such as https://greenroom.example.org/mcp; tokens must "
        "be for it",
    )
    rate_limit: int = setting(
        RATE_LIMIT,
        integer(1, 10_000_000, "requests"),
        "how many requests a minute one API key without a rate of its own may send, and one address "
        "without a valid key",
    )
    rate_burst: int = setting(
        RATE_BURST,
        integer(1, 1_000_000, "requests"),
        "how many of these requests may arrive at once",
    )
    trusted_proxy: tuple[str, ...] = setting(
        (),
        list_of(network),
        "address or network of a proxy that may set the header Forwarded, such as 10.0.0.7 or "
        "10.0.0.0/8, once for each",
    )
    allow_origin: tuple[str, ...] = setting(
        (),
        list_of(origin),
        "origin of web pages that may connect, such as https://example.org, once for each; "
        "those of this machine may anyway",
    )
    max_connections: int = setting(
        MAX_CONNECTIONS,
        integer(1, 1_000_000, "connections"),
        "how many WebSocket clients may be connected, and how many HTTP clients; also how many sessions "
        "HTTP clients may have",
    )
    max_in_flight: int = setting(
        MAX_IN_FLIGHT,
        integer(1, 1_000_000, "requests"),
        "how many requests of one client run at once; its connection is not read while there are as many",
    )
    max_frame: int = setting(
        MAX_MESSAGE_BYTES, size(4096, _GIB), "how long one message of the protocol may be, such as 8MiB"
    )
    ping_interval: float = setting(
        PING_SECONDS,
        number(0.1, 86_400, "seconds"),
        "how long a WebSocket client may be silent before it is pinged, and after that before its "
        "connection ends, in seconds",
    )
    durability: Literal["power", "process"] = setting(
        "power",
        word("power", "process"),
        "what an answered write outlives: `power` a power cut, `process` only the end of the process",
    )
    max_size: int = setting(
        256 * _GIB, size(*STORE_SIZES), "how large the store may grow, such as 256GiB or 64MB"
    )
    min_free: int = setting(
        64 * _MIB, size(*FREE_SIZES), "writes stop when the disk has less free than this, such as 1GiB"
    )
    request_timeout: float = setting(
        REQUEST_SECONDS, number(0.01, 86_400, "seconds"), "how long one request may take, in seconds"
    )
    debounce: float = setting(
        DEBOUNCE_SECONDS,
        number(0, 3_600, "seconds"),
        "within how long changes of one resource become one notification, in seconds",
    )
    content_limit: int = setting(
        CONTENT_LIMIT,
        integer(1, 1 << 20, "characters", "CHARS"),
        "how long the content of a message may be, in characters",
    )
    conversation_tiers: tuple[int, ...] = setting(
        TierSizes(),
        tiers,
        "how many messages of a conversation, read as a resource, are there as they are, how many older "
        "ones shortened, and how many of those before them as a line",
    )
    documents: tuple[str, ...] = setting(
        (),
        list_of(text_path, "DIR"),
        "folder whose files clients may have ingested, once for each; a client on standard input and output "
        "may besides name those in the folders that it works in",
    )
    workspace: tuple[str, ...] = setting(
        (),
        list_of(text_path, "DIR"),
        "folder of code that clients may search and read, once for each; a client on standard input and "
        "output may besides those that it works in",
    )
    worktrees_apart: bool = setting(
        False,
        boolean,
        "let each linked git worktree be a project of its own; otherwise it belongs to its repository's",
    )
    read_secrets: tuple[str, ...] = setting(
        (),
        list_of(line(200), "PATTERN"),
        "file of workspaces that `read_file` reads though it may hold secrets, once for each: a name or a "
        "path below the workspace, with * for anything; it is not indexed",
    )
    no_index: bool = setting(
        False,
        boolean,
        "index no workspaces: searches for code go by what was indexed before, and say so",
    )
    run_hooks: Literal["on", "off"] | None = setting(
        None,
        word("on", "off"),
        "whether hooks of clients do anything; unless given they do, but where a `.greenroom.toml` switches "
        "them off",
    )
    hooks_exclude: tuple[str, ...] = setting(
        (),
        list_of(line(200), "PATTERN"),
        "what hooks keep nothing about, once for each: a name such as *.pem, or a path such as ~/private; "
        "in such a folder they do nothing",
    )
    reviewed_only: bool = setting(
        False,
        boolean,
        "hooks give sessions no memory before you have accepted it, not even what you typed yourself",
    )
    learn_workflows: bool = setting(
        False,
        boolean,
        "record the names of the tools that clients call here, in order and without arguments, so that "
        "suggest_next_action knows them; otherwise only what record_workflow_step records",
    )
    prompts: Path | None = setting(
        None,
        folder,
        "folder of your own prompts, one Markdown file each, listed besides Greenroom's; clients hear "
        "of changes there",
    )
    embedder: str | Model = setting(
        "auto",
        embedder,
        "what makes embeddings of memories, by which searches find texts of the same meaning: `minilm`, "
        "a sentence model (`greenroom embedder install minilm`); `static`, word vectors that ship with the "
        "program; `auto`, the best of these that is installed; a sentence-transformers export in a folder "
        "(onnx:DIR), an endpoint with OpenAI's protocol (http:URL, its key in GREENROOM_EMBEDDER_KEY), a "
        "class of your own (python:MODULE:CLASS), or `none`",
    )
    models: Path = setting(
        default_models_folder,
        folder,
        "folder of the models that `greenroom embedder install` brings; in the user's data folder unless "
        "given",
    )
    embedder_model: str | None = setting(
        None, line(120), "name of the model that an endpoint is to embed with"
    )
    language: tuple[str, ...] = setting(
        ("english",),
        list_of(language),
        "language whose words are found whatever their endings, once for each; every search uses all of "
        "them; after a change the index is rebuilt",
    )
    timezone: str | None = setting(
        None,
        zone,
        "time zone in which times such as `yesterday` are meant where a request names none, such as "
        "Europe/Berlin; the machine's unless given",
    )
    trust_signer: tuple[str, ...] = setting(
        (),
        list_of(signer),
        "public key of another server whose passports are accepted here, once for each; `greenroom passport "
        "signer` prints it there",
    )
    tools: tuple[str, ...] = setting(
        ("core",),
        list_of(word(*TOOL_PROFILES), "NAME[,NAME...]", repeatable=False),
        f"tool profiles, which say which tools clients are listed: {', '.join(TOOL_PROFILES[:-1])} or "
        f"{TOOL_PROFILES[-1]}; of several the first decides where they differ; those of an API key or in "
        "a client's URL go before these, and every tool can be called in any case",
    )
    schemas: SchemaForm = setting(
        "plain",
        word(*SCHEMA_FORMS),
        "form in which tools' parameters are listed: plain, which every model's provider takes, or nullable, "
        "which clients convert to OpenAI's strict form; that of an API key or in a client's URL goes before "
        "this, and the same arguments are taken in any case",
    )
    savings_baseline: tuple[str, ...] = setting(
        (),
        list_of(baseline),
        "what an agent is taken to have read otherwise, where that is not the usual, as OPERATION=BASELINE, "
        "once for each operation, such as search_code_semantic=found_files; `none` lets it save nothing",
    )
    token_price: float = setting(
        USUAL_PRICE,
        number(0, 1_000_000, "units of any currency", "PRICE"),
        "what a model's million input tokens cost, in any currency; savings are counted by it",
    )
    audit_days: int = setting(
        AUDIT_DAYS, integer(1, 36_500, "days", "DAYS"), "how long audit records are kept, in days"
    )
    audit_size: int = setting(
        _GIB,
        size(*AUDIT_SIZES),
        "how many bytes of audit records are kept, such as 1GiB; the oldest go first",
    )
    wait: bool = setting(
        False,
        boolean,
        "wait without limit for a process that owns the folder and does not answer; otherwise a command "
        "ends within 10 seconds and names the process",
        everywhere=True,
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info",
        word("debug", "info", "warning", "error"),
        "lowest level that is logged to standard error",
        everywhere=True,
    )
    log_format: Literal["text", "json"] = setting(
        "text",
        word("text", "json"),
        "log as text, or as JSON with a line for each request: when, trace, tool, agent, milliseconds "
        "and outcome, never contents",
    )


@functools.cache
def all_settings() -> dict[str, Setting]:
    """Return every setting by field name, in order of declaration."""
    return {each.name: each.metadata["setting"] for each in fields(Settings)}


def flag(key: str) -> str:
    """Return the command line flag of a setting."""
    return "--" + key.replace("_", "-")


def variable(key: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + key.upper()
