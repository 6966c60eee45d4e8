"""Settings: which source wins, what values mean, and what a mistake is answered with."""

from __future__ import annotations

import dataclasses
import json
import os
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.core.auth.tool_profiles import SCHEMA_FORMS, TOOL_PROFILES
from greenroom.actors.core.base.byte_sizes import format_size
from greenroom.actors.sessions.conversation_tiers import TierSizes
from greenroom.runtime import RuntimeOptions
from greenroom.transports.base.config.load import CONFIG_LIMIT, SettingsError, Source, resolve
from greenroom.transports.base.config.parsers import KeyLocation, Model, boolean, size
from greenroom.transports.base.config.settings import Settings, all_settings, flag, variable
from greenroom.transports.base.net.addresses import HostPort

NOWHERE = Path("/nowhere/greenroom/config.toml")

names = st.from_regex(r"[A-Za-z0-9_.-]{1,100}", fullmatch=True)
addresses = st.builds(
    HostPort,
    st.sampled_from(["127.0.0.1", "127.1.2.3", "::1", "localhost", "a.localhost"]),
    st.integers(0, 65535),
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "data": names.map(lambda name: Path(os.path.normpath("/somewhere/x" + name))),
    "secrets": names.map(lambda name: Path(os.path.normpath("/somewhere/x" + name))),
    "encryption_key": st.builds(KeyLocation, st.sampled_from(["env", "keyring"]), names)
    | names.map(lambda name: KeyLocation("file", os.path.normpath("/somewhere/x" + name))),
    "encrypt": st.booleans(),
    "agent": names,
    "agent_type": names,
    "user": st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=128),
    "project": st.lists(names, min_size=1, max_size=4, unique=True).map(tuple),
    "ws": addresses,
    "http": addresses,
    "http_session_idle": st.floats(1, 30 * 86_400).map(lambda seconds: float(f"{seconds:g}")),
    "stdio": st.booleans(),
    "tls_cert": names.map(lambda name: Path(os.path.normpath("/somewhere/x" + name))),
    "tls_key": names.map(lambda name: Path(os.path.normpath("/somewhere/x" + name))),
    "allow_origin": st.lists(
        st.from_regex(r"https?://[a-z]{1,10}(:[0-9]{1,4})?", fullmatch=True), min_size=1, unique=True
    ).map(tuple),
    "require_key": st.booleans(),
    "behind_proxy": st.booleans(),
    "oauth_issuer": st.from_regex(r"https://[a-z]{1,10}\.example(/[a-z]{1,10})?", fullmatch=True),
    "oauth_resource": st.from_regex(r"https://[a-z]{1,10}\.example(/[a-z]{1,10})?", fullmatch=True),
    "rate_limit": st.integers(1, 10_000_000),
    "rate_burst": st.integers(1, 1_000_000),
    "trusted_proxy": st.lists(
        st.ip_addresses().map(lambda each: str(ip_network(each))), min_size=1, unique=True
    ).map(tuple),
    "max_connections": st.integers(1, 1_000_000),
    "base_url": st.sampled_from(["https://greenroom.example", "http://127.0.0.1:8443/memory"]),
    "max_in_flight": st.integers(1, 1_000_000),
    "max_frame": st.integers(4096, 1 << 30),
    "ping_interval": st.floats(0.1, 86_400).map(lambda seconds: float(f"{seconds:g}")),
    "durability": st.sampled_from(["power", "process"]),
    "max_size": st.integers(1 << 20, 1 << 44),
    "min_free": st.integers(0, 1 << 44),
    "request_timeout": st.floats(0.01, 86_400).map(lambda seconds: float(f"{seconds:g}")),
    "debounce": st.floats(0, 3_600).map(lambda seconds: float(f"{seconds:g}")),
    "content_limit": st.integers(1, 1 << 20),
    "conversation_tiers": st.builds(
        TierSizes, st.integers(1, 200), st.integers(0, 1_000), st.integers(0, 2_000)
    ),
    "documents": st.lists(names.map(lambda name: f"/somewhere/d{name}"), min_size=1, unique=True).map(tuple),
    "workspace": st.lists(names.map(lambda name: f"/somewhere/w{name}"), min_size=1, unique=True).map(tuple),
    "read_secrets": st.lists(st.sampled_from([".env", "*.pem", "conf/.env.*"]), min_size=1, unique=True).map(
        tuple
    ),
    "worktrees_apart": st.booleans(),
    "no_index": st.booleans(),
    "run_hooks": st.sampled_from(["on", "off"]),
    "hooks_exclude": st.lists(names, min_size=1, unique=True).map(tuple),
    "reviewed_only": st.booleans(),
    "learn_workflows": st.booleans(),
    "embedder": st.sampled_from(
        [
            "auto",
            "minilm",
            "python:mine:Mine",
            "none",
            "http://127.0.0.1:11434/v1",
            "https:https://a.example/v1",
        ]
    )
    | names.map(lambda name: Model(Path(os.path.normpath("/somewhere/x" + name)))),
    "prompts": names.map(lambda name: Path(os.path.normpath("/somewhere/p" + name))),
    "models": names.map(lambda name: Path(os.path.normpath("/somewhere/m" + name))),
    "embedder_model": names,
    "language": st.lists(st.sampled_from(["english", "german", "russian"]), min_size=1, unique=True).map(
        tuple
    ),
    "timezone": st.sampled_from(["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"]),
    "trust_signer": st.lists(st.sampled_from([f"ed25519:{letter * 43}" for letter in "A-z"]), unique=True)
    .filter(bool)
    .map(tuple),
    "tools": st.lists(st.sampled_from(TOOL_PROFILES), min_size=1, unique=True).map(tuple),
    "schemas": st.sampled_from(SCHEMA_FORMS),
    "savings_baseline": st.sampled_from([("read_file=none",), ("outline=none", "read_file=whole_file")]),
    "token_price": st.floats(0, 1_000_000).map(lambda value: float(f"{value:g}")),
    "audit_days": st.integers(1, 36_500),
    "audit_size": st.integers(1 << 20, 16 << 40),
    "wait": st.booleans(),
    "log_level": st.sampled_from(["debug", "info", "warning", "error"]),
    "log_format": st.sampled_from(["text", "json"]),
}
some_settings = st.fixed_dictionaries({}, optional=VALUES)


def as_text(key: str, value: Any) -> str:
    return all_settings()[key].reader.show(value)


def as_flag(key: str, value: Any) -> object:
    return list(value) if all_settings()[key].reader.repeatable else as_text(key, value)


def as_toml(key: str, value: Any) -> str:
    if isinstance(value, tuple):
        return f"{key} = {json.dumps(list(value))}"
    return (
        f"{key} = {json.dumps(value if isinstance(value, int | float) else str(value), ensure_ascii=False)}"
    )


def written(folder: Path, text: str | bytes) -> dict[str, str]:
    file = folder / "config.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return {"GREENROOM_CONFIG": str(file)}


def resolved(
    flags: dict[str, object] | None = None,
    environment: dict[str, str] | None = None,
    *,
    default: Path = NOWHERE,
) -> Any:
    return resolve(flags or {}, environment or {}, default_file=lambda: default)


def sentence(flags: dict[str, object] | None = None, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        resolved(flags, environment)
    return str(caught.value)


def test_every_setting_has_test_values() -> None:
    assert set(VALUES) == set(all_settings()) == {field.name for field in dataclasses.fields(Settings)}


@pytest.mark.promise("cli.settings")
@given(flags=some_settings, environment=some_settings, document=some_settings)
def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(
    tmp_path_factory: pytest.TempPathFactory, flags: Any, environment: Any, document: Any
) -> None:
    folder = tmp_path_factory.getbasetemp()
    variables = written(folder, "\n".join(as_toml(key, value) for key, value in document.items()))
    variables |= {variable(key): as_text(key, value) for key, value in environment.items()}
    found = resolved({key: as_flag(key, value) for key, value in flags.items()}, variables)
    defaults = Settings()
    for key in all_settings():
        value = getattr(found.settings, key)
        if key in flags:
            expected, source = flags[key], Source("flag", flag(key))
        elif key in environment:
            expected, source = environment[key], Source("env", variable(key))
        elif key in document:
            expected, source = document[key], Source("file", variables["GREENROOM_CONFIG"])
        else:
            expected, source = getattr(defaults, key), Source("default")
        assert (key, value, found.sources[key]) == (key, expected, source)
    assert found.config == Path(variables["GREENROOM_CONFIG"])
    assert found.strangers == ()


def test_without_any_source_the_runtimes_own_defaults_are_in_force() -> None:
    found = resolved()
    options = RuntimeOptions()
    for key in ("durability", "max_size", "min_free"):
        assert getattr(found.settings, key) == getattr(options, key)
    assert found.config is None
    assert {source.kind for source in found.sources.values()} == {"default"}


# -- sizes ------------------------------------------------------------------


@given(st.integers(0, 1 << 60))
def test_a_size_is_read_as_it_is_shown(number: int) -> None:
    assert size(0, 1 << 60)(format_size(number)) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1234567", 1_234_567),
        ("64MB", 64_000_000),
        ("64 mb", 64_000_000),
        ("256GiB", 256 << 30),
        ("1.5GiB", 3 << 29),
        ("0.000001TB", 1_000_000),
        ("12kB", 12_000),
        ("7B", 7),
        ("16777215.99999999999999999999TiB", 18446744073709551615),
    ],
)
def test_sizes(text: str, number: int) -> None:
    assert size(0, 1 << 64)(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "12 parsecs",
        "-1",
        "+5MB",
        "1e9",
        "GiB",
        "1,5GB",
        "0x10",
        "٣MB",
        "1MBB",
        "nan",
        "1 2",
        "1.GB",
        "9" * 5_000,
    ],
)
def test_what_is_no_size_is_refused_with_what_is(text: str) -> None:
    said = sentence({"max_size": text})
    assert said.startswith("--max-size is ")
    assert "64MB or 256GiB, from 1MiB to 16TiB" in said
    assert len(said) < 300


# -- mistakes name source, value and what is allowed --------------------------


@pytest.mark.parametrize(
    ("key", "text", "allowed"),
    [
        ("agent", "a b", "1 to 100 of the characters A-Z a-z 0-9 _ . - are allowed"),
        ("agent", "a" * 101, "1 to 100"),
        ("agent_type", "ü", "1 to 100"),
        ("user", "a\nb", "1 to 128 printable characters are allowed"),
        ("project", "good,ba/d", "1 to 128"),
        ("durability", "POWER", "power or process is allowed"),
        ("request_timeout", "nan", "a number of seconds from 0.01 to 86,400 is allowed"),
        ("request_timeout", "0", "from 0.01"),
        ("request_timeout", "1e400", "from 0.01"),
        ("content_limit", "1048577", "a whole number of characters from 1 to 1,048,576 is allowed"),
        ("content_limit", "1_000", "whole number"),
        ("content_limit", "9" * 5_000, "whole number"),
        (
            "embedder",
            "onnx",
            "auto, minilm, static, none, onnx:DIR, http:URL or python:MODULE:CLASS is allowed",
        ),
        ("embedder", "onnx:", "the path of a folder is allowed"),
        ("embedder", "http:", "static, none, onnx:DIR, http:URL"),
        ("embedder", "python:mine", "http:URL or python:MODULE:CLASS"),
        ("audit_days", "2.5", "a whole number of days from 1 to 36,500 is allowed"),
        ("timezone", "Mars/Olympus", "the name of a time zone is allowed, such as Europe/Berlin or UTC"),
        ("timezone", "../etc/passwd", "the name of a time zone is allowed, such as Europe/Berlin or UTC"),
        ("trust_signer", "ed25519:short", "a signer's public key is allowed: ed25519: and 43 characters"),
        ("trust_signer", ["rsa:" + "A" * 43], "a signer's public key is allowed"),
        (
            "tools",
            "core,unheard",
            "knowledge, code, shared-context, services, memory-search or universal-memory is allowed",
        ),
        ("schemas", "strict", "plain or nullable is allowed"),
        ("log_level", "loud", "debug, info, warning or error is allowed"),
        ("data", "~nobody-of-that-name/x", "the path of a folder is allowed"),
        ("data", "a\0b", "the path of a folder is allowed"),
    ],
)
def test_a_bad_value_is_named_with_its_source_and_what_is_allowed(
    tmp_path: Path, key: str, text: str, allowed: str
) -> None:
    flags: dict[str, object] = {key: [text] if key == "project" and "," not in text else text}
    from_flag, from_env = sentence(flags), sentence(None, {variable(key): text})
    in_file = written(tmp_path, f"{key} = {json.dumps(text)}")
    from_file = sentence(None, in_file)
    assert from_flag.startswith(f"{flag(key)} is ")
    assert from_env.startswith(f"{variable(key)} is ")
    assert from_file.startswith(f"{key} in {in_file['GREENROOM_CONFIG']} is ")
    for said in (from_flag, from_env, from_file):
        assert allowed in said
        assert repr(text)[:60] in said or repr([text])[:60] in said
        assert "\n" not in said


@pytest.mark.parametrize("raw", ["true", "[1]", "{a = 1}", "2026-01-01", "nan", "inf", '["a", 3]'])
@pytest.mark.parametrize("key", list(VALUES))
def test_a_wrong_toml_type_is_refused_and_nothing_worse(tmp_path: Path, key: str, raw: str) -> None:
    if all_settings()[key].reader is boolean and raw == "true":
        raw = "1"  # the settings that are yes or no
    assert f"{key} in " in sentence(None, written(tmp_path, f"{key} = {raw}"))


@pytest.mark.parametrize(
    ("key", "meant"), [("agent-type", "agent_type"), ("maxsize", "max_size"), ("Data", "data")]
)
def test_an_unknown_key_is_an_error_with_the_nearest_one(tmp_path: Path, key: str, meant: str) -> None:
    said = sentence(None, written(tmp_path, f"{key} = 1"))
    assert said.endswith(f"there is no setting '{key}'; did you mean '{meant}'?")


def test_an_unknown_key_with_nothing_near_is_an_error_too(tmp_path: Path) -> None:
    assert sentence(None, written(tmp_path, "[zzz]\na = 1")).endswith("there is no setting 'zzz'")


# -- the file -----------------------------------------------------------------


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.toml")
    assert sentence({"config": missing}) == f"--config {missing!r} cannot be read: No such file or directory"
    assert sentence(None, {"GREENROOM_CONFIG": missing}).startswith(f"GREENROOM_CONFIG {missing!r} cannot")
    assert "cannot be read: Is a directory" in sentence({"config": str(tmp_path)})
    assert sentence({"config": ""}).startswith("--config is ''")


def test_the_flag_names_the_file_before_the_variable(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text('agent = "from-other"')
    found = resolved({"config": str(file)}, {"GREENROOM_CONFIG": "/nowhere/at/all"})
    assert (found.settings.agent, found.config) == ("from-other", file)


def test_the_platforms_file_is_read_when_it_is_there(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    assert resolved(default=file).config is None
    file.write_text("audit_days = 7")
    found = resolved(default=file)
    assert (found.settings.audit_days, found.sources["audit_days"]) == (7, Source("file", str(file)))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"agent = ", "is not TOML"),
        (b"\xff\xfe", "is not TOML"),
        (b"agent = 'a'\nagent = 'b'", "is not TOML"),
        (b"a = " + b"[" * 100_000, "is not TOML"),
        (b"#" * (CONFIG_LIMIT + 1), "is larger than"),
    ],
)
def test_a_file_that_is_no_toml_is_one_sentence(tmp_path: Path, content: bytes, reason: str) -> None:
    said = sentence(None, written(tmp_path, content))
    assert reason in said
    assert "\n" not in said


def test_a_relative_model_in_the_file_is_beside_the_file(tmp_path: Path) -> None:
    found = resolved({}, written(tmp_path, 'embedder = "onnx:models/mini"'))
    assert found.settings.embedder == Model(tmp_path / "models" / "mini")
    assert str(found.settings.embedder) == f"onnx:{tmp_path}/models/mini"
    found = resolved({"embedder": "onnx:mini"})
    assert found.settings.embedder == Model(Path.cwd() / "mini")


def test_the_key_of_an_endpoint_is_no_setting_and_no_stranger() -> None:
    assert resolved({}, {"GREENROOM_EMBEDDER_KEY": "secret"}).strangers == ()
    assert "embedder_key" not in all_settings()


def test_a_relative_folder_in_the_file_is_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    found = resolved({}, written(tmp_path, 'data = "../store"'))
    assert found.settings.data == tmp_path.parent / "store"
    assert resolved({"data": "store"}).settings.data == Path("/store")


def test_home_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert resolved({}, {"GREENROOM_DATA": "~/store"}).settings.data == Path("/home/someone/store")


# -- the environment ------------------------------------------------------------


def test_an_empty_variable_counts_as_absent() -> None:
    environment = {variable(key): "" for key in all_settings()} | {"GREENROOM_CONFIG": ""}
    found = resolved({}, environment)
    assert {source.kind for source in found.sources.values()} == {"default"}


def test_a_misspelt_variable_is_reported() -> None:
    assert resolved({}, {"GREENROOM_MAXSIZE": "1", "OTHER": "2"}).strangers == ("GREENROOM_MAXSIZE",)


def test_lists_are_split_and_repeats_are_taken_once() -> None:
    assert resolved({}, {"GREENROOM_PROJECT": "a, b,a"}).settings.project == ("a", "b")
    assert resolved({"project": ["c"]}, {"GREENROOM_PROJECT": "a,b"}).settings.project == ("c",)
