"""What is handed out: wheel, sdist, MCP bundle, entry in the registry, manual page, image and unit."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from distribution.release import PROJECT, formula, make_bundle, release
from hatchling.build import build_wheel
from jsonschema import (  # type: ignore[import-untyped]  # mcp brings it without types
    Draft202012Validator,
    FormatChecker,
)
from packaging.requirements import Requirement
from packaging.tags import cpython_tags
from support.archives import unpack
from support.commands import serving

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.settings import all_settings, flag, variable
from greenroom.transports.ops.cli.catalogue import COMMANDS
from greenroom.transports.ops.cli.parsing import make_parser
from hatch_build import dependencies

ROOT = Path(__file__).parents[2]
HERE = ROOT / "transports" / "distribution"
SCHEMAS = ROOT / "tests" / "data" / "schemas"
PORTIONS = ("runtime", "actors", "transports", "adapters", "testing")
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both files of this tree, and the wheel that somebody makes of the sdist elsewhere, later."""
    folder = tmp_path_factory.mktemp("distribution")
    version = PROJECT["version"]
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SOURCE_DATE_EPOCH", raising=False)
        patch.chdir(ROOT)
        release(folder, "com.example")
        sdist = folder / f"greenroom-{version}.tar.gz"
        with tarfile.open(sdist) as archive:
            unpack(archive, folder / "elsewhere")
        (unpacked,) = (folder / "elsewhere").iterdir()
        for path in [each for each in unpacked.rglob("*") if each.is_file()]:
            path.chmod(0o600)
            os.utime(path, (2_000_000_000, 2_000_000_000))
        patch.chdir(unpacked)
        again = folder / "again"
        again.mkdir()
        return {
            "sdist": sdist,
            "wheel": folder / f"greenroom-{version}-py3-none-any.whl",
            "again": again / build_wheel(str(again)),
            "bundle": folder / f"greenroom-{version}.mcpb",
            "entry": folder / "server.json",
        }


@pytest.mark.quick
@pytest.mark.promise("distribution.reproducible")
def test_the_wheel_made_of_the_sdist_is_that_of_the_tree_byte_by_byte(built: dict[str, Path]) -> None:
    first, second = (hashlib.sha256(built[each].read_bytes()).hexdigest() for each in ("wheel", "again"))
    assert first == second
    assert built["wheel"].name == built["again"].name


@pytest.mark.quick
@pytest.mark.promise("distribution.contents")
def test_the_wheel_has_types_and_licences_and_nothing_but_the_product(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as wheel:
        names = set(wheel.namelist())
        metadata = next(wheel.read(each).decode() for each in names if each.endswith("/METADATA"))
    about = next(each.partition("/")[0] for each in names if ".dist-info/" in each)
    vectors = "actors/greenroom/actors/search/embedding/models/word_vectors"
    console = "greenroom/transports/web/console"
    assert {f"greenroom/{each}/py.typed" for each in PORTIONS} <= names
    assert {
        f"{about}/licenses/{each}" for each in ("LICENSE", f"{vectors}/LICENSE", f"{vectors}/NOTICE.md")
    } <= names
    assert f"{about}/licenses/transports/{console}/static/licenses.txt" in names
    assert {f"{console}/static/console.js", f"{console}/templates/layout.html"} <= names
    assert {each.split("/")[1] for each in names if each.startswith("greenroom/")} == set(PORTIONS)
    manual = f"{about.removesuffix('.dist-info')}.data/data/share/man/man1/greenroom.1"
    assert {each for each in names if not each.startswith(("greenroom/", f"{about}/"))} == {manual}
    assert "License-Expression: MIT AND 0BSD AND Apache-2.0 AND BSD-3-Clause AND ISC\n" in metadata
    assert not {each for each in names if Path(each).name.startswith(("test_", "conftest"))}


@pytest.mark.promise("distribution.contents")
def test_the_sdist_has_what_the_tests_need_and_nothing_that_is_made(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        names = {each.name.partition("/")[2] for each in archive.getmembers()}
    assert {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "tests/promises.toml"} <= names
    assert {"tests/project/test_distribution.py", "docs/generate.py", "bench/README.md", ".ci/run"} <= names
    assert not {each for each in names if "__pycache__" in each or "_cache/" in each or each.endswith(".pyc")}
    assert built["sdist"].stat().st_size < 14 * MEGABYTE  # nine are the word vectors
    assert built["wheel"].stat().st_size < 12 * MEGABYTE


@pytest.mark.quick
@pytest.mark.promise("distribution.uncompiled")
@pytest.mark.parametrize(
    ("platform", "abi", "left_out"),
    [
        ("manylinux_2_28_x86_64", "cp312", set()),
        ("manylinux_2_28_aarch64", "cp311", set()),
        ("macosx_13_0_arm64", "cp314", set()),
        ("macosx_13_0_x86_64", "cp313", set()),
        ("musllinux_1_2_x86_64", "cp312", {"google-re2", "ahocorasick-rs"}),
        ("musllinux_1_2_aarch64", "cp312", {"google-re2", "ahocorasick-rs", "tree-sitter"}),
        ("manylinux_2_35_armv7l", "cp312", {"google-re2", "ahocorasick-rs", "tree-sitter"}),
        ("manylinux_2_28_x86_64", "cp314t", {"google-re2", "ahocorasick-rs", "tree-sitter"}),
        ("macosx_12_0_arm64", "cp312", {"google-re2", "ahocorasick-rs", "tree-sitter"}),
    ],
)
def test_what_would_have_to_be_compiled_is_left_out(platform: str, abi: str, left_out: set[str]) -> None:
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]
    tags = list(cpython_tags((3, int(abi.strip("cpt")[1:])), [abi], [platform]))
    found = {Requirement(each).name for each in dependencies(hatch["metadata"]["hooks"]["custom"], tags)}
    every = {"google-re2", "ahocorasick-rs", "tree-sitter"}
    assert every - found == left_out
    assert "lmdb" in found
    assert {"tree-sitter", "tree-sitter-rust"} & found in (set(), {"tree-sitter", "tree-sitter-rust"})


@pytest.mark.promise("distribution.uncompiled")
@pytest.mark.parametrize(
    ("python", "implementation", "machine", "wanted"),
    [
        ("3.12", "CPython", "x86_64", True),
        ("3.14", "CPython", "arm64", True),
        ("3.12", "CPython", "aarch64", True),
        ("3.15", "CPython", "x86_64", False),
        ("3.12", "PyPy", "x86_64", False),
        ("3.12", "CPython", "riscv64", False),
    ],
)
def test_the_wheel_asks_for_compiled_packages_where_they_have_wheels(
    built: dict[str, Path], python: str, implementation: str, machine: str, *, wanted: bool
) -> None:
    with zipfile.ZipFile(built["wheel"]) as wheel:
        (name,) = (each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(wheel.read(name))
    found = [Requirement(each) for each in metadata.get_all("Requires-Dist", [])]
    where = {
        "python_version": python,
        "platform_python_implementation": implementation,
        "platform_machine": machine,
        "sys_platform": "linux",
        "extra": "",
    }
    named = {each.name for each in found if each.marker is None or each.marker.evaluate(where)}
    assert ({"google-re2", "ahocorasick-rs", "tree-sitter", "tree-sitter-c"} <= named) is wanted
    assert {"pypdf", "lmdb"} <= named


@pytest.mark.quick
@pytest.mark.promise("distribution.manual")
def test_the_manual_page_tells_every_command_flag_and_setting_and_is_sound_roff() -> None:
    page = (ROOT / "docs" / "reference" / "greenroom.1").read_text()
    told = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
    lines = set(told.splitlines())
    heads = {re.split(r" \[?\\fI", line)[0] for line in lines}
    flags = {option for command in COMMANDS.values() for option in command.options}
    assert flags | {flag(key) for key in all_settings()} | COMMANDS.keys() <= heads
    requests = {line.split()[0] for line in lines if line.startswith(".")}
    assert requests == {".TH", ".SH", ".SS", ".TP", ".PP", ".IP", ".B", ".I", ".RS", ".RE", ".br", '.\\"'}
    escapes = r"\fB \fI \fR \- \" \(ga \(ti \(aq"
    assert set(re.findall(r"\\(?:f.|\(..|.)", page)) == set(escapes.split())
    assert page.isascii()


# -- MCP: the bundle and the entry in the registry ---------------------------------------


def faults(document: Any, schema: str) -> list[str]:
    rules = json.loads((SCHEMAS / schema).read_text())
    rules.pop("$schema")
    found = Draft202012Validator(rules, format_checker=FormatChecker()).iter_errors(document)
    return [error.message for error in found]


@pytest.mark.quick
@pytest.mark.promise("distribution.bundle")
def test_the_bundle_is_valid_whole_and_the_same_each_time(built: dict[str, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(built["bundle"]) as bundle:
        files = {name: bundle.read(name) for name in bundle.namelist()}
    manifest = json.loads(files["manifest.json"])
    assert faults(manifest, "mcpb-manifest-v0.4.schema.json") == []
    assert faults(manifest | {"version": 1}, "mcpb-manifest-v0.4.schema.json") != []
    assert (manifest["version"], manifest["license"]) == (PROJECT["version"], PROJECT["license"])
    project = tomllib.loads(files["pyproject.toml"].decode())
    wheel = project["tool"]["uv"]["sources"]["greenroom"]["path"]
    assert files[wheel] == built["wheel"].read_bytes()
    assert project["project"]["requires-python"] == PROJECT["requires-python"]
    entry = manifest["server"]["entry_point"]
    assert manifest["server"]["mcp_config"]["args"][-1] == entry
    compile(files[entry], entry, "exec")
    make_bundle(tmp_path / "again.mcpb", built["wheel"])
    assert (tmp_path / "again.mcpb").read_bytes() == built["bundle"].read_bytes()


@pytest.mark.quick
@pytest.mark.promise("distribution.registry")
def test_the_formula_takes_the_sdist_that_was_made(built: dict[str, Path]) -> None:
    made = formula("https://example.com", "https://example.com/greenroom.tar.gz", built["sdist"])
    fields = dict(re.findall(r'^  (desc|homepage|url|sha256) "(.*)"$', made, re.MULTILINE))
    assert fields["sha256"] == hashlib.sha256(built["sdist"].read_bytes()).hexdigest()
    assert fields["url"] == "https://example.com/greenroom.tar.gz"
    assert len(fields["desc"]) <= 80


@pytest.mark.promise("distribution.registry", "cli.plugin")
def test_the_published_plugin_names_no_path_of_the_machine_that_made_it(built: dict[str, Path]) -> None:
    files = {
        path: path.read_text() for path in (built["sdist"].parent / "plugin").rglob("*") if path.is_file()
    }
    assert {path.name for path in files} >= {"plugin.json", "marketplace.json", ".mcp.json", "hooks.json"}
    assert [path for path, text in files.items() if sys.prefix in text or str(Path.home()) in text] == []
    hooks = json.loads(next(text for path, text in files.items() if path.name == "hooks.json"))["hooks"]
    commands = [hook["command"] for (entry,) in hooks.values() for hook in entry["hooks"]]
    assert all(shlex.split(each)[:2] == ["greenroom", "hook"] for each in commands)
    for each in commands:
        make_parser().parse_args(shlex.split(each)[1:])


@pytest.mark.promise("distribution.registry")
def test_the_entry_in_the_registry_is_valid_and_names_settings_that_there_are(built: dict[str, Path]) -> None:
    entry = json.loads(built["entry"].read_text())
    assert faults(entry, "mcp-registry-server-2025-12-11.json") == []
    assert faults(entry | {"name": "greenroom"}, "mcp-registry-server-2025-12-11.json") != []
    (package,) = entry["packages"]
    assert {entry["version"], package["version"]} == {PROJECT["version"]}
    known = {variable(key) for key in all_settings()}
    assert {each["name"] for each in package["environmentVariables"]} <= known
    assert [each["value"] for each in package["packageArguments"]] == ["serve"]


# -- the image and the unit ---------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    lines = (HERE / "Dockerfile").read_text().splitlines()
    return [(line.split()[0], line.partition(" ")[2]) for line in lines if line and not line.startswith("#")]


@pytest.mark.quick
@pytest.mark.promise("distribution.image")
def test_the_image_is_made_of_what_the_wheel_needs(
    built: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = [rest.split() for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    for *sources, target in copies:
        for source in sources:
            place = tmp_path / target
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:  # into the folder that it names
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, place)
    monkeypatch.chdir(tmp_path)
    assert (tmp_path / build_wheel(str(tmp_path))).read_bytes() == built["wheel"].read_bytes()


@pytest.mark.promise("distribution.image")
def test_the_image_runs_as_a_user_without_rights_and_its_check_tells_who_is_well(tmp_path: Path) -> None:
    said = dict(instructions())  # the last of each
    assert int(said["USER"]) > 0
    assert said["VOLUME"] in said["ENV"].partition("GREENROOM_DATA=")[2]
    check = json.loads(said["HEALTHCHECK"].partition("CMD ")[2])
    arguments = json.loads(said["CMD"])
    assert f"http://{arguments[arguments.index('--http') + 1]}/healthz" in check[-1]
    with serving(tmp_path, "--stdio", "--http", "127.0.0.1:0") as server:
        address = re.search(r"http://(127.0.0.1:\d+)", server.errors.read_text())
        assert address is not None
        asks = [sys.executable, "-c", check[-1].replace("127.0.0.1:8080", address[1])]
        assert subprocess.run(asks, check=False).returncode == 0
        server.process.terminate()
        assert server.process.wait() == 0
    assert subprocess.run(asks, check=False, stderr=subprocess.DEVNULL).returncode == 1


@pytest.mark.quick
@pytest.mark.promise("distribution.unit")
def test_the_page_names_the_unit_and_the_unit_starts_what_there_is() -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    copied = re.search(r"^cp (\S+) /etc/systemd/system/$", page, re.MULTILINE)
    assert copied is not None
    unit = (ROOT / copied[1]).read_text()
    start = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    program, *arguments = shlex.split(start.partition("=")[2])
    assert program.endswith("/bin/greenroom")
    assert make_parser().parse_args(arguments).command == "serve"
    codes = next(line for line in unit.splitlines() if line.startswith("RestartPreventExitStatus="))
    assert {int(each) for each in codes.partition("=")[2].split()} <= exit_codes.MEANINGS.keys()
