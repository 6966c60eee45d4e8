"""What a narrated program prints: steps, what was said in them, and claims that are checked.

With `rich` on a terminal it is drawn with colours; anywhere else it is plain lines of text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from greenroom.transports.cli.output import say
from greenroom.transports.cli.support.terminal import printable


class Narrator:
    """Prints as plain text.

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
        self._show_step(self._steps, sentence)

    def tell(self, sentence: str) -> None:
        """Say what happens."""
        self._show_line("     ", printable(sentence), "")

    def quote(self, who: str, text: str) -> None:
        """Show what somebody said or sees."""
        self._show_line("     ", printable(f"{who}: {text}"), "cyan")

    def check(self, claim: str, holds: bool, found: object = "") -> bool:  # noqa: FBT001 - `check(claim, is_so)`
        """State a claim together with whether it holds.

        Args:
            claim: What is claimed.
            holds: Whether it is so.
            found: What was found instead, shown if it is not.
        """
        self.checks += 1
        if holds:
            self._show_line("  ok ", printable(claim), "green")
        else:
            self.failures.append(claim)
            self._show_line("  FAILED ", printable(f"{claim}; found: {found}"), "bold red")
        return holds

    def fail(self, sentence: str) -> None:
        """Say why the program cannot go on."""
        self.failures.append(sentence)
        self._show_line("  FAILED ", printable(sentence), "bold red")

    def finish(self, seconds: float) -> bool:
        """Say how it went; return whether every claim held."""
        if not self.failures:
            self._show_line("\n", f"All {self.checks} checks passed in {seconds:.1f} s.", "bold green")
            return True
        wrong = "; ".join(self.failures)
        self._show_line(
            "\n", printable(f"{len(self.failures)} of {self.checks} checks failed: {wrong}"), "bold red"
        )
        return False

    @contextmanager
    def waiting(self, sentence: str) -> Iterator[None]:
        """Show that something takes a moment, where that can be shown."""
        del sentence
        yield

    def _show_step(self, number: int, sentence: str) -> None:
        self._show_line("\n", f"{number}. {sentence}", "bold")

    def _show_line(self, margin: str, text: str, style: str) -> None:
        del style
        say(margin + text)
