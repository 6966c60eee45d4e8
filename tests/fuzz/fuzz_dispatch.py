"""Fuzz the dispatcher by coverage: ``python tests/fuzz/fuzz_dispatch.py [libFuzzer's options]``.

Without options it runs for ten minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # the tests are no package

from fuzz import driver

with driver.instrumented():
    from fuzz.targets import dispatch

driver.fuzz(dispatch, "dispatch")
