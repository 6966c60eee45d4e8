"""Audit records of commands; they are durable before the command ends."""

from __future__ import annotations

from typing import Any, Final

import trio

from greenroom.actors import Principal
from greenroom.actors.core.audit.actor import LOG, NoteDeed
from greenroom.actors.core.audit.query import CheckpointAudit
from greenroom.runtime import SharedRuntime
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.base.exit_codes import exit_code_for
from greenroom.transports.ops.cli.output import remark
from greenroom.transports.ops.cli.support.error_report import leaf_errors
from greenroom.transports.ops.cli.support.open_store import open_store

AGENT: Final = "command-line"
"""The agent in these records; the user in the records comes from the settings."""


def operator(settings: Settings) -> Principal:
    """Return the principal of the command line."""
    return Principal(agent_id=AGENT, user=settings.user)


async def record(runtime: SharedRuntime, principal: Principal, action: str, **details: Any) -> None:
    """Record an action in the audit log, durably if this process owns the folder."""
    await runtime.ask(LOG, NoteDeed(action=action, details=details), principal=principal)
    await runtime.query(CheckpointAudit())  # waits until the earlier records are stored


def record_afterwards(settings: Settings, action: str, **details: Any) -> None:
    """Record an action after a command that needed the folder for itself alone.

    The action is already done, so a failure to record it is only reported.
    """
    _record_alone(settings, action, details, "it is done, and not in the audit log")


def record_before(settings: Settings, action: str) -> None:
    """Record an action before a command after which the store cannot be opened.

    A failure to record it is only reported, as it is afterwards.
    """
    _record_alone(settings, action, {}, "this is not in the audit log")


def _record_alone(settings: Settings, action: str, details: dict[str, Any], failed: str) -> None:
    async def open_and_record() -> None:
        async with open_store(settings) as runtime:
            await record(runtime, operator(settings), action, **details)

    try:
        trio.run(open_and_record)
    except (Exception, BaseExceptionGroup) as error:
        verdict = exit_code_for(leaf_errors(error))
        if verdict is None:
            raise
        remark(f"greenroom: {failed}: {verdict[1]}")
