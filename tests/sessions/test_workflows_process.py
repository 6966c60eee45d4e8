"""Workflows of servers in processes of their own: killed, two on one folder, and the setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness import server_process
from support.several import tool_clients

if TYPE_CHECKING:
    from pathlib import Path

ROUTINE = ("git pull", "pytest -x", "git commit -m 'done'", "git push")


@pytest.mark.promise("workflows.durable")
async def test_steps_survive_a_server_that_is_killed(tmp_path: Path) -> None:
    async with server_process(tmp_path) as server:
        await server.client.initialize()
        for command in ROUTINE * 2:
            await server.client.call("record_workflow_step", command=command)
        server.process.kill()
        await server.process.wait()
    async with server_process(tmp_path) as server:
        await server.client.initialize()
        told = await server.client.call("suggest_next_action", context=["git pull"])
        assert (told["steps"], told["suggestions"][0]["command"]) == (8, "pytest -x")
        await server.client.end_input()
        await server.process.wait()


@pytest.mark.promise("workflows.durable")
async def test_two_servers_on_one_folder_learn_from_each_other(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "claude", "cursor") as (first, second):
        for command in ROUTINE:
            await first.call("record_workflow_step", command=command)
            await second.call("record_workflow_step", command=command)
        for tool in (first, second):
            told = await tool.call("suggest_next_action", context=["git pull"])
            assert (told["steps"], told["suggestions"][0]["command"]) == (8, "pytest -x")
        await first.call("workflow_checkpoint", name="here", state={"at": 3})
        assert (await second.call("workflow_checkpoint", name="here"))["state"] == {"at": 3}


@pytest.mark.promise("workflows.unasked")
async def test_the_setting_is_off_unless_it_is_switched_on(tmp_path: Path) -> None:
    for flags, steps in (((), 0), (("--learn-workflows",), 3)):
        async with server_process(tmp_path, *flags) as server:
            await server.client.initialize()
            for _ in range(3):
                await server.client.call("list_sessions")
            assert (await server.client.call("suggest_next_action"))["steps"] == steps
            await server.client.end_input()
            await server.process.wait()
