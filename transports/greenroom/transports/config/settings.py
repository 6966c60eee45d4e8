"""The settings of `greenroom`, each declared once.

A field of `Settings` is the only declaration of its setting. The command line flag
(``--max-size``), the environment variable (``GREENROOM_MAX_SIZE``), the key of the
configuration file (``max_size``), the help text and ``greenroom config`` follow from it.
`load` finds the values in force.
"""

from __future__ import annotations

import functools
import getpass
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_type_hints

import platformdirs

from greenroom.actors.auth.tool_profiles import TOOL_PROFILES
from greenroom.actors.base.paths import default_secrets
from greenroom.transports.config.parsers import (
    KeyLocation,
    Model,
    boolean,
    embedder,
    file,
    folder,
    integer,
    key_location,
    language,
    line,
    list_of,
    name,
    number,
    show_boolean,
    show_size,
    signer,
    size,
    url,
    word,
    zone,
)
from greenroom.transports.net.addresses import HostPort, host_port, origin
from greenroom.transports.net.forwarded import network

PREFIX: Final = "GREENROOM_"
CONFIG_VARIABLE: Final = PREFIX + "CONFIG"
API_KEY_VARIABLE: Final = PREFIX + "API_KEY"
EMBEDDER_KEY_VARIABLE: Final = PREFIX + "EMBEDDER_KEY"
PASSPORT_SECRET_VARIABLE: Final = PREFIX + "PASSPORT_SECRET"
PASSPHRASE_VARIABLE: Final = PREFIX + "PASSPHRASE"
"""No setting: a secret stands neither on a command line nor in a file, and `greenroom config` shows none."""

_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_TIB: Final = 1 << 40


@dataclass(frozen=True)
class Setting:
    """What is known of one setting besides its type and its default.

    Attributes:
        help: What it does, for people; also says what the default is when that depends on the place.
        metavar: Stands for the value in the usage.
        read: Makes the value of a text or a TOML value; raises `InvalidValueError`.
        show: Spells the value the way `read` reads it.
        everywhere: Whether every command takes the flag, and not `serve` and `config` alone.
        repeatable: Whether the flag may be given several times.
        switch: Whether the flag alone, without a value, means yes.
    """

    help: str
    metavar: str
    read: Callable[[object], Any]
    show: Callable[[Any], str] = str
    everywhere: bool = False
    repeatable: bool = False
    switch: bool = False


def default_data() -> Path:
    """Return the platform's folder for a user's data of this program."""
    return platformdirs.user_data_path("greenroom", appauthor=False)


def login_name() -> str:
    """Return the name of the user that runs this process; its number where it has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry
        return f"uid-{os.getuid()}"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings in force. Sizes in bytes, times as the field says."""

    data: Annotated[
        Path,
        Setting(
            "folder of the store; the platform's user data folder unless given",
            "DIR",
            folder,
            everywhere=True,
        ),
    ] = field(default_factory=default_data)
    secrets: Annotated[
        Path,
        Setting(
            "folder of the secrets of stores, apart from their data; in the user's configuration folder "
            "unless given",
            "DIR",
            folder,
            everywhere=True,
        ),
    ] = field(default_factory=default_secrets)
    encryption_key: Annotated[
        KeyLocation | None,
        Setting(
            "where the key of an encrypted store is kept: a file that nobody else can read, an environment "
            "variable, or the system's keyring",
            "file:PATH|env:NAME|keyring:NAME",
            key_location,
            everywhere=True,
        ),
    ] = None
    encrypt: Annotated[
        bool,
        Setting(
            "make a new store encrypted, and refuse one that is not; `greenroom encrypt` rewrites one",
            "yes|no",
            boolean,
            show_boolean,
            switch=True,
        ),
    ] = False
    agent: Annotated[
        str | None,
        Setting("agent id of the connection; taken from the client's own name unless given", "ID", name(100)),
    ] = None
    agent_type: Annotated[
        str | None,
        Setting(
            "agent type: what one agent writes for `agent_only`, agents of its type see; "
            "private unless given",
            "TYPE",
            name(100),
        ),
    ] = None
    user: Annotated[
        str,
        Setting("user whom the agent works for; the login name unless given", "NAME", line(128)),
    ] = field(default_factory=login_name)
    project: Annotated[
        tuple[str, ...],
        Setting(
            "project that the agent is a member of, once for each; a member of every project unless given",
            "ID",
            list_of(name(128)),
            ",".join,
            repeatable=True,
        ),
    ] = ()
    ws: Annotated[
        HostPort | None,
        Setting(
            "serve WebSocket clients at this address, such as 127.0.0.1:8765; port 0 takes any free one; an "
            "address that other machines reach needs API keys and TLS",
            "HOST:PORT",
            host_port,
        ),
    ] = None
    http: Annotated[
        HostPort | None,
        Setting(
            "serve HTTP clients at this address, such as 127.0.0.1:8080, on the same terms",
            "HOST:PORT",
            host_port,
        ),
    ] = None
    http_session_idle: Annotated[
        float,
        Setting(
            "how long a session of HTTP may have no request and no stream open before it ends, in seconds",
            "SECONDS",
            number(1, 30 * 86_400, "seconds"),
            "{:g}".format,
        ),
    ] = 1800.0
    stdio: Annotated[
        bool,
        Setting(
            "serve standard input and output besides WebSocket and HTTP; without --ws and --http they are "
            "served anyway",
            "yes|no",
            boolean,
            show_boolean,
            switch=True,
        ),
    ] = False
    tls_cert: Annotated[
        Path | None,
        Setting(
            "certificate with its chain, in PEM form: WebSocket and HTTP over TLS (wss, https)", "FILE", file
        ),
    ] = None
    tls_key: Annotated[
        Path | None,
        Setting("the certificate's key, in PEM form", "FILE", file),
    ] = None
    require_key: Annotated[
        bool,
        Setting(
            "let nobody in over WebSocket and HTTP without an API key, even as long as there is none; from "
            "the first key on that is so anyway",
            "yes|no",
            boolean,
            show_boolean,
            switch=True,
        ),
    ] = False
    behind_proxy: Annotated[
        bool,
        Setting(
            "a proxy before this server speaks TLS with clients: serve in the clear what others reach, and "
            "answer to every host name; everybody needs an API key",
            "yes|no",
            boolean,
            show_boolean,
            switch=True,
        ),
    ] = False
    oauth_issuer: Annotated[
        str | None,
        Setting(
            "issuer whose OAuth 2.1 access tokens open this server besides its own keys, such as "
            "https://id.example.org",
            "URL",
            url,
        ),
    ] = None
    oauth_resource: Annotated[
        str | None,
        Setting(
            "URL of this server as clients know it, such as https://greenroom.example.org/mcp; tokens must "
            "be for it",
            "URL",
            url,
        ),
    ] = None
    rate_limit: Annotated[
        int,
        Setting(
            "how many requests a minute may come by one API key that has no rate of its own, and from one "
            "address by no right key",
            "COUNT",
            integer(1, 10_000_000, "requests"),
        ),
    ] = 100
    rate_burst: Annotated[
        int,
        Setting("how many of these requests may come at once", "COUNT", integer(1, 1_000_000, "requests")),
    ] = 20
    trusted_proxy: Annotated[
        tuple[str, ...],
        Setting(
            "address or network of a proxy whose header Forwarded is believed, such as 10.0.0.7 or "
            "10.0.0.0/8, once for each",
            "NETWORK",
            list_of(network),
            ",".join,
            repeatable=True,
        ),
    ] = ()
    allow_origin: Annotated[
        tuple[str, ...],
        Setting(
            "origin of web pages that may connect, such as https://example.org, once for each; "
            "those of this machine may anyway",
            "ORIGIN",
            list_of(origin),
            ",".join,
            repeatable=True,
        ),
    ] = ()
    max_connections: Annotated[
        int,
        Setting(
            "how many WebSocket clients may be connected, and how many HTTP clients; also how many sessions "
            "HTTP clients may have",
            "COUNT",
            integer(1, 1_000_000, "connections"),
        ),
    ] = 4096
    max_in_flight: Annotated[
        int,
        Setting(
            "how many requests of one client are worked on; it is not read from meanwhile",
            "COUNT",
            integer(1, 1_000_000, "requests"),
        ),
    ] = 1024
    max_frame: Annotated[
        int,
        Setting(
            "how long one message of the protocol may be, such as 8MiB", "SIZE", size(4096, _GIB), show_size
        ),
    ] = 8 * _MIB
    ping_interval: Annotated[
        float,
        Setting(
            "how long a WebSocket client may be silent before it is pinged, and after that before its "
            "connection ends, in seconds",
            "SECONDS",
            number(0.1, 86_400, "seconds"),
            "{:g}".format,
        ),
    ] = 20.0
    durability: Annotated[
        Literal["power", "process"],
        Setting(
            "what an answered write outlives: `power` a power cut, `process` only the end of the process",
            "power|process",
            word("power", "process"),
        ),
    ] = "power"
    max_size: Annotated[
        int,
        Setting(
            "how large the store may grow, such as 256GiB or 64MB", "SIZE", size(_MIB, 16 * _TIB), show_size
        ),
    ] = 256 * _GIB
    min_free: Annotated[
        int,
        Setting(
            "writes stop when the disk has less free than this, such as 1GiB",
            "SIZE",
            size(0, 16 * _TIB),
            show_size,
        ),
    ] = 64 * _MIB
    request_timeout: Annotated[
        float,
        Setting(
            "how long one request may take, in seconds",
            "SECONDS",
            number(0.01, 86_400, "seconds"),
            "{:g}".format,
        ),
    ] = 30.0
    debounce: Annotated[
        float,
        Setting(
            "within how long changes of one resource become one notification, in seconds",
            "SECONDS",
            number(0, 3_600, "seconds"),
            "{:g}".format,
        ),
    ] = 0.1
    content_limit: Annotated[
        int,
        Setting(
            "how long the content of a message may be, in characters",
            "CHARS",
            integer(1, 1 << 20, "characters"),
        ),
    ] = 10_000
    embedder: Annotated[
        str | Model,
        Setting(
            "what makes vectors of memories, by which searches find what means the same: `static` word "
            "vectors that ship with this program, a sentence-transformers export in a folder (onnx:DIR), "
            "an endpoint that speaks OpenAI's protocol (http:URL, its key in GREENROOM_EMBEDDER_KEY), "
            "or `none`",
            "static|none|onnx:DIR|http:URL",
            embedder,
        ),
    ] = "static"
    embedder_model: Annotated[
        str | None,
        Setting("name of the model that an endpoint is to embed with", "NAME", line(120)),
    ] = None
    language: Annotated[
        tuple[str, ...],
        Setting(
            "language whose words searches find whatever their endings, once for each; every search is in "
            "all of them, and after another choice the index is made anew",
            "NAME",
            list_of(language),
            ",".join,
            repeatable=True,
        ),
    ] = ("english",)
    timezone: Annotated[
        str | None,
        Setting(
            "time zone in which times such as `yesterday` are meant where a request names none, such as "
            "Europe/Berlin; the machine's unless given",
            "ZONE",
            zone,
        ),
    ] = None
    trust_signer: Annotated[
        tuple[str, ...],
        Setting(
            "public key of another server whose passports are taken here, once for each; `greenroom passport "
            "signer` prints it there",
            "KEY",
            list_of(signer),
            ",".join,
            repeatable=True,
        ),
    ] = ()
    tools: Annotated[
        tuple[str, ...],
        Setting(
            f"tool profiles, which say which tools clients are listed: {', '.join(TOOL_PROFILES[:-1])} or "
            f"{TOOL_PROFILES[-1]}; of several the first decides where they differ; those of an API key or in "
            "a client's URL go before these, and every tool can be called in any case",
            "NAME[,NAME...]",
            list_of(word(*TOOL_PROFILES)),
            ",".join,
        ),
    ] = ("core",)
    audit_days: Annotated[
        int,
        Setting("how long audit records are kept, in days", "DAYS", integer(1, 36_500, "days")),
    ] = 90
    audit_size: Annotated[
        int,
        Setting(
            "how many bytes of audit records are kept, such as 1GiB; the oldest go first",
            "SIZE",
            size(_MIB, 16 * _TIB),
            show_size,
        ),
    ] = _GIB
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Setting(
            "least weight of what is logged to standard error",
            "debug|info|warning|error",
            word("debug", "info", "warning", "error"),
            everywhere=True,
        ),
    ] = "info"


@functools.cache
def all_settings() -> dict[str, Setting]:
    """Return every setting by the name of its field, in the order of their declaration."""
    hints = get_type_hints(Settings, include_extras=True)
    return {each.name: hints[each.name].__metadata__[0] for each in fields(Settings)}


def flag(key: str) -> str:
    """Return the command line flag of a setting."""
    return "--" + key.replace("_", "-")


def variable(key: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + key.upper()
