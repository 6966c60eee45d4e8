"""Secrets are left out of texts; what is none stays, whatever the text."""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench.harness import Plan
from bench.secret_samples import Sample, key_samples, password_samples, token_samples
from bench.secrets import HOSTILE as REPEATED
from bench.secrets import leaks
from bench.secrets import run as run_benchmark
from greenroom.actors.content.secrets.detect import without_secrets

ROOT = Path(__file__).parents[2]
MARK = "[secret left out: "
HEX = "0123456789abcdef"


def samples(what: str, seed: int) -> Iterator[Sample]:
    chance = Random(seed)  # noqa: S311 - the same each time
    match what:
        case "tokens":
            return token_samples(chance)
        case "passwords":
            return password_samples(chance, 6)
    return key_samples(chance, 5)


@pytest.mark.slow
@pytest.mark.promise("rules.left-out")
@pytest.mark.parametrize(("what", "least"), [("tokens", 0.99), ("passwords", 0.97), ("private keys", 1.0)])
def test_nearly_all_secrets_of_issuers_shapes_and_of_people_are_left_out(what: str, least: float) -> None:
    drawn = [sample for seed in (1, 2, 3) for sample in samples(what, seed)]
    leaked = Counter(sample.kind for sample in drawn if leaks(sample))
    assert 1 - leaked.total() / len(drawn) >= least, leaked


def test_every_kind_of_token_is_found_where_it_stands_alone() -> None:
    found = Counter(
        sample.kind.partition("/")[0]
        for seed in range(4)
        for sample in samples("tokens", seed)
        if sample.kind.endswith("/prose") and not leaks(sample)
    )
    assert min(found.values()) == 4, found


@pytest.mark.promise("rules.left-out")
@pytest.mark.parametrize(
    "text",
    [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b fixes the token's refresh",
        "uses: actions/create-github-app-token@a8d616148505b5069dccd32f177bb87d7f39123b",
        "integrity sha512-9bNvq0mcBPJVJYDLJHEWwVwpHAr3kNdxJBxHwXZjC1V0qFwXM2nDNAlWBAmMMEZlOHGbbLCUCxpDPmPt",
        "session 123e4567-e89b-42d3-a456-426614174000 has the token id 0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
        "max_tokens=1500, tokens = text.split(), token = tokens[3], token: Token | None = None",
        "password = getpass.getpass(); password: str; password=password; passwd = config.db.password",
        "token = read_token(path); secret=settings.secret_key; api_key=os.environ['API_KEY']",
        'connect(password="${DB_PASSWORD}", token="<your token>", api_key="YOUR_API_KEY", secret="changeme")',
        "The password is wrong. The token is missing! What is the secret: patience.",
        "Put the key between -----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY-----, please.",
        "postgres://user:password@localhost/db and https://example.org:8080/a@b",
        "cat /etc/passwd: no such file; see secrets/README.md: all of tests/secrets is skipped",
        "sk-learn-something-every-day-and-write-it-down, re_import_all_of_the_modules_again_please",
        "if (token === undefined) { return this.tokenizer.nextToken(); } // auth: required",
        "import { AutoTokenizer, AutoModelForVision2Seq } from './models.js'; secret: tests/v2_of_things.py",
        'pk_live_ keys are public; "Authorization: Bearer <token>"; Basic authentication is not enough',
        "PWD=/home/ann/project OLDPWD=/home/ann; 2 tests pass: 12 passed, first_pass: 100",
        "SECRET_KEY=\npassword:\n\n  token:   \n",
        "version v1.0-0123 of AKIA and ghp_ and xoxb- and hvs. are prefixes",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == (text, 0)


def test_hashes_identifiers_and_pictures_stay() -> None:
    chance = Random(5)  # noqa: S311 - the same each time
    picture = base64.b64encode(chance.randbytes(60_000)).decode()
    lines = [
        *(
            "".join(chance.choices(HEX, k=size)) + "  file.tar.gz"
            for size in (7, 32, 40, 64)
            for _ in range(100)
        ),
        *(f"{chance.getrandbits(32)} {chance.getrandbits(64):x} {chance.random()}" for _ in range(100)),
        f"![picture](data:image/png;base64,{picture})",
        *("lorem ipsum dolor sit amet, consectetur adipiscing elit; " * 5 for _ in range(100)),
    ]
    text = "\n".join(lines)
    assert without_secrets(text) == (text, 0)


@pytest.mark.slow
def test_next_to_nothing_is_taken_for_a_secret_in_the_source_and_pages_of_this_repository() -> None:
    files = chain(
        *(ROOT.joinpath(folder).rglob("*.py") for folder in ("runtime", "transports")),
        ROOT.joinpath("docs").rglob("*.md"),
    )
    found = {str(path.relative_to(ROOT)): without_secrets(path.read_text())[1] for path in files}
    assert len(found) > 300
    assert sum(found.values()) <= 2, {name: count for name, count in found.items() if count}


def test_several_are_counted_and_each_is_called_what_it_is() -> None:
    chance = Random(6)  # noqa: S311 - the same each time
    token = "ghp_" + "".join(chance.choices("abcDEF0123456789", k=36))
    text = f'{{"password": "hunter2", "token": "{token}"}} postgres://ann:s3cret@db/shop'
    assert without_secrets(text) == (
        f'{{"password": "{MARK}password]", "token": "{MARK}GitHub token]"}} postgres://ann:{MARK}password]@db/shop',
        3,
    )


SECRETS = [each.text for what in ("tokens", "passwords", "private keys") for each in samples(what, 9)]
PIECES = st.one_of(
    st.sampled_from(SECRETS),
    st.text(max_size=40),
    st.sampled_from(["password=", "token: '", '"', "'", "\\", "\n", "]", "-----BEGIN ", "Bearer "]),
    st.text("aZ09_-+/=.:@&?{$", max_size=60),
)


@given(st.lists(PIECES, max_size=8).map("".join))
def test_what_stands_between_secrets_stays(text: str) -> None:
    assume(MARK not in text)
    kept, count = without_secrets(text)
    first, *rest = kept.split(MARK)
    assert len(rest) == count
    at = 0
    for part in (first, *(each.partition("]")[2] for each in rest)):
        at = text.index(part, at) + len(part)


@given(st.lists(st.one_of(PIECES, st.just(MARK + "password]")), max_size=8).map("".join))
def test_a_second_time_nothing_more_is_left_out(text: str) -> None:
    kept, _ = without_secrets(text)
    assert without_secrets(kept) == (kept, 0)


HOSTILE = {
    "names": "password=",
    "names in quotes": 'token="',
    "names of one value": "secret:",
    "beginnings of tokens": "ghp_",
    "beginnings with dashes": "glpat-",
    "beginnings of web tokens": "eyJa",
    "parts of web tokens": "eyJhbGciOiJI.",
    "addresses": "://a:",
    "passwords of addresses": "a:b@",
    "headers": "authorization: ",
    "options": "curl -u ",
    "keys that begin": "-----BEGIN PRIVATE KEY-----\n",
    "keys that end": "AAAABBBBCCCCDDDD\n-----END PRIVATE KEY-----",
    "cookies": "cookie: a=",
    "digits": "0123456789",
    "backslashes": "\\",
    "spaces": " ",
    "hex": "SKdeadbeef",
    **{f"repeated {part.strip()}": part for part in REPEATED},
}


@pytest.mark.promise("rules.linear")
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_text_takes_little_of_the_processor(what: str) -> None:
    # Its own time on the processor, which a busy machine hardly lengthens: 0.1 seconds where this was made.
    # A pattern that looks at each character a thousand times takes more.
    text = (HOSTILE[what] * (250_000 // len(HOSTILE[what]) + 1))[:250_000]
    began = time.process_time()
    without_secrets(text)
    assert time.process_time() - began < 3


@pytest.mark.slow
def test_the_benchmark_measures_what_is_found_and_what_is_taken_for_a_secret(tmp_path: Path) -> None:
    report = run_benchmark(Plan(smoke=True, data=None, work=tmp_path))
    tables = {table.title: table for table in report.tables}
    recall, imports = tables["recall: secrets found"], tables["what it costs to import"]
    taken = tables["taken for secrets in texts of which nearly all have none"]
    assert [row[0] for row in recall.rows] == ["tokens", "passwords", "private keys"]
    assert all(row[2] == pytest.approx(1, abs=0.05) for row in recall.rows)
    assert next(iter(taken.rows))[:2] == ["Greenroom's own", "Greenroom"]
    assert imports.rows
