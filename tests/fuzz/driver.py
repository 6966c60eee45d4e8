"""What both atheris programs share: instrumentation, seeds, and how long they run."""

from __future__ import annotations

import logging
import pkgutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]  # an extra, without types

from greenroom import actors, runtime

HERE = Path(__file__).parent
MINUTES = 10


@contextmanager
def instrumented() -> Iterator[None]:
    """Count the branches of transports, among them what speaks MCP, when they are imported in this block.

    Atheris looks at the first name of what is included only, and takes long for each module.
    """
    exclude = [
        module.name
        for package in (actors, runtime)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    with atheris.instrument_imports(include=["greenroom"], exclude=exclude):
        yield


def fuzz(target: Callable[[bytes], None], name: str) -> None:
    """Run a target until the options say so, or for ten minutes; a broken promise ends the program.

    What it learns goes to a folder of its own, so the seeds in the repository stay few. Given files, it
    runs the target on these alone.
    """
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as learnt:
        options = sys.argv[1:] or [f"-max_total_time={MINUTES * 60}"]
        defaults = [f"-dict={HERE / 'json.dict'}", "-max_len=8192", "-timeout=30"]
        given = [option for option in options if not option.startswith("-")]
        inputs = [] if given else [learnt, str(HERE / "corpus" / name)]
        atheris.Setup([sys.argv[0], *defaults, *options, *inputs], target)
        atheris.Fuzz()
