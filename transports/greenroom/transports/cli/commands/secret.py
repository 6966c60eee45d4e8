"""`greenroom secret`: where a store's secret is, and another one when it is lost."""

from __future__ import annotations

import argparse

from greenroom.runtime import renew_secret
from greenroom.transports.base import exit_codes
from greenroom.transports.cli.output import remark, say
from greenroom.transports.cli.support.audit_record import record_afterwards
from greenroom.transports.cli.support.error_report import run_reported, start_logging
from greenroom.transports.config.load import Resolved
from greenroom.transports.config.settings import Settings


def secret(_chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Carry the action out; return the exit code."""
    start_logging(resolved.settings.log_level)
    return run_reported("secret", lambda: _renew(resolved.settings))


def _renew(settings: Settings) -> int:
    made = renew_secret(settings.data, settings.secrets, max_size=settings.max_size)
    record_afterwards(settings, "renew_secret", mark=made.mark)
    say(f"the store in {settings.data} has a new secret with the mark {made.mark}: {made.path}")
    remark("greenroom secret: API keys and passports made before end; keep a copy of the file")
    return exit_codes.OK
