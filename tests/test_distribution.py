"""What is handed out: the wheel and the sdist."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_sdist, build_wheel

from greenroom.transports.cli.catalogue import COMMANDS
from greenroom.transports.config.settings import all_settings, flag

ROOT = Path(__file__).parents[1]
PORTIONS = ("runtime", "actors", "transports", "testing")
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both files of this tree, and the wheel that somebody makes of the sdist elsewhere, later."""
    folder = tmp_path_factory.mktemp("distribution")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SOURCE_DATE_EPOCH", raising=False)
        patch.chdir(ROOT)
        sdist = folder / build_sdist(str(folder))
        wheel = folder / build_wheel(str(folder))
        with tarfile.open(sdist) as archive:
            archive.extractall(folder / "elsewhere", filter="data")
        (unpacked,) = (folder / "elsewhere").iterdir()
        for path in [each for each in unpacked.rglob("*") if each.is_file()]:
            path.chmod(0o600)
            os.utime(path, (2_000_000_000, 2_000_000_000))
        patch.chdir(unpacked)
        again = folder / "again"
        again.mkdir()
        return {"sdist": sdist, "wheel": wheel, "again": again / build_wheel(str(again))}


@pytest.mark.promise("distribution.reproducible")
def test_the_wheel_made_of_the_sdist_is_that_of_the_tree_byte_by_byte(built: dict[str, Path]) -> None:
    first, second = (hashlib.sha256(built[each].read_bytes()).hexdigest() for each in ("wheel", "again"))
    assert first == second
    assert built["wheel"].name == built["again"].name


@pytest.mark.promise("distribution.contents")
def test_the_wheel_has_types_and_licences_and_nothing_but_the_product(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as wheel:
        names = set(wheel.namelist())
        metadata = next(wheel.read(each).decode() for each in names if each.endswith("/METADATA"))
    about = next(each.partition("/")[0] for each in names if ".dist-info/" in each)
    vectors = "actors/greenroom/actors/embedding/word_vectors"
    assert {f"greenroom/{each}/py.typed" for each in PORTIONS} <= names
    assert {
        f"{about}/licenses/{each}" for each in ("LICENSE", f"{vectors}/LICENSE", f"{vectors}/NOTICE.md")
    } <= names
    assert {each.split("/")[1] for each in names if each.startswith("greenroom/")} == set(PORTIONS)
    manual = f"{about.removesuffix('.dist-info')}.data/data/share/man/man1/greenroom.1"
    assert {each for each in names if not each.startswith(("greenroom/", f"{about}/"))} == {manual}
    assert "License-Expression: MIT AND Apache-2.0\n" in metadata
    assert not {each for each in names if Path(each).name.startswith(("test_", "conftest"))}


@pytest.mark.promise("distribution.contents")
def test_the_sdist_has_what_the_tests_need_and_nothing_that_is_made(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        names = {each.name.partition("/")[2] for each in archive.getmembers()}
    assert {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "tests/promises.toml"} <= names
    assert {"tests/test_distribution.py", "docs/generate.py", "bench/README.md", ".ci/run"} <= names
    assert not {each for each in names if "__pycache__" in each or "_cache/" in each or each.endswith(".pyc")}
    assert built["sdist"].stat().st_size < 14 * MEGABYTE  # nine are the word vectors
    assert built["wheel"].stat().st_size < 12 * MEGABYTE


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
