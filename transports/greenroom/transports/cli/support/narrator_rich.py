"""The narrator on a terminal; the only part of it that needs `rich`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from greenroom.transports.cli.support.narrator import Narrator


class RichNarrator(Narrator):
    """Prints with colours, and turns a wheel while something takes a moment."""

    def __init__(self) -> None:
        super().__init__()
        self._console = Console(highlight=False)

    @contextmanager
    def waiting(self, sentence: str) -> Iterator[None]:
        """Show that something takes a moment."""
        with self._console.status(sentence):
            yield

    def _show_step(self, number: int, sentence: str) -> None:
        self._console.print()
        self._console.print(Rule(Text(f"{number}. {sentence}", "bold"), align="left", style="dim"))

    def _show_line(self, margin: str, text: str, style: str) -> None:
        self._console.print(Text(margin + text, style), soft_wrap=True)
