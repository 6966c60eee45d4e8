"""The tables of handlers: each function takes the message that it is listed for, and answers it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from inspect import unwrap
from typing import Any, get_args, get_type_hints

import pytest

from greenroom.actors.app.open import KINDS
from greenroom.runtime import Context, Message, reply_type, reply_variants

Handler = Callable[[Any, Any, Context], Any]
TABLE = [(kind, message, handler) for kind in KINDS for message, handler in kind.handlers.items()]


def answers(hint: Any) -> set[Any]:
    """Return the alternatives of a type, with what its generators return in the place of these."""
    if get_args(hint) and getattr(hint, "__origin__", None) is Generator:
        return answers(get_args(hint)[2])
    if get_args(hint) and getattr(hint, "__origin__", None) is None:
        return {each for part in get_args(hint) for each in answers(part)}
    return {hint}


@pytest.mark.parametrize(
    ("kind", "message", "handler"),
    TABLE,
    ids=[f"{kind.kind}-{message.__name__}" for kind, message, _ in TABLE],
)
def test_a_handler_takes_its_message_and_answers_what_that_asks_for(
    kind: type[Any], message: type[Message[Any]], handler: Handler
) -> None:
    function = unwrap(handler)
    hints = get_type_hints(function)
    reply = hints.pop("return")
    _, taken, context = (hints.get(name) for name in function.__code__.co_varnames[:3])
    assert message in answers(taken), kind
    assert context is Context
    asked = reply_type(message)
    assert answers(reply) <= answers(asked) | set(reply_variants(asked))
