"""The rules of `docs/monitoring/`, and the figures of who comes in and what goes out that they need."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.commands import serving
from test_metrics_process import get, scrape

from greenroom.actors import (
    Agent,
    CreateApiKey,
    ExportMemories,
    ExportSession,
    PassportOptions,
    StartSession,
    StoreMemory,
    open_key_cache,
    open_link,
)
from greenroom.transports import Caller, KeyAuthenticator
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.observability.access import ADDRESSES, KEYS, AccessMeter

if TYPE_CHECKING:
    from support.agents import Enter

ALERTS = Path(__file__).parents[1] / "docs" / "monitoring" / "alerts.yml"
PROMETHEUS_OWN = {"up"}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def metrics_of(expression: str) -> set[str]:
    """Return the metrics that an expression of Prometheus reads: names of no function and no label."""
    plain = re.sub(r"\{[^}]*\}|\[[^]]*\]|\bby \([^)]*\)", "", expression)
    words = set(re.findall(r"(?<![\w.])[a-zA-Z_]\w*(?!\w*\s*\()", plain))
    return words - {"and", "or", "unless", "offset"}


@pytest.mark.promise("metrics.alerts")
@pytest.mark.slow
def test_every_rule_reads_what_a_server_says(tmp_path: Path) -> None:
    with serving(tmp_path, "--stdio", "--http", "127.0.0.1:0") as server:
        before = scrape(server)
        assert get(server, Authorization="Bearer gr_wrong")[0] == 401
        server.call("store_memory", content="the harbour opens at six", key="harbour")
        size = server.call("export_memories")["size_bytes"]
        after = scrape(server)
    names = {name for name, _ in before} | PROMETHEUS_OWN
    assert [rule["alert"] for rule in rules() if not metrics_of(rule["expr"]) <= names] == []
    assert all(metrics_of(rule["expr"]) and rule["annotations"]["summary"] for rule in rules())

    def grown(name: str) -> float:
        return after[f"greenroom_{name}_total", ()] - before[f"greenroom_{name}_total", ()]

    assert (grown("authentications_refused"), grown("exports"), grown("exported_bytes")) == (1, 1, size)
    assert grown("authentications") == 1, "the second scrape"


@pytest.mark.promise("metrics.alerts")
async def test_a_key_s_new_address_is_counted_and_its_first_is_not(enter: Enter) -> None:
    meter = AccessMeter()

    async def come(key: str, *addresses: str) -> int:
        for address in addresses:
            headers = [(b"authorization", f"Bearer {key}".encode())]
            await authenticator.authenticate(Caller(address=address), headers)
        return meter.statistics().new_addresses

    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        authenticator = KeyAuthenticator(cache, access=meter)
        admin = at.agent("root", user="owner", scopes=frozenset({"admin"}))
        one, other = [
            (await admin.ask(CreateApiKey(name=name, scopes=["*:read"]))).api_key for name in ("one", "other")
        ]
        await cache.load()
        assert await come(one, "192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1") == 0
        assert await come(one, "192.0.2.2") == 1
        assert await come(other, "192.0.2.2") == 1
        assert await come(one, "192.0.2.1", "192.0.2.2") == 1
        with pytest.raises(HttpRefusedError):
            await come(f"{one}x", "192.0.2.9")
    told = meter.statistics()
    assert (told.admitted, told.refused) == (7, 1)


@pytest.mark.promise("metrics.alerts")
def test_no_more_addresses_are_remembered_than_are_allowed() -> None:
    meter = AccessMeter()
    for number in range(ADDRESSES + 1):
        meter.record_admitted("key", f"address {number}")
    assert meter.statistics().new_addresses == ADDRESSES
    meter.record_admitted("key", f"address {ADDRESSES}")  # the newest is remembered
    meter.record_admitted("key", "address 1")
    assert meter.statistics().new_addresses == ADDRESSES
    meter.record_admitted("key", "address 0")  # the oldest is not
    assert meter.statistics().new_addresses == ADDRESSES + 1
    for number in range(KEYS):
        meter.record_admitted(f"key {number}", "address")
    meter.record_admitted("key", "elsewhere")  # forgotten, so this is its first
    assert meter.statistics().new_addresses == ADDRESSES + 1


@pytest.mark.promise("metrics.alerts")
async def test_what_is_exported_is_counted_by_its_bytes(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        meter = AccessMeter()
        alice = Agent(
            at.runtime,
            at.agent("a", user="alice").principal,
            passports=PassportOptions(base_url="http://localhost"),
            on_export=meter.record_export,
        )
        await alice.ask(StoreMemory(content="the harbour opens at six"))
        memories = await alice.ask(ExportMemories())
        passport = (await alice.ask(StartSession(workspace_path="/w", purpose="Häfen"))).memory_passport
        session = await alice.ask(ExportSession())
        told = meter.statistics()
        assert (told.exports, told.exported_bytes) == (2, memories.size_bytes + session.size_bytes)
        assert passport is not None
        opened = await open_link(
            at.runtime,
            (passport.export_url or "").rpartition("/")[2],
            None,
            options=PassportOptions(),
            is_valid=lambda _: True,
            on_export=meter.record_export,
        )
    assert opened is not None
    assert meter.statistics().exported_bytes == told.exported_bytes + len(opened.text.encode())
