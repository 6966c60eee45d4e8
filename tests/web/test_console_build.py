"""The console's script and styles: built from the sources beside them, small, and of nobody else's host."""

from __future__ import annotations

import gzip
import json
import re
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent / "transports"
SOURCES = ROOT / "console"
BUILT = ROOT / "greenroom/transports/web/console/static"
MOST = 350_000
"""Bytes of everything that is sent to a browser, compressed."""


def digest() -> str:
    """Return the digest of the sources, as `build.mjs` makes it."""
    found = [path for path in (SOURCES / "src").rglob("*") if path.is_file()]
    names = sorted(path.relative_to(SOURCES).as_posix() for path in found)
    made = sha256()
    for name in sorted([*names, "package.json", "build.mjs"]):
        made.update(name.encode() + b"\0" + (SOURCES / name).read_bytes() + b"\0")
    return made.hexdigest()[:16]


@pytest.mark.promise("console.built")
def test_what_is_served_was_built_from_the_sources_that_are_there() -> None:
    for path in (BUILT / "console.js", BUILT / "console.css", BUILT / "map.js"):
        said = re.search(r"built from ([0-9a-f]{16})", path.read_text()[:200])
        assert said is not None, path
        assert said[1] == digest(), "run `npm install && npm run build` in transports/console"


@pytest.mark.promise("console.small")
def test_all_of_it_is_small() -> None:
    assert sum(len(gzip.compress(path.read_bytes())) for path in BUILT.iterdir()) <= MOST


def test_each_library_in_it_is_named_with_its_license() -> None:
    told = (BUILT / "licenses.txt").read_text()
    named = dict(re.findall(r"^(\S+ [0-9.]+) \((.+)\)$", told, re.MULTILINE))
    package = json.loads((SOURCES / "package.json").read_text())
    for name, version in package["dependencies"].items():
        assert re.fullmatch(r"[0-9.]+", version), f"{name} has no exact version"
        assert f"{name} {version}" in named
    ours = (ROOT.parent / "pyproject.toml").read_text()
    known = re.search(r'^license = "(.+)"', ours, re.MULTILINE)
    assert known is not None
    assert set(named.values()) <= set(known[1].split(" AND ")), "name it in pyproject.toml, too"


def test_nothing_in_it_leads_to_another_host_or_makes_code_of_text() -> None:
    for path in BUILT.iterdir():
        if path.name == "licenses.txt":
            continue
        text = path.read_text()
        hosts = set(re.findall(r"https?://([a-zA-Z0-9.-]+)", text)) - {"www.w3.org"}
        assert not hosts, path
        assert not re.search(r"\beval\(|new Function\(|@import url|sendBeacon", text), path
