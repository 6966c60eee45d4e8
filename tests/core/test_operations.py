"""The registry of operations: declared once, and nothing declared is left out of what derives from it."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from greenroom.actors import API_REQUESTS, REQUESTS
from greenroom.actors.core.auth.scopes import SCOPES
from greenroom.actors.core.operations import OPERATIONS, operation
from greenroom.runtime import Message

pytestmark = pytest.mark.promise("identity.scopes")


def test_every_operation_is_listed_where_it_says() -> None:
    declared = {name: each.request for name, each in OPERATIONS.items()}
    assert declared == dict(API_REQUESTS)
    assert {name for name, each in OPERATIONS.items() if each.tool is not None} == set(REQUESTS)


def test_every_operation_needs_a_scope_that_exists() -> None:
    assert {each.scope for each in OPERATIONS.values()} <= set(SCOPES)


def test_a_message_has_the_parameters_of_what_is_declared_of_it() -> None:
    messages = [each for each in OPERATIONS.values() if issubclass(each.request, Message)]
    for each in messages:
        fields = set(each.request.__struct_fields__)
        assert each.writes == ("idempotency_key" in fields), each.name
        assert each.by_memory_id == ("memory_id" in fields), each.name
        assert not each.makes_id or "session_id" in fields
    assert len(messages) > 30


def test_a_name_is_declared_once() -> None:
    class OtherMemory(msgspec.Struct, frozen=True):
        """Another request."""

    for module, name in (("elsewhere", "GetMemory"), (REQUESTS["get_memory"].__module__, "OtherMemory")):
        OtherMemory.__module__, OtherMemory.__qualname__ = module, name
        with pytest.raises(
            ValueError, match=rf"^get_memory is declared by .*\.GetMemory and by {module}\.{name}$"
        ):
            operation("get_memory", scope="memory:read")(OtherMemory)
    assert OPERATIONS["get_memory"].request is REQUESTS["get_memory"]


_AT_FIRST = """
from greenroom.actors.core.auth.scopes import needed_for_request, tools_of

for ask in (lambda: tools_of(frozenset("*")), lambda: needed_for_request("get_memory")):
    try:
        raise SystemExit(f"answered: {ask()}")
    except LookupError as error:
        assert "import greenroom.actors.app.requests first" in str(error)
from greenroom.actors.app.requests import REQUESTS

assert tools_of(frozenset("*")) == set(REQUESTS)
assert needed_for_request("get_memory") == "memory:read"

import importlib
from greenroom.actors.memories.requests import keyvalue_requests as keyvalue

importlib.reload(keyvalue)
"""


@pytest.mark.slow
def test_nothing_is_told_of_operations_before_all_are_declared() -> None:
    done = subprocess.run([sys.executable, "-c", _AT_FIRST], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
