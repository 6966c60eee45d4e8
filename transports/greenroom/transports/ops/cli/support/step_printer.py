"""What a narrated program prints: steps, what was said in them, and claims that are checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from greenroom.transports.ops.cli.output import say
from greenroom.transports.ops.cli.support.terminal import CLEAR_LINE, painted, printable, understands_escapes


class Narrator:
    """Prints lines of text, in colours where standard output is a terminal.

    Attributes:
        checks: Claims that were checked.
        failures: Those that turned out wrong.
    """

    def __init__(self) -> None:
        self.checks = 0
        self.failures: list[str] = []
        self._steps = 0

    def step(self, sentence: str) -> None:
        """Begin the next step."""
        self._steps += 1
        self._show(f"\n{self._steps}. ", sentence, "bold")

    def tell(self, sentence: str) -> None:
        """Say what happens."""
        self._show("     ", sentence)

    def quote(self, who: str, text: str) -> None:
        """Show what somebody said or sees."""
        self._show("     ", f"{who}: {text}", "cyan")

    def check(self, claim: str, holds: bool, found: object = "") -> None:  # noqa: FBT001 - `check(claim, is_so)`
        """State a claim together with whether it holds.

        Args:
            claim: What is claimed.
            holds: Whether it is so.
            found: What was found instead, shown if it is not.
        """
        self.checks += 1
        if holds:
            self._show("  ok ", claim, "green")
        else:
            self.fail(claim, f"; found: {found}")

    def fail(self, sentence: str, details: str = "") -> None:
        """Say what is wrong, or why the program cannot go on."""
        self.failures.append(sentence)
        self._show("  FAILED ", sentence + details, "bold", "red")

    def finish(self, seconds: float) -> bool:
        """Say how it went; return whether every claim held."""
        if self.failures:
            wrong = "; ".join(self.failures)
            self._show("\n", f"{len(self.failures)} of {self.checks} checks failed: {wrong}", "bold", "red")
        else:
            self._show("\n", f"All {self.checks} checks passed in {seconds:.1f} s.", "bold", "green")
        return not self.failures

    @contextmanager
    def waiting(self, sentence: str) -> Iterator[None]:
        """Say, on a terminal, what takes a moment, until it is over."""
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
