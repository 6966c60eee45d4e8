"""The services' "no"."""

from __future__ import annotations

from greenroom.runtime import Refusal


class ServiceError(Refusal, ValueError):
    """A service says no: an unknown session, a taken id, an impossible step, a value that cannot be kept.

    It is a ``ValueError`` with the ``code``, ``sentence`` and ``details`` of the `Refusal` that an MCP
    client would get. Nothing was changed. Errors that are not the caller's (a full store, a mailbox
    that is full) are no `ServiceError`.
    """
