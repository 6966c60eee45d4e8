"""Options in Python: unknown ones are refused, and each setting has its name."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import trio

from greenroom.actors import (
    Agent,
    Database,
    EmbedderChoice,
    EmbedderError,
    Event,
    GreenroomOptions,
    Principal,
    open_greenroom,
)
from greenroom.actors.app.options import check_greenroom_options
from greenroom.actors.sessions.conversation_tiers import TierSizes
from greenroom.runtime import (
    CommonConfig,
    ConfigurationError,
    Encryption,
    PlainCodec,
    RuntimeConfig,
    RuntimeOptions,
    StoreKeyError,
    open_runtime,
    open_shared_runtime,
)
from greenroom.testing import ServerOptions, mcp_client, mcp_server
from greenroom.transports import McpServer
from greenroom.transports.base.config import settings as declared
from greenroom.transports.base.config.settings import PREFIX, all_settings, variable

ROOT = Path(__file__).parents[2]
KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
TEXT = "quagga-in-the-clear"

ADAPTERS = sorted(
    f"adapters.{each.parent.name}"
    for each in (ROOT / "transports/greenroom/adapters").glob("*/__init__.py")
    if each.parent.name != "base"
)


# -- an option that is not there


def names_in(package: Any) -> list[str]:
    """Return what a package re-exports."""
    tree = ast.parse(Path(package.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return [alias.asname for node in imports for alias in node.names if alias.asname == alias.name]


def takes_any(function: Any) -> bool:
    """Return whether Python itself takes any keyword argument."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(each.kind is each.VAR_KEYWORD for each in parameters)


def takers() -> Iterator[str]:
    """Yield the public functions, classes and methods that take any keyword argument."""
    for portion in ("runtime", "actors", "transports", "testing", *ADAPTERS):
        package = import_module(f"greenroom.{portion}")
        for name in names_in(package):
            found = getattr(package, name)
            if not isinstance(found, type | FunctionType) or getattr(found, "_is_protocol", False):
                continue
            members = vars(found) if isinstance(found, type) else {}
            if takes_any(found):
                yield f"{portion}.{name}"
            for member, method in members.items():
                if member[0] != "_" and inspect.isfunction(method) and takes_any(method):
                    yield f"{portion}.{name}.{member}"


CALLS: dict[str, Callable[..., Any]] = {
    "actors.Database": lambda **options: Database("nowhere", **options),
    "actors.open_greenroom": lambda **options: open_greenroom("nowhere", **options),
    "runtime.open_runtime": lambda **options: open_runtime("nowhere", actors=[], **options),
    "runtime.open_shared_runtime": lambda **options: open_shared_runtime(
        "nowhere", principal_type=Principal, label_type=str, actors=[], **options
    ),
    "testing.mcp_server": lambda **options: mcp_server(lambda _: None, **options),  # type: ignore[arg-type, return-value]
    "testing.mcp_client": lambda **options: mcp_client(lambda _: None, **options),  # type: ignore[arg-type, return-value]
}
MISTAKES = {
    "actors.Database": ("embeder", "embedder"),
    "actors.open_greenroom": ("encryption_keys", "encryption_key"),
    "runtime.open_runtime": ("comitter", "committer"),
    "runtime.open_shared_runtime": ("principle_type", "principal_type"),
    "testing.mcp_server": ("request_time_out", "request_timeout"),
    "testing.mcp_client": ("limit", "limits"),
}
OTHER_TAKERS = {
    "runtime.Refusal": "the details of an answer, which are its own",
    "actors.BlockingDatabase": "a type alone; what is opened is a Database",
    **dict.fromkeys(
        (f"actors.ServiceResult.{name}" for name in ("clear", "pop", "popitem", "setdefault", "update")),
        "refused whatever is given",
    ),
    "actors.ServiceError": "likewise",
    "testing.McpClient.call": "the arguments of a tool, which the server checks",
    "testing.McpClient.send_call": "what a request has as _meta",
    "adapters.mem0.AsyncMemory.get_all": "refused in mem0's words; see below",
    "adapters.mem0.AsyncMemory.search": "likewise",
    "adapters.mem0.Memory.get_all": "likewise",
    "adapters.mem0.Memory.search": "likewise",
}


@pytest.mark.promise("service.options")
def test_it_is_known_of_whatever_takes_any_keyword_how_it_refuses_one() -> None:
    assert {*takers()} - {*OTHER_TAKERS} == {*CALLS}


@pytest.mark.promise("service.options")
@pytest.mark.parametrize("door", CALLS)
def test_an_unknown_option_is_refused_at_the_call_with_the_one_that_was_meant(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mistake, meant = MISTAKES[door]
    with pytest.raises(TypeError, match=f"{mistake!r}; did you mean {meant!r}") as caught:
        CALLS[door](**{mistake: None})
    assert door.endswith(f".{str(caught.value).partition('()')[0]}")
    with pytest.raises(TypeError, match=r"'nonsense'$"):
        CALLS[door](nonsense=3)
    for name in ("options", "config"):  # as Python calls what is left
        if name not in RuntimeConfig.__optional_keys__ or door.startswith("testing"):
            with pytest.raises(TypeError, match=repr(name)):
                CALLS[door](**{name: {}})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.quick
@pytest.mark.promise("service.options")
def test_a_server_in_a_test_takes_every_option_that_a_server_has() -> None:
    parameters = inspect.signature(McpServer).parameters.values()
    assert {each.name for each in parameters if each.kind is each.KEYWORD_ONLY} == (
        ServerOptions.__required_keys__ | ServerOptions.__optional_keys__
    )


@pytest.mark.promise("service.options")
@pytest.mark.parametrize("method", ["get_all", "search"])
def test_an_adapter_that_takes_others_refuses_them_likewise(method: str, tmp_path: Path) -> None:
    from greenroom.adapters.mem0 import Memory  # noqa: PLC0415 - an extra

    with Database(tmp_path / "store", embedder="none") as database:
        words = ["words"] if method == "search" else []
        with pytest.raises(TypeError, match=r"'topk'; did you mean 'top_k'"):
            getattr(Memory(database), method)(*words, filters={"user_id": "u"}, topk=3)


SNIPPET = """
from greenroom.actors import Database, open_greenroom
from greenroom.adapters.mem0 import Memory
from greenroom.runtime import open_runtime
from greenroom.testing import mcp_client
from greenroom.transports import AgentPort

def agent_for(name: str) -> AgentPort:
    raise NotImplementedError

with Database("a", embedder="none", encryption_key=b"", max_size="1GiB", content_limit=3) as database:
    Memory(database).search("x", top_k=3)
open_greenroom("b", durability="process", language="english", audit_days=3)
open_runtime("c", actors=[])
mcp_client(agent_for, limits=None, debounce=1.0)

Database("a", embeder="none")  # wrong
Database("a", durability="sync")  # wrong
Database("a", encryption_key=None)  # wrong
Database("a", max_size=1.5)  # wrong
open_greenroom("b", nonsense=3)  # wrong
open_runtime("c", actors=[], option=None)  # wrong
mcp_client(agent_for, limit=None)  # wrong
Memory(database).search("x", topk=3)  # wrong
"""


@pytest.mark.slow
@pytest.mark.promise("service.options")
def test_mypy_sees_an_option_that_is_not_there_and_no_fault_in_one_that_is(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--no-pretty", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    wrong = [number for number, line in enumerate(SNIPPET.splitlines(), 1) if "# wrong" in line]
    assert [int(line.split(":")[1]) for line in errors] == wrong, done.stdout + done.stderr


# -- each setting has its name

OF_A_SERVER = "what a server listens on, whom it lets in, and how much it takes of each"
OF_THE_CALLER = "who asks: a Principal"
OF_CLIENTS = "which tools clients of MCP are listed"
OF_AN_AGENT = {
    "timezone": "timezone",
    "trust_signer": "passports",
    "documents": "reach",
    "workspace": "reach",
    "read_secrets": "reach",
    "no_index": "workspaces",
    "learn_workflows": "learns_workflows",
    "prompts": "prompts",
    "savings_baseline": "savings",
    "token_price": "savings",
}
"""Settings of single agents, and the arguments of `Agent` that say the same."""
OTHERWISE = {
    "data": "the first argument",
    "log_level": "Python's logging, under the name greenroom",
    "log_format": "a format of the command's own log",
    "wait": "whether a command waits for an owner that does not answer",
    **dict.fromkeys(("agent", "agent_type", "user", "project"), OF_THE_CALLER),
    **OF_AN_AGENT,
    **dict.fromkeys(
        (
            *("ws", "http", "http_session_idle", "stdio", "tls_cert", "tls_key", "require_key"),
            *("behind_proxy", "base_url", "oauth_issuer", "oauth_resource", "rate_limit", "rate_burst"),
            *("trusted_proxy", "allow_origin", "max_connections", "max_in_flight", "max_frame"),
            *("ping_interval", "request_timeout", "debounce"),
        ),
        OF_A_SERVER,
    ),
    "tools": OF_CLIENTS,
    "schemas": OF_CLIENTS,
    **dict.fromkeys(("run_hooks", "hooks_exclude"), "what the command `greenroom hook` does"),
    "worktrees_apart": "what a hook or a server of clients says of a folder",
}
"""Settings that no option of Python stands for, and what does."""

IN_PYTHON_TOO = {
    "secrets": (),
    "encryption_key": ("encryption", "codec"),
    "encrypt": ("encryption", "codec"),
    "durability": ("options",),
    "max_size": ("options",),
    "min_free": ("options",),
    "content_limit": (),
    "conversation_tiers": (),
    "reviewed_only": (),
    "embedder": (),
    "models": (),
    "embedder_model": (),
    "language": ("languages",),
    "audit_days": (),
    "audit_size": ("audit_bytes",),
}
"""Settings that are options of Python under the same name, and older options that decide the same."""

ONLY_IN_PYTHON = {
    "new_secret",
    "actors",
    "indexes",
    "queries",
    "extractor",
    "may",
    "groups",
    "clock",
    "committer",
}
"""Python objects, which no text can name; and how far a process may go, which a command decides."""

SECRETS_OF_SERVERS = {
    "API_KEY_VARIABLE": "a client's own",
    "PASSPORT_SECRET_VARIABLE": "of PassportOptions, an argument of Agent",
    "PASSPHRASE_VARIABLE": "an argument of the requests that need one",
    "CONFIG_VARIABLE": "where settings are, and none",
}
OPTIONS = GreenroomOptions.__required_keys__ | GreenroomOptions.__optional_keys__


@pytest.mark.quick
@pytest.mark.promise("service.settings")
def test_every_setting_is_an_option_by_its_own_name_or_it_is_known_why_not() -> None:
    assert {*IN_PYTHON_TOO} | {*OTHERWISE} == {*all_settings()}
    assert {*IN_PYTHON_TOO}.isdisjoint(OTHERWISE)
    assert {*OF_AN_AGENT.values()} <= {*inspect.signature(Agent).parameters}
    older = {name for names in IN_PYTHON_TOO.values() for name in names}
    assert {*IN_PYTHON_TOO} | older | ONLY_IN_PYTHON | {"embedder_key"} == OPTIONS
    assert CommonConfig.__optional_keys__ <= OPTIONS
    variables = {name for name in vars(declared) if name.endswith("_VARIABLE")}
    assert variables - {*SECRETS_OF_SERVERS} == {"EMBEDDER_KEY_VARIABLE"}
    assert declared.EMBEDDER_KEY_VARIABLE == PREFIX + "EMBEDDER_KEY" == variable("embedder_key")


GIVEN: dict[str, Any] = {
    "encryption_key": KEY,
    "encrypt": True,
    "encryption": Encryption(lambda: KEY),
    "codec": PlainCodec(),
    "durability": "process",
    "max_size": "1GiB",
    "min_free": 0,
    "options": RuntimeOptions(),
    "language": "german",
    "languages": ["german"],
    "audit_size": "1MiB",
    "audit_bytes": None,
}


@pytest.mark.promise("service.settings")
@pytest.mark.parametrize(
    ("name", "older"), [(name, older) for name, others in IN_PYTHON_TOO.items() for older in others]
)
def test_a_setting_and_the_option_that_decides_the_same_are_not_both_taken(
    name: str, older: str, tmp_path: Path
) -> None:
    more = {"encryption_key": KEY} if (name, older) == ("encrypt", "codec") else {}
    with pytest.raises(TypeError, match=f"'{name}' and '{older}'|'encryption_key' and '{older}'"):
        Database(tmp_path / "store", **{name: GIVEN[name], older: GIVEN[older], **more})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("service.settings")
@pytest.mark.parametrize("options", [{"embedder_model": "m"}, {"embedder_key": "k"}, {"models": "m"}])
def test_parts_of_an_embedder_are_not_taken_beside_a_whole_one(options: Any) -> None:
    with pytest.raises(TypeError, match=f"{next(iter(options))!r} beside an EmbedderChoice"):
        Database("nowhere", embedder=EmbedderChoice(kind="auto"), **options)


@pytest.mark.promise("service.settings")
def test_what_settings_say_in_text_and_python_in_its_types_comes_to_the_same() -> None:
    def options_of(**given: Any) -> RuntimeOptions | None:
        return check_greenroom_options("Database", given).common.get("options")  # type: ignore[arg-type]

    for name, texts in {"max_size": ("1GiB", "64MB", 1 << 30), "min_free": ("0", "1 GiB", 5)}.items():
        for text in texts:
            assert options_of(**{name: text}) == RuntimeOptions(**{name: all_settings()[name].reader(text)})
    assert options_of(durability="process", min_free=7) == RuntimeOptions(durability="process", min_free=7)
    assert options_of() is None
    found = check_greenroom_options(
        "Database",
        {
            "audit_size": "2MiB",
            "audit_days": 7,
            "conversation_tiers": [1, 2, 3],
            "language": "English, german",
            "embedder": "http://127.0.0.1:1/v1",
            "embedder_model": "m",
            "embedder_key": "k",
            "models": "/m",
            "secrets": "/s",
        },
    )
    assert (found.audit_bytes, found.audit_days, found.tiers) == (2 << 20, 7, TierSizes(1, 2, 3))
    assert (found.languages, found.secrets) == (("english", "german"), Path("/s"))
    expected = EmbedderChoice(kind="http", place="http://127.0.0.1:1/v1", model="m", key="k")
    assert found.embedder == expected
    assert check_greenroom_options("x", {"models": "/m"}).embedder.models == Path("/m")


@pytest.mark.promise("service.settings")
def test_settings_by_their_names_are_in_force(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_greenroom(tmp_path / "a", embedder="none", max_size="4MiB", min_free=0) as runtime:
            assert runtime.statistics().store.map_bytes == 4 << 20
        with pytest.raises(EmbedderError, match="nowhere"):
            async with open_greenroom(tmp_path / "b", embedder="minilm", models=tmp_path / "nowhere"):
                pass

    trio.run(main)
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


@pytest.mark.promise("service.settings")
@pytest.mark.parametrize(
    ("options", "kind", "allowed"),
    [
        ({"durability": "sync"}, ValueError, "power or process"),
        ({"options": RuntimeOptions, "durability": 3}, TypeError, "both"),
        ({"durability": None}, ValueError, "power or process"),
        ({"max_size": "lots"}, ValueError, "from 1MiB to 16TiB"),
        ({"max_size": 1}, ValueError, "from 1MiB to 16TiB"),
        ({"max_size": "64 parsecs"}, ValueError, "from 1MiB to 16TiB"),
        ({"max_size": 1e9}, TypeError, "from 1MiB to 16TiB"),
        ({"max_size": True}, TypeError, "from 1MiB to 16TiB"),
        ({"min_free": -1}, ValueError, "from 0 to 16TiB"),
        ({"audit_size": None}, TypeError, "from 1MiB to 16TiB"),
        ({"audit_bytes": 0}, ValueError, "at least 1"),
        ({"audit_days": "90"}, TypeError, "at least 1"),
        ({"content_limit": 1 << 21}, ValueError, "between 1 and 1048576"),
        ({"conversation_tiers": "20,80,200"}, TypeError, "three whole numbers"),
        ({"conversation_tiers": (20, 80)}, ValueError, "three numbers"),
        ({"conversation_tiers": (20, 80, "x")}, TypeError, "whole number"),
        ({"language": 3}, TypeError, "'english'"),
        ({"languages": [None]}, TypeError, "'english'"),
        ({"embedder": None}, TypeError, "EmbedderChoice"),
        ({"embedder": "minilmm"}, ValueError, "minilm"),
        ({"embedder": "http://127.0.0.1:1"}, ValueError, "embedder_model"),
        ({"embedder_key": b"k"}, TypeError, "a text"),
        ({"models": 3}, TypeError, "path of a folder"),
        ({"secrets": 3}, TypeError, "path of a folder"),
        ({"may": "destroy"}, ValueError, "create, own or attach"),
        ({"encrypt": "no", "encryption_key": KEY}, TypeError, "True or False"),
        ({"encrypt": True}, ValueError, "encryption_key"),
        ({"encrypt": False, "encryption_key": KEY}, ValueError, "leave one of them out"),
        ({"encryption_key": None}, TypeError, "32 bytes are allowed"),
        ({"encryption_key": b""}, ValueError, "32 bytes are allowed"),
        ({"encryption_key": KEY.hex().encode()}, ValueError, "32 bytes are allowed"),
        ({"encryption_key": ""}, ValueError, "file:PATH, env:NAME or keyring:NAME"),
        ({"encryption_key": KEY.hex()}, ValueError, "file:PATH, env:NAME or keyring:NAME"),
        ({"encryption_key": Path("key")}, TypeError, "file:PATH, env:NAME or keyring:NAME"),
    ],
)
def test_a_wrong_value_is_refused_at_the_call_with_what_is_allowed(
    options: Any, kind: type[Exception], allowed: str, tmp_path: Path
) -> None:
    for opening in (Database, open_greenroom):
        with pytest.raises(kind) as caught:
            opening(tmp_path / "store", **options)
        assert allowed in str(caught.value)
        assert KEY.hex() not in str(caught.value)
        assert not {*options}.isdisjoint(str(caught.value).replace("'", " ").split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("store.durability")
def test_options_of_a_runtime_know_no_other_durability() -> None:
    with pytest.raises(ValueError, match="power or process"):
        RuntimeOptions(durability="Power")  # type: ignore[arg-type]


# -- an encrypted store


def write(folder: Path, **options: Any) -> None:
    with Database(folder, embedder="none", **options) as database:
        event = Event(event_type="message", actor="user", content={"text": TEXT})
        database.call(lambda: database.sessions.create_session("S", app_name="a", user_id="u"))
        database.call(lambda: database.sessions.append_event("S", event))


def read(folder: Path, **options: Any) -> Any:
    with Database(folder, embedder="none", **options) as database:
        session = database.call(database.sessions.get_session, "S")
        assert session is not None
        return session.events[0].content["text"]


def is_in_the_clear(folder: Path) -> bool:
    return any(TEXT.encode() in each.read_bytes() for each in folder.rglob("*") if each.is_file())


@pytest.fixture(params=["bytes", "file", "env"])
def named(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the key as it can be given."""
    (tmp_path / "key").touch(mode=0o600)
    (tmp_path / "key").write_text(KEY.hex())
    monkeypatch.setenv("STORE_KEY", KEY.hex())
    return {"bytes": KEY, "file": f"file:{tmp_path / 'key'}", "env": "env:STORE_KEY"}[request.param]


@pytest.mark.promise("encryption.python")
def test_a_key_in_python_makes_and_opens_an_encrypted_store(named: Any, tmp_path: Path) -> None:
    write(tmp_path / "store", encryption_key=named)
    assert not is_in_the_clear(tmp_path / "store")
    same: dict[str, Any] = {"encryption": Encryption(lambda: KEY)}
    for options in (same, {"encryption_key": named, "encrypt": True}):
        assert read(tmp_path / "store", **options) == TEXT
    with pytest.raises(StoreKeyError, match=r"no key was given.*encryption_key"):
        read(tmp_path / "store")
    with pytest.raises(StoreKeyError, match=r"another key.*encryption_key"):
        read(tmp_path / "store", encryption_key=OTHER)
    assert read(tmp_path / "store", encryption_key=named) == TEXT


@pytest.mark.promise("encryption.python")
def test_a_store_in_the_clear_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    write(tmp_path / "store")
    assert is_in_the_clear(tmp_path / "store")
    with pytest.raises(StoreKeyError, match=r"is not encrypted, .*encryption_key.*greenroom encrypt"):
        write(tmp_path / "store", encryption_key=KEY)
    assert read(tmp_path / "store") == TEXT


@pytest.mark.promise("encryption.python")
def test_a_key_that_is_not_there_leaves_no_store_in_the_clear(tmp_path: Path) -> None:
    with pytest.raises(StoreKeyError, match="cannot be read"):
        write(tmp_path / "store", encryption_key=f"file:{tmp_path / 'none'}")
    with pytest.raises(StoreKeyError, match="is not set"):
        write(tmp_path / "store", encryption_key="env:NO_SUCH_VARIABLE")
    assert not is_in_the_clear(tmp_path / "store")
    write(tmp_path / "store", encryption_key=KEY)
    assert not is_in_the_clear(tmp_path / "store")


@pytest.mark.promise("encryption.python")
@pytest.mark.parametrize("key", [b"", KEY.hex().encode()])
def test_no_store_is_made_with_a_key_of_another_length(key: bytes, tmp_path: Path) -> None:
    with pytest.raises(StoreKeyError, match="32 bytes"):
        write(tmp_path / "store", encryption=Encryption(lambda: key, required=True))
    write(tmp_path / "store", encryption_key=KEY)
    assert not is_in_the_clear(tmp_path / "store")


@pytest.mark.promise("encryption.python")
def test_a_key_file_is_where_it_was_when_the_database_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").touch(mode=0o600)
    (tmp_path / "key").write_text(KEY.hex())
    monkeypatch.chdir(tmp_path)
    database = Database("store", embedder="none", encryption_key="file:key")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with database:
        pass


@pytest.mark.quick
@pytest.mark.promise("encryption.python", "encryption.shared")
@pytest.mark.parametrize(
    ("owners", "wrong", "sentence"),
    [({}, KEY, "is not encrypted"), ({"encryption_key": KEY}, OTHER, "another key")],
    ids=["in the clear", "another key"],
)
def test_who_attaches_with_a_key_is_refused_by_a_store_that_has_none_or_another(
    owners: dict[str, Any], wrong: bytes, sentence: str, tmp_path: Path
) -> None:
    with Database(tmp_path / "store", embedder="none", **owners) as owner:
        with pytest.raises(StoreKeyError, match=sentence):
            write(tmp_path / "store", encryption_key=wrong)
        write(tmp_path / "store", **owners)  # attached
        assert owner.call(owner.sessions.get_session, "S") is not None


@pytest.mark.promise("encryption.python")
async def test_another_codec_is_not_taken_beside_a_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="codec and encryption"):
        async with open_runtime(
            tmp_path / "store", actors=[], codec=PlainCodec(), encryption=Encryption(lambda: KEY)
        ):
            pass
    assert not (tmp_path / "store").exists()
