"""What a person typed: whether it asks for anything, and what of it is searched with."""

from __future__ import annotations

import re
from typing import Final

from greenroom.actors.content.secrets.detect import LEFT_OUT

_SEARCHED: Final = 2_000
# No word is in it twice: each reading of a word more doubles the time that a row of it takes.
_TRIVIAL: Final = re.compile(
    r"\s*(?:/[A-Za-z][\w:.-]*(?:\s.*)?|!.*"
    r"|(?:(?:y|yes|yep|yeah|yup|ok|okay|k|no|nope|sure|right|good|great|perfect|nice|fine|cool"
    r"|please|thanks?|thank you|continue|resume|go|go on|go ahead|carry on|keep going|proceed|do it|do that"
    r"|try again|retry|again|done|next|stop|wait|commit|push|ja|nein|weiter|danke|genau|[0-9a-jl-xz])\b"
    r"[\s.,!?;:)-]*)*)",
    re.IGNORECASE | re.DOTALL,
)


def is_trivial(prompt: str) -> bool:
    """Return whether a prompt asks for nothing that could be looked up: consent, or a client's command."""
    return _TRIVIAL.fullmatch(prompt) is not None


def searched(prompt: str) -> str:
    """Return what is searched with: the beginning, without the marks of secrets that were left out."""
    return LEFT_OUT.sub(" ", prompt)[:_SEARCHED]
