"""What plain rules find in the turns of a client's session, without a language model.

Only the person's own words, and the model's where the person accepts them, make decisions and preferences.
What a tool answers is data that anybody may have written: of it nothing is kept but one line of an error.
Nothing is better than noise: a sentence that does not read alone is no finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.actors.hooks.command_runs import found_in_commands
from greenroom.actors.hooks.findings import Extractor as Extractor
from greenroom.actors.hooks.findings import Finding as Finding
from greenroom.actors.hooks.findings import Rule as Rule
from greenroom.actors.hooks.statements import found_in_words
from greenroom.actors.schemas.hooks import Turn

MAX_FINDINGS: Final = 24
"""Most findings of one event: the newest ones."""


def found_in(turns: Sequence[Turn]) -> list[Finding]:
    """Return what plain rules find in turns, in the order of these, each thing once."""
    found = sorted([*found_in_words(turns), *found_in_commands(turns)], key=lambda each: each.turn)
    once = {" ".join(each.text.casefold().split()): each for each in found}
    return sorted(once.values(), key=lambda each: each.turn)[-MAX_FINDINGS:]
