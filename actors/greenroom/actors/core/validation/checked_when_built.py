"""The metaclass of requests: validation when a program builds one in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from greenroom.actors.core.validation.strict_json import are_plain


class CheckedWhenBuilt(msgspec.StructMeta):
    """Validates requests that are built in Python.

    Decoders and `msgspec.structs.replace` do not call this, so nothing from the wire is checked twice.
    `parse.check_request` makes the refusal: it names the field, the limit and the value.
    """

    if not TYPE_CHECKING:  # type checkers would give its parameters to every request

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Build a request, or refuse a value that breaks a rule of its field."""
            built = super().__call__(*args, **kwargs)
            if not (are_plain((*args, *kwargs.values())) and _fits(built)):
                from greenroom.actors.core.validation.parse import check_request  # noqa: PLC0415 - it imports requests

                check_request(built)
            return built


def _fits(built: Any) -> bool:
    given = {name: value for name, value in msgspec.structs.asdict(built).items() if value is not UNSET}
    try:
        msgspec.convert(given, type(built))
    except msgspec.ValidationError:
        return False  # invalid, or JSON has another form for it, such as text for a time
    return True
