"""Bytes of every kind into the frame decoder and the dispatcher, which must bear them.

With atheris (`pip install -e '.[fuzz]'`) the same
targets are fuzzed by coverage: ``python tests/fuzz/fuzz_dispatch.py`` does so for ten minutes.
"""

from __future__ import annotations

import logging
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from fuzz.targets import dispatch, frames
from hypothesis import given
from hypothesis import strategies as st
from support.differential_conversations import Conversation, Step, conversations

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
RUNS = {"fuzz_frames.py": 5_000, "fuzz_dispatch.py": 300}


@pytest.fixture(autouse=True, scope="module")
def _silent_sdk() -> None:
    logging.getLogger("mcp").setLevel(logging.CRITICAL)


def written(held: Conversation) -> bytes:
    """Return all lines of a conversation, each with an id of its own where it has none."""
    lines = [step.raw for step in held.steps if isinstance(step, Step)]
    return b"\n".join(
        raw.replace(b'"@fresh"', str(1_000 + number).encode()) for number, raw in enumerate(lines)
    )


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return what a client writes, with some bytes changed, left out or doubled."""
    data = bytearray(written(draw(conversations())))
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, max(0, len(data) - 1)))
        end = min(len(data), start + draw(st.integers(0, 20)))
        put = draw(
            st.sampled_from([bytes(data[start:end]) * 2, b"", b"\n", b'"', b"{", b"[" * 300])
            | st.binary(max_size=4)
        )
        data[start:end] = put
    return bytes(data)


CORPUS = sorted(HERE.glob("corpus/*/*"))


@pytest.mark.promise("mcp.hostile-frames")
@pytest.mark.parametrize("seed", CORPUS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_seeds_are_borne(seed: Path) -> None:
    frames(seed.read_bytes())
    dispatch(seed.read_bytes())


@pytest.mark.promise("mcp.hostile-frames")
@given(st.binary(max_size=500) | damaged())
def test_any_bytes_are_frames_or_errors_wherever_they_are_cut(data: bytes) -> None:
    frames(data)


@pytest.mark.promise("mcp.hostile-frames", "mcp.errors")
@given(damaged() | st.binary(max_size=500))
def test_any_bytes_are_answered_by_json_rpc_and_the_connection_goes_on(data: bytes) -> None:
    dispatch(data)


@pytest.mark.promise("mcp.hostile-frames")
@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed: pip install -e '.[fuzz]'")
@pytest.mark.parametrize("program", RUNS)
def test_the_coverage_guided_fuzzers_run(program: str, tmp_path: Path) -> None:
    seed = random.randrange(1, 2**31)  # noqa: S311  (another path through the same program each time)
    limits = [f"-runs={RUNS[program]}", f"-seed={seed}", f"-artifact_prefix={tmp_path}/"]
    ran = subprocess.run(
        [sys.executable, HERE / program, *limits], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr[-5_000:]
    assert f"Done {RUNS[program]}" in ran.stderr
