"""Sessions, memories and the runtime behave in an encrypted store as in any other."""

from __future__ import annotations

from typing import Any

import pytest
from app import test_domain_model
from memories import test_memories_model
from sessions import test_session_service_model

from greenroom.runtime import Encryption
from greenroom.runtime.lmdb.encryption import Opened, open_seal
from greenroom.runtime.store import store
from runtime import test_runtime_model

pytestmark = pytest.mark.slow

ENCRYPTED = Encryption(lambda: bytes(32), required=True)


def sealed(environment: Any, tables: Any, encryption: Encryption | None, name: str) -> Opened:
    return open_seal(environment, tables, encryption or ENCRYPTED, name)


@pytest.fixture(autouse=True)
def every_store_is_encrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "open_seal", sealed)


@pytest.mark.promise("encryption.the_same")
@pytest.mark.parametrize(
    "model",
    [
        test_domain_model.test_sessions_and_memory_agree_with_the_model,
        test_memories_model.test_memories_agree_with_the_model,
        test_runtime_model.test_ledgers_keep_every_promise_through_crashes_and_full_disks,
        test_session_service_model.test_the_service_agrees_with_the_model,
    ],
)
def test_the_models_agree(model: Any) -> None:
    model()
