"""Requests that are checked when a program builds them, as those from the wire are when they are decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec


class CheckedWhenBuilt(msgspec.StructMeta):
    """The metaclass of requests: building one in Python with a value that it may not have is refused.

    Decoders and `msgspec.structs.replace` do not come here, so nothing from the wire is checked twice.
    The refusal is that of `parse.check_request`: it names the field, the limit and the value.
    """

    if not TYPE_CHECKING:  # else a checker would take its parameters for those of every request

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Build a request.

            Raises:
                Refusal: ``VALIDATION_ERROR``: a value breaks a rule of its field.
            """
            built = super().__call__(*args, **kwargs)
            try:
                msgspec.convert(msgspec.structs.asdict(built), self)
            except msgspec.ValidationError:
                # What JSON says in another way, such as a time as text, is no fault.
                from greenroom.actors.base.parse import check_request  # noqa: PLC0415 - it imports requests

                check_request(built)
            return built
