"""Find memories in the turns of a client's session by plain rules.

Only a person's own words, and proposals of the model that the person accepts, become decisions and
preferences. The output of a tool is untrusted: only one line of an error is kept. Noise is worse than no
finding, so a sentence that is unclear without its context is no finding.

A session arrives in parts. `carry_over` keeps what the next part needs: a proposal without an answer, and
commands with their results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from greenroom.actors.hooks.extraction.findings import Finding, Rule, find_error_line
from greenroom.actors.sessions.requests.hook_events import Turn

MAX_FINDINGS: Final = 24
"""At most this many findings come from one event."""
MAX_OF_RULE: Final = 8
"""At most this many findings of one event come from one rule."""
MAX_CARRIED: Final = 50
"""At most this many turns are carried over: the newest ones."""
_LONGEST_NAME: Final = 500
"""A command or a path that is carried over has at most this many characters."""
_LONGEST_WORDS: Final = 4_000


def found_in(turns: Sequence[Turn], before: Sequence[Turn] = ()) -> list[Finding]:
    """Find memories in turns, in order, each once; if too many, keep the newest.

    Findings that end in the turns that were carried over (``before``) are not returned again.
    """
    from greenroom.actors.hooks.extraction.command_runs import find_in_commands  # noqa: PLC0415 - as below
    from greenroom.actors.hooks.extraction.statements import find_in_words  # noqa: PLC0415 - takes 30 ms of each start

    together = (*before, *turns)
    found = sorted((*find_in_words(together), *find_in_commands(together)), key=lambda each: each.turn)
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


def carry_over(turns: Sequence[Turn], before: Sequence[Turn] = ()) -> list[Turn]:
    """Return the turns that the next part needs; of tool output, keep only errors."""
    together = (*before, *turns)
    last = next((turn for turn in reversed(together) if turn.role != "tool"), None)
    kept: list[Turn] = []
    for turn in together:
        if turn.role == "tool" and (turn.command or turn.wrote):
            if max(len(turn.command), len(turn.path)) <= _LONGEST_NAME:
                error = find_error_line(turn.text) if turn.failed else ""
                kept.append(msgspec.structs.replace(turn, text=error))
        elif turn is last and turn.role == "assistant" and len(turn.text) <= _LONGEST_WORDS:
            kept.append(turn)
    return kept[-MAX_CARRIED:]
