"""The settings of `greenroom`, each declared once.

A field of `Settings` is the only declaration of its setting. The command line flag
(``--max-size``), the environment variable (``GREENROOM_MAX_SIZE``), the key of the
configuration file (``max_size``), the help text and ``greenroom config`` follow from it.

A flag wins over the environment, the environment over the file, the file over the
default. A list is taken whole from one source, never joined from several. An empty
environment variable counts as absent, so that a container may pass it on unset.
"""

from __future__ import annotations

import functools
import getpass
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_type_hints

import platformdirs

from greenroom.actors._places import default_secrets
from greenroom.transports._addresses import HostPort, host_port, origin
from greenroom.transports._origins import network
from greenroom.transports._values import (
    KeyPlace,
    Model,
    NotAllowedError,
    NotShownError,
    embedder,
    file,
    folder,
    key_place,
    language,
    line,
    name,
    number,
    several,
    show_size,
    show_truth,
    signer,
    size,
    truth,
    url,
    whole,
    word,
    zone,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

PREFIX: Final = "GREENROOM_"
CONFIG_VARIABLE: Final = PREFIX + "CONFIG"
API_KEY_VARIABLE: Final = PREFIX + "API_KEY"
EMBEDDER_KEY_VARIABLE: Final = PREFIX + "EMBEDDER_KEY"
PASSPORT_SECRET_VARIABLE: Final = PREFIX + "PASSPORT_SECRET"
PASSPHRASE_VARIABLE: Final = PREFIX + "PASSPHRASE"
"""No setting: a secret stands neither on a command line nor in a file, and `greenroom config` shows none."""
CONFIG_LIMIT: Final = 1 << 20  # bytes; a configuration file is a page of text

_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_TIB: Final = 1 << 40


class SettingsError(Exception):
    """A flag, an environment variable or the configuration file says what cannot be.

    Its sentence names the source, the value and what is allowed.
    """


@dataclass(frozen=True)
class Setting:
    """What is known of one setting besides its type and its default.

    Attributes:
        help: What it does, for people; also says what the default is when that depends on the place.
        metavar: Stands for the value in the usage.
        read: Makes the value of a text or a TOML value; raises `NotAllowedError`.
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
    """The platform's folder for a user's data of this program."""
    return platformdirs.user_data_path("greenroom", appauthor=False)


def default_config() -> Path:
    """Where the configuration file is looked for when nobody names one."""
    return platformdirs.user_config_path("greenroom", appauthor=False) / "config.toml"


def login_name() -> str:
    """The name of the user that runs this process; its number where it has no name."""
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
        KeyPlace | None,
        Setting(
            "where the key of an encrypted store is kept: a file that nobody else can read, an environment "
            "variable, or the system's keyring",
            "file:PATH|env:NAME|keyring:NAME",
            key_place,
            everywhere=True,
        ),
    ] = None
    encrypt: Annotated[
        bool,
        Setting(
            "make a new store encrypted, and refuse one that is not; `greenroom encrypt` rewrites one",
            "yes|no",
            truth,
            show_truth,
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
            several(name(128)),
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
            "serve standard input and output besides WebSocket and HTTP; without `ws` and `http` they are "
            "served anyway",
            "yes|no",
            truth,
            show_truth,
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
            truth,
            show_truth,
            switch=True,
        ),
    ] = False
    behind_proxy: Annotated[
        bool,
        Setting(
            "a proxy before this server speaks TLS with clients: serve in the clear what others reach, and "
            "answer to every host name; everybody needs an API key",
            "yes|no",
            truth,
            show_truth,
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
            whole(1, 10_000_000, "requests"),
        ),
    ] = 100
    rate_burst: Annotated[
        int,
        Setting("how many of these requests may come at once", "COUNT", whole(1, 1_000_000, "requests")),
    ] = 20
    trusted_proxy: Annotated[
        tuple[str, ...],
        Setting(
            "address or network of a proxy whose header Forwarded is believed, such as 10.0.0.7 or "
            "10.0.0.0/8, once for each",
            "NETWORK",
            several(network),
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
            several(origin),
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
            whole(1, 1_000_000, "connections"),
        ),
    ] = 4096
    max_in_flight: Annotated[
        int,
        Setting(
            "how many requests of one client are worked on; it is not read from meanwhile",
            "COUNT",
            whole(1, 1_000_000, "requests"),
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
            whole(1, 1 << 20, "characters"),
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
            several(language),
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
            several(signer),
            ",".join,
            repeatable=True,
        ),
    ] = ()
    compat: Annotated[
        bool,
        Setting(
            "list the older names of tools as well; they can be called in any case",
            "yes|no",
            truth,
            show_truth,
            switch=True,
        ),
    ] = False
    audit_days: Annotated[
        int,
        Setting("how long audit records are kept, in days", "DAYS", whole(1, 36_500, "days")),
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
def table() -> dict[str, Setting]:
    """Every setting by the name of its field, in the order of their declaration."""
    hints = get_type_hints(Settings, include_extras=True)
    return {each.name: hints[each.name].__metadata__[0] for each in fields(Settings)}


def flag(key: str) -> str:
    """The command line flag of a setting."""
    return "--" + key.replace("_", "-")


def variable(key: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + key.upper()


@dataclass(frozen=True)
class Source:
    """Where the value in force came from.

    Attributes:
        kind: Which of the four it was.
        place: The flag, the variable or the path of the file; empty for a default.
    """

    kind: Literal["flag", "env", "file", "default"]
    place: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.place}".rstrip()


@dataclass(frozen=True)
class Resolved:
    """The settings in force, with where each came from.

    Attributes:
        settings: The values.
        sources: The source of each, by field name.
        config: The configuration file that was read, if any.
        strangers: Variables that begin like ours and are none of ours: most likely misspelt.
    """

    settings: Settings
    sources: Mapping[str, Source]
    config: Path | None
    strangers: tuple[str, ...]


def resolve(
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    *,
    default_file: Callable[[], Path] = default_config,
) -> Resolved:
    """Finds every setting's value and where it came from.

    Args:
        flags: Flags given, by field name, besides ``config``; None stands for a flag not given.
        environment: The process's environment variables.
        default_file: Says where the file may be when neither a flag nor a variable names one.

    Raises:
        SettingsError: A value is not allowed, or the file cannot be read.
    """
    file, document = _find_document(flags.get("config"), environment, default_file)
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for key, setting in table().items():
        raw, source = _choose(key, flags, environment, document, file)
        if source.kind == "default":
            sources[key] = source
            continue
        try:
            value = setting.read(raw)
        except NotShownError as error:
            raise SettingsError(f"{_where(key, source)} cannot be read: {error}") from None
        except NotAllowedError as error:
            raise SettingsError(f"{_where(key, source)} is {_clip(raw)}, but {error}") from None
        # A path in the file must mean the same wherever the program is started.
        base = file.parent if file and source.kind == "file" else Path()
        if isinstance(value, Path):
            value = _absolute(base / value)
        elif isinstance(value, Model):
            value = Model(_absolute(base / value.path))
        elif isinstance(value, KeyPlace) and value.kind == "file":
            value = KeyPlace(value.kind, str(_absolute(base / value.name)))
        values[key], sources[key] = value, source
    known = {
        CONFIG_VARIABLE,
        API_KEY_VARIABLE,
        EMBEDDER_KEY_VARIABLE,
        PASSPORT_SECRET_VARIABLE,
        PASSPHRASE_VARIABLE,
        *map(variable, table()),
    }
    strangers = tuple(sorted(each for each in environment if each.startswith(PREFIX) and each not in known))
    return Resolved(Settings(**values), sources, file, strangers)


def near(given: str, known: Iterable[str]) -> str:
    """A question after the nearest known word, or nothing when none is near."""
    import difflib  # noqa: PLC0415 - needed by a mistake alone

    plain = {each.lower(): each for each in known}
    found = difflib.get_close_matches(given.lower().replace("-", "_"), plain, n=1)
    return f"; did you mean {plain[found[0]]!r}?" if found else ""


def _choose(
    key: str,
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    document: Mapping[str, object],
    file: Path | None,
) -> tuple[object, Source]:
    if flags.get(key) is not None:
        return flags[key], Source("flag", flag(key))
    if environment.get(variable(key)):
        return environment[variable(key)], Source("env", variable(key))
    if key in document:
        return document[key], Source("file", str(file))
    return None, Source("default")


def _find_document(
    named_by_flag: object, environment: Mapping[str, str], default_file: Callable[[], Path]
) -> tuple[Path | None, Mapping[str, object]]:
    """The configuration file and what it says; a file that somebody named must exist."""
    if named_by_flag is not None:
        source, named = "--config", str(named_by_flag)
    else:
        source, named = CONFIG_VARIABLE, environment.get(CONFIG_VARIABLE, "")
    if not named and named_by_flag is None:
        file = default_file()
        if not file.is_file():
            return None, {}
        source = "the configuration file"
    else:
        try:
            file = _absolute(folder(named))
        except NotAllowedError:
            raise SettingsError(f"{source} is {_clip(named)}, but the path of a file is allowed") from None
    return file, _read_document(source, file)


def _read_document(source: str, file: Path) -> Mapping[str, object]:
    import tomllib  # noqa: PLC0415 - costs 15 ms, and most have no such file

    try:
        with file.open("rb") as stream:
            content = stream.read(CONFIG_LIMIT + 1)
    except OSError as error:
        raise SettingsError(f"{source} {str(file)!r} cannot be read: {error.strerror}") from None
    if len(content) > CONFIG_LIMIT:
        raise SettingsError(f"{source} {str(file)!r} is larger than {CONFIG_LIMIT:,} bytes")
    try:
        document = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{source} {str(file)!r} is not TOML: {error}") from None
    for key in document:
        if key not in table():
            raise SettingsError(f"{file}: there is no setting {_clip(key)}{near(key, table())}")
    return document


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps "..", resolve follows links


def _where(key: str, source: Source) -> str:
    return f"{key} in {source.place}" if source.kind == "file" else source.place


def _clip(value: object, longest: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"
