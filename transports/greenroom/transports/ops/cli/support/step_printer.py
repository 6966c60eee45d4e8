"""A printer of numbered steps, quotes and checked claims, for the demo."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from greenroom.transports.ops.cli.output import say
from greenroom.transports.ops.cli.support.terminal import CLEAR_LINE, painted, printable, understands_escapes


class StepPrinter:
    """Prints the steps of a demo, in colours if standard output is a terminal."""

    def __init__(self) -> None:
        self.checks = 0
        self.failures: list[str] = []
        self._steps = 0

    def step(self, sentence: str) -> None:
        """Begin the next step."""
        self._steps += 1
        self._show(f"\n{self._steps}. ", sentence, "bold")

    def tell(self, sentence: str) -> None:
        """Print what happens."""
        self._show("     ", sentence)

    def quote(self, who: str, text: str) -> None:
        """Print what a person or an agent writes or sees."""
        self._show("     ", f"{who}: {text}", "cyan")

    def check(self, claim: str, holds: bool, found: object = "") -> None:  # noqa: FBT001 - `check(claim, is_so)`
        """Print a claim and whether it is true."""
        self.checks += 1
        if holds:
            self._show("  ok ", claim, "green")
        else:
            self.fail(claim, f"; found: {found}")

    def fail(self, sentence: str, details: str = "") -> None:
        """Print what is wrong, or why the demo cannot continue."""
        self.failures.append(sentence)
        self._show("  FAILED ", sentence + details, "bold", "red")

    def finish(self, seconds: float) -> bool:
        """Print the result; return whether every claim is true."""
        if self.failures:
            wrong = "; ".join(self.failures)
            self._show("\n", f"{len(self.failures)} of {self.checks} checks failed: {wrong}", "bold", "red")
        else:
            self._show("\n", f"All {self.checks} checks passed in {seconds:.1f} s.", "bold", "green")
        return not self.failures

    @contextmanager
    def waiting(self, sentence: str) -> Iterator[None]:
        """Show a sentence on a terminal until the block ends, which may take a moment."""
        if not understands_escapes(sys.stdout):
            yield
            return
        sys.stdout.write(f"  …  {sentence}")
        sys.stdout.flush()
        try:
            yield
        finally:
            sys.stdout.write(CLEAR_LINE)
            sys.stdout.flush()

    def _show(self, margin: str, text: str, *styles: str) -> None:
        say(margin + painted(sys.stdout, printable(text), *styles))
