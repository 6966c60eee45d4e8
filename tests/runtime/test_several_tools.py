"""Several AI tools on one folder, each with its `greenroom serve`; when some end, nobody loses anything."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support import stores
from support.commands import run_on_store, sentence
from support.several import ToolClient, relay_statistics, stats_text, tool_client, tool_clients, until_owner

if TYPE_CHECKING:
    from pathlib import Path

ENDS = ["end of input", "SIGTERM", "SIGINT", "SIGKILL"]


async def write(client: ToolClient, session: str, count: int, first: int = 0) -> dict[int, str]:
    """Send messages without waiting for their answers; return their texts by request."""
    sent: dict[int, str] = {}
    for number in range(first, first + count):
        content = f"{client.name} {number}"
        sent[await client.send("add_message", session_id=session, content=content)] = content
    return sent


# -- together ------------------------------------------------------------------


@pytest.mark.promise("sharing.together", "sharing.identity")
async def test_what_one_tool_writes_the_others_see_at_once_each_as_itself(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "bob", "cy", modern="cy") as (ann, bob, cy):
        session = (await ann.call("create_session", purpose="paper"))["session_id"]
        expected = []
        for number in range(5):
            for each in (ann, bob, cy):
                added = await each.call("add_message", session_id=session, content=f"{each.name} {number}")
                assert added["success"]
                expected.append(f"{each.name} {number}")
                for reader in (ann, bob, cy):
                    assert await reader.contents(session) == expected
        assert await bob.call("set_memory", key="k", value="bob's")
        assert (await cy.call("get_memory", key="k"))["code"] == "MEMORY_NOT_FOUND"
        assert (await ann.call("get_memory", key="k"))["code"] == "MEMORY_NOT_FOUND"
        assert (await bob.call("get_memory", key="k"))["value"] == "bob's"
        await cy.call("add_message", session_id=session, content="to myself", visibility="private")
        assert "to myself" in await cy.contents(session)
        assert "to myself" not in await bob.contents(session)
        assert "to myself" not in await ann.contents(session)
        senders = (await ann.call("get_messages", session_id=session, limit=3))["messages"]
        assert {message["sender"] for message in senders} == {"ann", "bob", "cy"}
        relay = await relay_statistics(tmp_path / "store")
        assert (relay["role"], relay["owner_pid"]) == ("owner", ann.process.pid)
        assert relay["attached_pids"] == sorted([bob.process.pid, cy.process.pid])


@pytest.mark.promise("sharing.together")
async def test_refusals_and_bad_requests_are_the_same_over_the_relay(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "ben") as both:
        session = (await both[0].call("create_session", purpose="p", session_id="s"))["session_id"]
        for tool, arguments in (
            ("get_session", {"session_id": "none"}),
            ("create_session", {"purpose": "p", "session_id": session}),
            ("add_message", {"session_id": session, "content": "x" * 10_001}),
            ("get_messages", {"session_id": session, "limit": -1}),
            ("get_messages", {"session_id": session, "cursor": "nonsense"}),
            ("search_context", {"session_id": "none", "query": "q"}),
        ):
            ours, theirs = [await each.call(tool, **arguments) for each in both]
            assert ours == theirs
            assert ours["success"] is False
        pages = [(await each.request("resources/list"))["result"]["resources"] for each in both]
        assert [page[0]["uri"] for page in pages] == ["agent://ann/memory", "agent://ben/memory"]
        assert pages[0][1:] == pages[1][1:] != []
        listed = [await each.call("list_sessions") for each in both]
        assert listed[0] == listed[1]
        assert listed[0]["sessions"]


@pytest.mark.promise("sharing.subscriptions")
async def test_subscribers_in_every_process_and_of_both_eras_are_told(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "bob", "cy", modern="cy") as tools:
        session = (await tools[0].call("create_session", purpose="p"))["session_id"]
        for each in tools:
            await each.watch(f"session://{session}")
        for writer in tools:
            await writer.call("add_message", session_id=session, content="news")
            for each in tools:
                assert (await each.notice())["params"]["uri"] == f"session://{session}"
        hidden = await tools[1].call(
            "add_message", session_id=session, content="to myself", visibility="private"
        )
        assert hidden["success"]
        await tools[1].notice()
        for each in (tools[0], tools[2]):
            await each.call("list_memory")
            assert each.notices == []


@pytest.mark.promise("sharing.together")
async def test_sockets_of_an_attached_process_serve_and_tell_the_same(tmp_path: Path) -> None:
    async with tool_client(tmp_path, "ann") as ann:
        session = (await ann.call("create_session", purpose="p"))["session_id"]
        flags = ("--stdio", "--http", "127.0.0.1:0", "--ws", "127.0.0.1:0")
        async with tool_client(tmp_path, "bob", *flags) as bob:
            await bob.call("add_message", session_id=session, content="b")
            url = re.findall(r"listening on (http://\S+)/mcp", bob.server.errors())[0]
            health = await fetched(f"{url}/healthz")
            metrics = await fetched(f"{url}/metrics")
            assert "greenroom_owner 0.0" in metrics
            assert health
            assert await ann.end("SIGKILL") == -signal.SIGKILL
            assert await bob.contents(session) == ["b"]
            await until_owner(tmp_path, bob)
            metrics = await fetched(f"{url}/metrics")
            assert "greenroom_owner 1.0" in metrics
            assert "greenroom_takeovers_total 1.0" in metrics


async def fetched(url: str) -> str:
    program = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
    done = await trio.run_process([sys.executable, "-c", program, url], capture_stdout=True)
    return done.stdout.decode()


# -- ends ----------------------------------------------------------------------


@pytest.mark.promise("sharing.subscriptions")
@pytest.mark.parametrize("modern", ["", "bob"])
async def test_a_subscription_is_answered_once_the_owner_knows_of_it(tmp_path: Path, modern: str) -> None:
    async with tool_clients(tmp_path, "ann", "bob", modern=modern) as (ann, bob):
        session = (await ann.call("create_session", purpose="paper"))["session_id"]
        uri = f"greenroom://conversation/{session}"
        ann.process.send_signal(signal.SIGSTOP)
        if modern:
            wanted = {"notifications": {"resourceSubscriptions": [uri]}}
            subscribed = await bob.client.send_request("subscriptions/listen", wanted)
        else:
            subscribed = await bob.client.send_request("resources/subscribe", {"uri": uri})
        await bob.request("tools/list")
        assert not bob.has_answer(subscribed)
        assert bob.notices == []
        ann.process.send_signal(signal.SIGCONT)
        if modern:
            await bob.notice("notifications/subscriptions/acknowledged")
        else:
            assert "result" in await bob.answer(subscribed)
        await ann.call("add_message", session_id=session, content="hello")
        assert (await bob.notice())["params"]["uri"] == uri


@pytest.mark.promise("sharing.takeover", "sharing.exactly-once", "sharing.subscriptions")
@pytest.mark.parametrize("how", ENDS)
async def test_when_the_owner_ends_nobody_loses_anything(tmp_path: Path, how: str) -> None:
    async with tool_clients(tmp_path, "ann", "bob", "cy", modern="cy") as (ann, bob, cy):
        session = (await ann.call("create_session", purpose="p"))["session_id"]
        for each in (bob, cy):
            await each.watch(f"session://{session}")
        sent = {each: await write(each, session, 60) for each in (bob, cy)}
        code = await ann.end(how)
        assert code == (-signal.SIGKILL if how == "SIGKILL" else 0), ann.server.errors()
        for each in (bob, cy):
            sent[each] |= await write(each, session, 60, first=60)
        reads = {each: await each.send("get_session", session_id=session) for each in (bob, cy)}
        for each in (bob, cy):
            for number in sent[each]:
                assert (await each.result(number))["success"]
            assert (await each.result(reads[each]))["success"]
        owner = await until_owner(tmp_path, bob, cy)
        kept = await owner.contents(session)
        for each in (bob, cy):
            assert [content for content in kept if content.startswith(each.name)] == list(sent[each].values())
            assert await each.contents(session) == kept
        assert len(kept) == 240
        assert (await relay_statistics(tmp_path / "store"))["takeovers"] == 1
        for each in (bob, cy):
            await settled(each)
        await (bob if owner is cy else cy).call("add_message", session_id=session, content="after all that")
        for each in (bob, cy):
            await each.notice()


async def settled(client: ToolClient) -> None:
    """Take the notices of what has happened until now: at most one comes later than an answer."""
    await trio.sleep(0.2)  # the window in which changes become one
    await client.call("list_memory")
    assert client.notices, "a subscription is told after a takeover"
    client.notices.clear()


@pytest.mark.promise("sharing.subscriptions")
async def test_a_quiet_subscription_is_told_once_after_a_takeover(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "bob", "cy", modern="cy") as (ann, bob, cy):
        session = (await ann.call("create_session", purpose="p"))["session_id"]
        for each in (bob, cy):
            await each.watch(f"session://{session}")
        await ann.kill()
        for each in (bob, cy):
            await each.notice()
        await until_owner(tmp_path, bob, cy)
        for each in (bob, cy):
            await each.call("get_session", session_id=session)
            assert each.notices == []
        await cy.call("add_message", session_id=session, content="x")
        for each in (bob, cy):
            await each.notice()


@pytest.mark.promise("sharing.takeover")
async def test_when_an_attached_one_is_killed_the_others_do_not_notice(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "bob", "cy") as (ann, bob, cy):
        session = (await ann.call("create_session", purpose="p"))["session_id"]
        sent = {each: await write(each, session, 50) for each in (ann, bob, cy)}
        await bob.kill()
        for each in (ann, cy):
            for number in sent[each]:
                assert (await each.result(number))["success"]
        await until_owner(tmp_path, ann, cy)
        kept = await ann.contents(session)
        for each in (ann, cy):
            assert [content for content in kept if content.startswith(each.name)] == list(sent[each].values())
        theirs = [content for content in kept if content.startswith("bob")]
        assert theirs == list(sent[bob].values())[: len(theirs)]
        assert (await relay_statistics(tmp_path / "store"))["takeovers"] == 0


@pytest.mark.promise("sharing.hung-owner")
async def test_a_hung_owner_makes_the_others_say_so_until_it_goes_on(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "bob") as (ann, bob):
        session = (await ann.call("create_session", purpose="p"))["session_id"]
        ann.process.send_signal(signal.SIGSTOP)
        said = {"session_id": session, "content": "waits", "idempotency_key": "the-only-one"}
        read = await bob.send("get_session", session_id=session)
        waiting = await bob.result(await bob.send("add_message", **said))
        looked = await bob.result(read)
        assert (looked["code"], looked["details"]["outcome"]) == ("OVERLOADED", "not_done")
        assert (waiting["code"], waiting["details"]["outcome"]) == ("OVERLOADED", "unknown")
        refused: dict[str, Any] = {}
        while "error" not in refused:
            with trio.move_on_after(1):
                refused = await bob.call("get_session", session_id=session)
        assert refused["code"] == "OVERLOADED"
        assert refused["details"]["retry_after_ms"] > 0
        assert refused["details"]["outcome"] == "not_done"
        ann.process.send_signal(signal.SIGCONT)
        done: dict[str, Any] = {}
        while not done.get("success"):
            done = await bob.call("add_message", **said)
        assert await ann.contents(session) == ["waits"]
        refused = await bob.call("get_session", session_id=session)
        assert refused["success"] or refused["code"] == "OVERLOADED"  # its next sign is on its way
        assert (await relay_statistics(tmp_path / "store"))["takeovers"] == 0


@pytest.mark.promise("sharing.hung-owner")
async def test_commands_name_a_hung_owner_or_wait_for_it_if_told_to(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "bob") as (ann, bob):
        assert (await bob.call("list_sessions"))["success"]
        ann.process.send_signal(signal.SIGSTOP)
        waited: list[subprocess.CompletedProcess[str]] = []

        async def run(*command: str) -> subprocess.CompletedProcess[str]:
            return await trio.to_thread.run_sync(run_on_store, tmp_path, *command)

        async def wait(*command: str) -> None:
            waited.append(await run(*command, "--wait"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, "export", "-")
            nursery.start_soon(wait, "stats")
            for command, code in (("keys", "list"), 75), (("verify",), 1), (("stats",), 1):
                done = await run(*command)
                assert (done.returncode, done.stdout) == (code, "")
                assert f"process {ann.process.pid}" in sentence(done)
                assert re.search("does not answer|has not answered", sentence(done))
            assert waited == []
            ann.process.send_signal(signal.SIGCONT)
        assert [each.returncode for each in waited] == [0, 0]
        assert any(f"{ann.process.pid}" in each.stdout for each in waited)


@pytest.mark.promise("sharing.hung-owner")
@pytest.mark.parametrize("command", ["backup", "verify"])
@pytest.mark.parametrize("flags", [(), ("--wait",)])
async def test_an_owner_that_hangs_in_the_midst_of_its_work_is_named(
    tmp_path: Path, command: str, flags: tuple[str, ...]
) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    grows_in = copies if command == "backup" else tmp_path / "store"
    async with tool_clients(tmp_path, "ann") as (ann,):
        ended: list[subprocess.CompletedProcess[str]] = []

        async def run(number: int) -> None:
            words = [command, *([str(copies / str(number))] if command == "backup" else []), *flags]
            ended.append(await trio.to_thread.run_sync(run_on_store, tmp_path, *words))

        for number in range(100):  # one may be done before its owner is suspended
            ended.clear()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run, number)
                while not ended and not any(grows_in.glob(f".greenroom.{'?' * 16}")):
                    await trio.lowlevel.checkpoint()
                ann.process.send_signal(signal.SIGSTOP)
                if flags:
                    done = await trio.to_thread.run_sync(run_on_store, tmp_path, "stats")
                    assert f"process {ann.process.pid}" in sentence(done)
                    waits = not ended
                    ann.process.send_signal(signal.SIGCONT)
            ann.process.send_signal(signal.SIGCONT)
            if waits if flags else ended[0].returncode:
                break
        assert ended[0].returncode == (0 if flags else 1)
        if not flags:
            assert f"process {ann.process.pid}" in sentence(ended[0])
            assert "has not answered" in sentence(ended[0])


@pytest.mark.promise("sharing.hung-owner")
async def test_a_hung_owner_keeps_nobody_from_ending_nor_from_starting(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "bob") as (ann, bob):
        session = (await ann.call("create_session", purpose="p"))["session_id"]
        ann.process.send_signal(signal.SIGSTOP)
        number = await bob.send("add_message", session_id=session, content="x")
        assert await bob.end("SIGTERM") == 0
        assert (await bob.answer(number))["error"]["message"] == "Connection closed"
        async with tool_client(tmp_path, "cy") as cy:
            refused: dict[str, Any] = {}
            while "error" not in refused:  # what is asked before the fifth silent second waits
                with trio.move_on_after(1):
                    refused = await cy.call("list_sessions")
            assert refused["code"] == "OVERLOADED"
            await ann.kill()
            await until_owner(tmp_path, cy)
            assert (await cy.call("list_sessions"))["success"]


@pytest.mark.promise("sharing.takeover")
async def test_an_owner_that_lost_its_lock_file_ends_and_another_goes_on(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "bob") as (ann, bob):
        session = (await ann.call("create_session", purpose="p"))["session_id"]
        (tmp_path / "store" / "owner.lock").unlink()
        sent = await write(bob, session, 20)
        assert await ann.process.wait() == 74
        for number in sent:
            assert (await bob.result(number))["success"]
        assert await bob.contents(session) == list(sent.values())


def assert_says_what_is_full(answer: dict[str, Any]) -> None:
    """The limit, the numbers and the remedy, in words and as members."""
    assert answer["code"] == "STORAGE_FULL"
    used, most = answer["details"]["used_bytes"], answer["details"]["max_size"]
    assert (most, most // 2 < used < most) == (2 << 20, True)
    assert f"{used:,} of the {most:,} bytes that --max-size allows" in answer["error"]
    assert "start with a larger --max-size" in answer["error"]


@pytest.mark.promise("sharing.takeover")
async def test_a_full_store_is_told_over_the_relay_and_reads_go_on(tmp_path: Path) -> None:
    async with (
        tool_client(tmp_path, "ann", "--max-size", "2MiB") as ann,
        tool_client(tmp_path, "bob", "--max-size", "2MiB") as bob,
    ):
        session = (await bob.call("create_session", purpose="p"))["session_id"]
        count = 0
        added: dict[str, Any] = {"success": True}
        while added["success"]:
            added = await bob.call("add_message", session_id=session, content="x" * 10_000)
            count += added["success"]
        assert_says_what_is_full(added)
        for each in (bob, ann):
            assert len(await each.contents(session)) == count
        await ann.kill()
        assert len(await bob.contents(session)) == count
        added = await bob.call("add_message", session_id=session, content="x" * 10_000)
        assert_says_what_is_full(added)


# -- starts --------------------------------------------------------------------


@pytest.mark.promise("sharing.start")
@pytest.mark.parametrize("attempt", range(3))
async def test_of_three_started_at_the_same_instant_one_owns_and_all_serve(
    tmp_path: Path, attempt: int
) -> None:
    async with AsyncExitStack() as stack:
        started: list[ToolClient] = []

        async def start(name: str, begun: trio.Event) -> None:
            async with tool_client(tmp_path, name) as client:
                started.append(client)
                begun.set()
                await trio.sleep_forever()

        nursery = await stack.enter_async_context(trio.open_nursery())
        begun = [trio.Event() for _ in range(3)]
        for number, event in enumerate(begun):
            nursery.start_soon(start, f"agent {attempt} {number}", event)
        for event in begun:
            await event.wait()
        await until_owner(tmp_path, *started)
        session = (await started[0].call("create_session", purpose="p"))["session_id"]
        for each in started:
            assert (await each.call("add_message", session_id=session, content=each.name))["success"]
        for each in started:
            assert await each.contents(session) == [tool.name for tool in started]
        nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.start")
async def test_a_folder_whose_path_is_too_long_for_a_socket_is_shared_too(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30)
    home.mkdir()
    async with tool_clients(home, "ann", "bob") as (ann, bob):
        session = (await ann.call("create_session", purpose="p"))["session_id"]
        assert (await bob.call("add_message", session_id=session, content="b"))["success"]
        assert await ann.end("end of input") == 0
        assert await bob.contents(session) == ["b"]
        await until_owner(home, bob)


HOLD = """
import sys
from pathlib import Path
from greenroom.runtime.lmdb.lock_file import FolderLock
with FolderLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.promise("sharing.start", "cli.exit-codes")
def test_a_folder_that_is_held_by_what_shares_nothing_is_refused_by_name(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "store"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        done = run_on_store(tmp_path, "serve")
        assert done.returncode == 75
        assert f"process {holder.pid}" in sentence(done)
        assert holder.stdin is not None
        holder.stdin.close()


@pytest.mark.promise("sharing.start")
async def test_a_store_that_is_being_shared_is_not_restored_over(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "bob") as (ann, bob):
        await bob.call("create_session", purpose="p", session_id="kept")
        copy = tmp_path / "copy"
        assert run_on_store(tmp_path, "backup", str(copy)).returncode == 0
        assert run_on_store(tmp_path, "restore", str(copy)).returncode == 75
        await ann.kill()
        assert (await bob.call("get_session", session_id="kept"))["success"]
        await until_owner(tmp_path, bob)
        assert run_on_store(tmp_path, "restore", str(copy)).returncode == 75
        assert run_on_store(tmp_path, "verify").returncode == 0


# -- what happens to the folder ------------------------------------------------


@pytest.mark.promise("sharing.folder")
@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
async def test_when_the_folder_goes_everybody_ends_with_a_sentence(tmp_path: Path, *, replaced: bool) -> None:
    async with tool_clients(tmp_path, "ann", "bob") as (ann, bob):
        await ann.call("create_session", purpose="p")
        store = tmp_path / "store"
        if replaced:
            store.rename(tmp_path / "away")
            store.mkdir(mode=0o700)
        else:
            shutil.rmtree(store)
        assert await ann.process.wait() in {73, 74}
        assert await bob.process.wait() in {73, 74}
        for each in (ann, bob):
            *_, last = each.server.errors().splitlines()
            assert last.startswith("greenroom serve: ")
            assert "Traceback" not in each.server.errors()
        if replaced:
            assert list(store.iterdir()) == []


@pytest.mark.promise("sharing.folder")
async def test_a_folder_that_became_read_only_ends_whom_is_to_take_over(tmp_path: Path) -> None:
    with stores.small_disk(tmp_path / "disk", "8m") as disk:
        home = tmp_path / "home"
        home.mkdir()
        (home / "store").symlink_to(disk)
        async with tool_clients(home, "ann", "bob") as (ann, bob):
            await ann.call("create_session", purpose="p")
            bob.process.send_signal(signal.SIGSTOP)
            await ann.kill()
            if (await trio.run_process(["mount", "-o", "remount,ro", disk], check=False)).returncode:
                pytest.skip("NOT TESTED: this system does not mount a disk anew")
            bob.process.send_signal(signal.SIGCONT)
            assert await bob.process.wait() == 73
            *_, last = bob.server.errors().splitlines()
            assert last.startswith("greenroom serve: ")
            assert "Read-only file system" in last


# -- what an operator sees -----------------------------------------------------


@pytest.mark.promise("sharing.operator")
async def test_stats_say_who_owns_and_who_is_attached(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann", "bob", "cy") as (ann, bob, cy):
        text = await trio.to_thread.run_sync(stats_text, tmp_path)
        assert re.search(rf"^  owner pid +{ann.process.pid}$", text, re.MULTILINE)
        pids = ", ".join(map(str, sorted([bob.process.pid, cy.process.pid])))
        assert re.search(rf"^  attached pids +{pids}$", text, re.MULTILINE)
        assert re.search(r"^  takeovers +0$", text, re.MULTILINE)
        await ann.kill()
        owner = await until_owner(tmp_path, bob, cy)
        text = await trio.to_thread.run_sync(stats_text, tmp_path)
        assert re.search(rf"^  owner pid +{owner.process.pid}$", text, re.MULTILINE)
        assert re.search(r"^  takeovers +1$", text, re.MULTILINE)
