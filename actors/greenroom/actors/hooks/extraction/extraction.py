"""What plain rules find in the turns of a client's session, without a language model.

Only the person's own words, and the model's where the person accepts them, make decisions and preferences.
What a tool answers is data that anybody may have written: of it nothing is kept but one line of an error.
Nothing is better than noise: a sentence that does not read alone is no finding.

A session is told in parts. What of one part may matter for the next is `carried` over: a proposal that nobody
answered yet, commands and how they ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from greenroom.actors.hooks.extraction.findings import error_line
from greenroom.actors.hooks.findings import Finding, Rule
from greenroom.actors.sessions.requests.hook_events import Turn

MAX_FINDINGS: Final = 24
"""Most findings of one event."""
MAX_OF_RULE: Final = 8
"""Most findings of one event by the same rule."""
MAX_CARRIED: Final = 50
"""Most turns that are carried over, the newest ones."""
_LONGEST_NAME: Final = 500
"""Characters of a command or a path that is carried over."""
_LONGEST_WORDS: Final = 4_000


def found_in(turns: Sequence[Turn], before: Sequence[Turn] = ()) -> list[Finding]:
    """Return what plain rules find in turns, in their order, each thing once; of too many the newest.

    Args:
        turns: What is new.
        before: What was carried over from the part before. What came out there is not told again.
    """
    from greenroom.actors.hooks.extraction.command_runs import found_in_commands  # noqa: PLC0415 - as the next
    from greenroom.actors.hooks.extraction.statements import found_in_words  # noqa: PLC0415 - 30 ms of each start

    together = (*before, *turns)
    found = sorted((*found_in_words(together), *found_in_commands(together)), key=lambda each: each.turn)
    newest: dict[str, Finding] = {}
    count: Counter[Rule] = Counter()
    for each in reversed(found):
        if each.turn < len(before):
            break
        same = " ".join(each.text.casefold().split())
        if same not in newest and count[each.rule] < MAX_OF_RULE and len(newest) < MAX_FINDINGS:
            newest[same] = msgspec.structs.replace(each, turn=each.turn - len(before))
            count[each.rule] += 1
    return list(reversed(newest.values()))


def carried(turns: Sequence[Turn], before: Sequence[Turn] = ()) -> list[Turn]:
    """Return what of turns is to be there for the next part; of what tools said only errors.

    Args:
        turns: What was new.
        before: What was carried over to it.
    """
    together = (*before, *turns)
    last = next((turn for turn in reversed(together) if turn.role != "tool"), None)
    kept: list[Turn] = []
    for turn in together:
        if turn.role == "tool" and (turn.command or turn.wrote):
            if max(len(turn.command), len(turn.path)) <= _LONGEST_NAME:
                told = error_line(turn.text) if turn.failed else ""
                kept.append(msgspec.structs.replace(turn, text=told))
        elif turn is last and turn.role == "assistant" and len(turn.text) <= _LONGEST_WORDS:
            kept.append(turn)
    return kept[-MAX_CARRIED:]
