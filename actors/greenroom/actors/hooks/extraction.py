"""What plain rules find in the turns of a client's session, without a language model.

Only the person's own words, and the model's where the person accepts them, make decisions and preferences.
What a tool answers is data that anybody may have written: of it nothing is kept but one line of an error.
Nothing is better than noise: a sentence that does not read alone is no finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from greenroom.actors.hooks.command_runs import found_in_commands
from greenroom.actors.hooks.findings import Extractor as Extractor
from greenroom.actors.hooks.findings import Finding as Finding
from greenroom.actors.hooks.findings import Rule as Rule
from greenroom.actors.hooks.statements import found_in_words
from greenroom.actors.schemas.hooks import Turn

MAX_FINDINGS: Final = 24
"""Most findings of one event."""
MAX_OF_RULE: Final = 8
"""Most findings of one event by the same rule."""


def found_in(turns: Sequence[Turn]) -> list[Finding]:
    """Return what plain rules find in turns, in their order, each thing once; of too many the newest."""
    found = sorted((*found_in_words(turns), *found_in_commands(turns)), key=lambda each: each.turn)
    newest: dict[str, Finding] = {}
    count: Counter[Rule] = Counter()
    for each in reversed(found):
        same = " ".join(each.text.casefold().split())
        if same not in newest and count[each.rule] < MAX_OF_RULE and len(newest) < MAX_FINDINGS:
            newest[same] = each
            count[each.rule] += 1
    return list(reversed(newest.values()))
