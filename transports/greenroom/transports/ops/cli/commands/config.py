"""`greenroom config`: prints the settings in force, with their sources."""

from __future__ import annotations

import argparse
import json
from typing import Any

from greenroom.actors.search.embedding.embedder import EmbedderChoice
from greenroom.actors.search.embedding.models.installed_models import resolve_auto as taken
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import all_settings
from greenroom.transports.ops.cli.output import say


def config(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Print each setting in the form that `greenroom` reads, or a dash for no value."""
    say(_json(resolved) if chosen.json else _table(resolved))
    return exit_codes.OK


def _table(resolved: Resolved) -> str:
    rows = [("setting", "value", "from")]
    for key, setting in all_settings().items():
        value = getattr(resolved.settings, key)
        rows.append(
            (key, setting.reader.show(value) if value not in (None, ()) else "-", str(resolved.sources[key]))
        )
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"{key:<{widths[0]}}  {value:<{widths[1]}}  {source}" for key, value, source in rows]
    lines += ["", f"configuration file: {resolved.config or 'none'}"]
    if (found := _embedder(resolved)) is not None:
        lines.append("the embedder is {embedder}: {reason}".format_map(found))
    lines += [f"not a setting: {each}" for each in resolved.strangers]
    return "\n".join(lines)


def _json(resolved: Resolved) -> str:
    settings: dict[str, Any] = {}
    for key in all_settings():
        value, source = getattr(resolved.settings, key), resolved.sources[key]
        settings[key] = {"value": value, "source": source.kind, "place": source.place or None}
    config_file = str(resolved.config) if resolved.config else None
    report = {
        "settings": settings,
        "config": config_file,
        "unknown_variables": resolved.strangers,
        "auto": _embedder(resolved),
    }
    return json.dumps(report, indent=2, default=str, ensure_ascii=False)


def _embedder(resolved: Resolved) -> dict[str, str] | None:
    """Return the embedder that ``auto`` selects, and the reason; None for another setting."""
    if resolved.settings.embedder != "auto":
        return None
    choice, reason = taken(EmbedderChoice(kind="auto", models=resolved.settings.models), looks_inside=True)
    return {"embedder": str(choice), "reason": reason}
