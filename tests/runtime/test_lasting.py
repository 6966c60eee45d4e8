"""What has ended stays so when an older store is brought back: revoked keys, passports that were taken."""

from __future__ import annotations

import json
import logging
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from core.test_keys_process import bearer, create, keys
from harness import PATIENCE, clean_environment
from support.agents import AuditTrail, House, house, refused
from support.forking import forked_program
from support.keyed import administrator, create_key, revoke_key
from support.passports import begun, forged, member, signers, text_of
from support.stores import small_disk
from support.websocket_programs import connected, server

from greenroom.actors import (
    AddMessage,
    Agent,
    ApiKeyMade,
    CreateApiKey,
    ExportSession,
    KeyRefusedError,
    ListApiKeys,
    OpenedLink,
    PassportOptions,
    Principal,
    RestoreSession,
    RotateApiKey,
    StartSession,
    open_key_cache,
    open_link,
)
from greenroom.actors.sessions.passports import requests
from greenroom.runtime import (
    Actor,
    Address,
    Context,
    Encryption,
    InlineCommitter,
    Message,
    Replay,
    StoreError,
    StoreFailedError,
    backup,
    handles,
    open_runtime,
    restore,
)
from greenroom.runtime.store.writer import Writer
from greenroom.testing import DAY, VirtualClock
from greenroom.transports import WebSocketRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

pytestmark = pytest.mark.slow


class Place:
    """A store, its backup, and the list beside its secret."""

    def __init__(self, home: Path, clock: VirtualClock) -> None:
        self.folder = home / "data"
        self.secrets = home / "secrets"
        self._clock = clock
        self._backup = home / "backup.mdb"

    def opened(self, **options: Any) -> AbstractAsyncContextManager[House]:
        return house(self.folder, self._clock, **{"embedder": "none", "secrets": self.secrets} | options)

    def keep(self) -> None:
        backup(self.folder, self._backup)

    def bring_back(self) -> bool:
        """Bring the backup back; return whether the list was found."""
        return restore(self._backup, self.folder, secrets=self.secrets).has_list

    @property
    def listed(self) -> Path:
        (path,) = self.secrets.glob("*.lasting")
        return path

    def lines(self) -> list[Any]:
        return [json.loads(line[9:]) for line in self.listed.read_text().splitlines()]


@pytest.fixture
def place(tmp_path: Path, far_clock: VirtualClock) -> Place:
    return Place(tmp_path, far_clock)


async def status_of(at: House) -> dict[str, str]:
    listed = await administrator(at).ask(ListApiKeys())
    return {each.key_id: each.status for each in listed.keys}


async def opens(at: House, *made: ApiKeyMade) -> list[bool]:
    """Return which keys let somebody in who comes at once."""
    found = []
    async with open_key_cache(at.runtime, clock=at.clock) as cache:
        for each in made:
            try:
                cache.authenticate(each.api_key)
            except KeyRefusedError:
                found.append(False)
            else:
                found.append(True)
    return found


# -- keys ----------------------------------------------------------------------------


@pytest.mark.promise("lasting.keys")
async def test_keys_that_ended_since_a_backup_are_not_good_again_after_it_was_brought_back(
    place: Place,
) -> None:
    async with place.opened() as here:
        gone, rotated, kept = [await create_key(here) for _ in range(3)]
    place.keep()
    async with place.opened() as here:
        await revoke_key(here, gone)
        await administrator(here).ask(RotateApiKey(key_id=rotated.key.key_id, overlap_seconds=60))
        late = await create_key(here)
        await revoke_key(here, late)
    assert place.bring_back()
    async with place.opened(queries=[AuditTrail]) as here:
        assert await opens(here, gone, rotated, kept, late) == [False, True, True, False]
        here.tick(60)
        assert await opens(here, gone, rotated, kept) == [False, False, True]
        said = [
            row.details for row in await here.runtime.query(AuditTrail()) if row.action == "end_api_key_again"
        ]
        assert {each["key"] for each in said} == {gone.key.key_id, rotated.key.key_id}
    async with place.opened(queries=[AuditTrail]) as here:  # and it is told once
        rows = await here.runtime.query(AuditTrail())
        assert sum(row.action == "end_api_key_again" for row in rows) == 2
        assert await opens(here, gone, rotated, kept) == [False, False, True]


@pytest.mark.promise("lasting.keys")
async def test_not_one_of_many_keys_is_good_for_a_moment(place: Place) -> None:
    async with place.opened() as here:
        made = [await create_key(here) for _ in range(300)]  # more than are handed to an actor at once
    place.keep()
    async with place.opened() as here:
        for each in made:
            await revoke_key(here, each)
    place.bring_back()
    async with place.opened() as here:
        assert not any(await opens(here, *made))


@pytest.mark.promise("lasting.passports")
async def test_a_link_that_was_used_is_not_valid_again(place: Place) -> None:
    options = PassportOptions(base_url="http://localhost")

    async def passport_at(at: House, url: str) -> OpenedLink | None:
        token = url.rpartition("/")[2]
        return await open_link(at.runtime, token, None, options=options, is_valid=lambda _: True)

    urls = []
    async with place.opened() as at:
        agent = Agent(at.runtime, Principal(agent_id="a"), passports=options)
        for _ in range(2):
            started = await agent.ask(StartSession(new=True))
            await agent.ask(AddMessage(session_id=started.session_id, content="so it stays"))
            passport = started.memory_passport
            assert passport is not None
            assert passport.export_url is not None
            urls.append(passport.export_url)
    place.keep()
    async with place.opened() as at:
        assert await passport_at(at, urls[0]) is not None
    assert place.bring_back()
    async with place.opened() as at:
        assert await passport_at(at, urls[0]) is None
        assert await passport_at(at, urls[1]) is not None


@pytest.mark.promise("lasting.keys")
async def test_a_backup_may_be_brought_back_more_than_once_and_a_newer_one_after_an_older(
    place: Place,
) -> None:
    async with place.opened() as here:
        first, second = [await create_key(here) for _ in range(2)]
    place.keep()
    for each in (first, second):
        async with place.opened() as here:
            await revoke_key(here, each)
        place.bring_back()
        async with place.opened() as here:
            assert await opens(here, first, second) == [False, each is first]


@pytest.mark.quick
@pytest.mark.promise("lasting.keys")
async def test_a_revocation_that_a_crash_cut_short_is_done_or_not_known(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is written first: whoever was told of a revocation was told the truth."""
    async with place.opened() as here:
        made = await create_key(here)

    def fail(*_: object) -> None:
        raise OSError("the disk is gone")

    with pytest.raises(StoreFailedError):  # noqa: PT012  the server ends so
        async with place.opened() as here:
            monkeypatch.setattr(Writer, "_write", fail)
            await revoke_key(here, made)
    monkeypatch.undo()
    async with place.opened() as here:
        assert await status_of(here) == {made.key.key_id: "revoked"}


@pytest.mark.promise("lasting.keys")
async def test_every_process_and_the_command_line_know_it(tmp_path: Path) -> None:
    made = create(tmp_path)
    store, old = tmp_path / "store", tmp_path / "old.mdb"
    backup(store, old)
    keys(tmp_path, "revoke", made["key"]["key_id"])
    assert "list of what has ended" not in _restored(tmp_path)
    async with server(tmp_path) as (_owner, first), server(tmp_path) as (_attached, second):
        for port in (first, second):
            with pytest.raises(WebSocketRefusedError, match="revoked"):
                async with connected(f"ws://127.0.0.1:{port}", headers=bearer(made)):
                    pass
    listed = json.loads(keys(tmp_path, "list", "--json"))["keys"]
    assert [each["status"] for each in listed] == ["revoked"]
    assert "list of what has ended" in _restored(tmp_path, without_list=True)


def _restored(home: Path, *, without_list: bool = False) -> str:
    """Bring the backup back by the command; return what it says."""
    if without_list:
        next(home.rglob("*.lasting")).unlink()
    command = [*forked_program(), "restore", "--data", str(home / "store"), str(home / "old.mdb")]
    done = subprocess.run(
        command, env=clean_environment(home), capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return done.stdout


# -- passports -------------------------------------------------------------------------


@pytest.mark.promise("lasting.passports")
async def test_a_passport_that_was_taken_since_is_not_taken_again(place: Place) -> None:
    async with place.opened() as here:
        claude = member(here.runtime)
        await begun(claude, "hello")
        exported = await claude.ask(ExportSession(one_time=True))
        other = await claude.ask(ExportSession(one_time=True))
        reusable = await claude.ask(ExportSession())
    place.keep()
    async with place.opened() as here:
        claude = member(here.runtime)
        for each in (exported, reusable):
            await claude.ask(RestoreSession(passport=each.claim, idempotency_key=f"once {each.passport_id}"))
        assert {line[4] for line in place.lines()} == {exported.passport_id}
    assert place.bring_back()
    async with place.opened() as here:
        claude, cursor = member(here.runtime), member(here.runtime, "cursor", user="other")
        for agent in (claude, cursor):
            with refused("PASSPORT_REDEEMED"):
                await agent.ask(RestoreSession(passport=exported.claim))
        for each in (other, reusable):
            await cursor.ask(RestoreSession(passport=each.claim))


@pytest.mark.promise("lasting.passports")
async def test_who_had_not_done_with_a_passport_goes_on_and_nobody_else(place: Place) -> None:
    async with place.opened() as here:
        claude = member(here.runtime)
        await begun(claude, "hello")
        exported = await claude.ask(ExportSession(one_time=True))
        text = json.loads(await text_of(claude, exported))
    place.keep()
    async with place.opened() as here:
        begin = requests.Redeem(
            attempt="ab" * 16,
            session_id="any",
            one_time=True,
            expires_at=msgspec.convert(text["expires_at"], type=type(exported.expires_at)),
        )
        address = requests.passport_address(exported.passport_id)
        await here.runtime.ask(address, begin, principal=claude.principal)
    place.bring_back()
    async with place.opened() as here:
        claude, cursor = member(here.runtime), member(here.runtime, "cursor", user="other")
        with refused("PASSPORT_REDEEMED"):
            await cursor.ask(RestoreSession(passport=exported.claim))
        first = await claude.ask(RestoreSession(passport=exported.claim))
        again = await claude.ask(RestoreSession(passport=exported.claim))
        assert again.session_id == first.session_id


@pytest.mark.quick
@pytest.mark.promise("lasting.passports")
async def test_a_strangers_passport_that_was_taken_since_is_not_taken_again(place: Place) -> None:
    """The passport's actor has nothing in the backup, not even the text."""
    async with place.opened() as here:
        claude = member(here.runtime)
        await begun(claude, "hello")
        text = forged(await text_of(claude, await claude.ask(ExportSession(one_time=True))), signers("b"))
        strangers = signers("b").name
    place.keep()
    async with place.opened() as here:
        await member(here.runtime, trusted=(strangers,)).ask(RestoreSession(passport=text))
    place.bring_back()
    async with place.opened() as here:
        with refused("PASSPORT_REDEEMED"):
            await member(here.runtime, trusted=(strangers,)).ask(RestoreSession(passport=text))


@pytest.mark.quick
@pytest.mark.promise("lasting.list")
async def test_the_list_of_an_encrypted_store_names_nobody(place: Place) -> None:
    key = Encryption(lambda: bytes(range(32)), required=True)
    async with place.opened(encryption=key) as here:
        planted = member(here.runtime, "planted-agent", user="planted-user")
        session = await begun(planted, "planted words")
        exported = await planted.ask(ExportSession(one_time=True))
        await planted.ask(RestoreSession(passport=exported.claim))
        made = await administrator(here).ask(
            CreateApiKey(name="planted-name", scopes=["*"], user="planted-user")
        )
        await revoke_key(here, made)
    text = place.listed.read_text()
    assert len(place.lines()) == 3
    assert not [word for word in ("planted", session, made.api_key.rpartition("_")[2]) if word in text]


# -- the list --------------------------------------------------------------------------


@pytest.mark.promise("lasting.list")
async def test_without_the_list_restoring_says_what_comes_back(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with place.opened() as here:
        made = await create_key(here)
    place.keep()
    async with place.opened() as here:
        await revoke_key(here, made)
    place.listed.unlink()
    with caplog.at_level(logging.WARNING):
        async with place.opened() as here:  # the store itself knows
            assert await opens(here, made) == [False]
    assert "lacks lines" in caplog.text
    place.listed.unlink()
    assert not place.bring_back()
    async with place.opened() as here:
        assert await opens(here, made) == [True]
        await revoke_key(here, made)
    assert place.bring_back()
    async with place.opened() as here:
        assert await opens(here, made) == [False]


@pytest.mark.promise("lasting.list")
@pytest.mark.parametrize(
    "harm",
    [
        lambda text: b"\0" + text[1:],
        lambda text: text[: len(text) // 2] + b"x" + text[len(text) // 2 + 1 :],
        lambda text: text[:-3] + b"x" + text[-2:],
        lambda text: text + b"\n",
        lambda text: text.replace(b"\n", b"", 1),
        lambda text: b"deadbeef []\n" + text,
        lambda _: b"\xff\n",
    ],
)
async def test_a_damaged_list_keeps_the_store_closed_until_somebody_decides(
    place: Place, harm: Callable[[bytes], bytes]
) -> None:
    async with place.opened() as here:
        made = [await create_key(here) for _ in range(4)]
    place.keep()
    async with place.opened() as here:
        for each in made:
            await revoke_key(here, each)
    place.bring_back()
    sound = place.listed.read_bytes()
    place.listed.write_bytes(harm(sound))
    with pytest.raises(StoreError, match=r"\.lasting"):
        async with place.opened():
            pass
    place.listed.write_bytes(sound)
    async with place.opened() as here:
        assert not any(await opens(here, *made))


@pytest.mark.promise("lasting.list")
async def test_a_tail_that_was_not_written_whole_is_dropped(place: Place) -> None:
    async with place.opened() as here:
        first, second = [await create_key(here) for _ in range(2)]
    place.keep()
    async with place.opened() as here:
        await revoke_key(here, first)
    whole = place.listed.read_bytes()
    for cut in (1, 20, len(whole) - 1):
        place.listed.write_bytes(whole + whole[:cut])
        place.bring_back()
        async with place.opened() as here:
            assert await opens(here, first, second) == [False, True]
            assert place.listed.read_bytes() == whole
    async with place.opened() as here:
        await revoke_key(here, second)
    place.bring_back()
    async with place.opened() as here:
        assert await opens(here, first, second) == [False, False]


@pytest.mark.promise("lasting.list")
async def test_what_ends_after_the_list_was_lost_is_new_to_every_backup(place: Place) -> None:
    async with place.opened() as here:
        first, second = [await create_key(here) for _ in range(2)]
        await revoke_key(here, first)
    place.keep()
    place.listed.unlink()
    async with place.opened() as here:
        await revoke_key(here, second)
    assert place.bring_back()
    async with place.opened() as here:
        assert await opens(here, first, second) == [False, False]


@pytest.mark.promise("lasting.list")
async def test_a_revocation_is_done_also_when_the_list_cannot_be_written(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with place.opened() as here:
        made = await create_key(here)
        path = place.listed
        path.unlink()
        path.mkdir()
        await revoke_key(here, made)
        assert await status_of(here) == {made.key.key_id: "revoked"}
    assert "cannot be written" in caplog.text
    with pytest.raises(StoreError, match=r"\.lasting"):
        async with place.opened():
            pass
    path.rmdir()
    async with place.opened() as here:
        assert await status_of(here) == {made.key.key_id: "revoked"}


@pytest.mark.promise("lasting.list")
async def test_lines_go_when_they_mean_nothing_any_more_and_numbers_go_on(
    place: Place, far_clock: VirtualClock
) -> None:
    async with place.opened() as here:
        for days in (1, 2, 30):
            made = await administrator(here).ask(CreateApiKey(name="n", scopes=["*"], expires_in_days=days))
            await revoke_key(here, made)
    assert [line[0] for line in place.lines()] == [1, 2, 3]
    assert place.listed.stat().st_mode & 0o777 == 0o600
    far_clock.jump(4 * DAY)
    async with place.opened():
        pass
    assert [line[0] for line in place.lines()] == [3]
    far_clock.jump(60 * DAY)
    async with place.opened() as here:
        await revoke_key(here, await create_key(here))
    assert [line[0] for line in place.lines()][-1] == 4


# -- without any of this server's actors -------------------------------------------------


class End(Message[None], frozen=True, kw_only=True):
    what: str
    until: int


class Ended(Message[list[str]], frozen=True, kw_only=True):
    pass


class Register(Actor):
    """What has ended, in the order of being heard of."""

    kind = "register"

    @handles(End)
    def end(self, request: End, context: Context) -> None:
        context.put(b"e", [*(context.get(b"e", list[str]) or []), request.what])
        context.record_revocation(request.what, until=request.until)

    @handles(Replay)
    def again(self, told: Replay, context: Context) -> None:
        known = context.get(b"e", list[str]) or []
        context.put(
            b"e", known + [what for raw in told.values if (what := json.loads(bytes(raw))) not in known]
        )

    @handles(Ended)
    def ended(self, _: Ended, context: Context) -> list[str]:
        return context.get(b"e", list[str]) or []


@pytest.mark.promise("lasting.list")
async def test_a_long_list_is_looked_through_while_the_store_is_open(
    tmp_path: Path, far_clock: VirtualClock
) -> None:
    secrets, address = tmp_path / "secrets", Address("register", "a")
    async with open_runtime(
        tmp_path / "data", actors=[Register], clock=far_clock, committer=InlineCommitter(), secrets=secrets
    ) as runtime:
        for number in range(1_200):
            until = far_clock.now() + (-2 * DAY if number % 100 else DAY)
            await runtime.ask(address, End(what=str(number), until=until))
        (path,) = secrets.glob("*.lasting")
        assert len(path.read_bytes().splitlines()) < 300


@pytest.mark.promise("lasting.list")
async def test_actors_are_told_in_order_and_before_anybody_else_is_heard(
    tmp_path: Path, far_clock: VirtualClock
) -> None:
    secrets, data, old = tmp_path / "secrets", tmp_path / "data", tmp_path / "old.mdb"

    def opened() -> AbstractAsyncContextManager[Any]:
        return open_runtime(
            data, actors=[Register], clock=far_clock, committer=InlineCommitter(), secrets=secrets
        )

    first, second = Address("register", "a"), Address("register", "b")
    later, over = far_clock.now() + DAY, far_clock.now() - 2 * DAY
    async with opened() as runtime:
        await runtime.ask(first, End(what="before", until=later))
    backup(data, old)
    async with opened() as runtime:
        for what in ("one", "two", "three"):
            await runtime.ask(first, End(what=what, until=later))
        await runtime.ask(second, End(what="other", until=later))
        await runtime.ask(second, End(what="over", until=over))
    for _ in range(2):
        restore(old, data, secrets=secrets)
        async with opened() as runtime:
            assert await runtime.ask(first, Ended()) == ["before", "one", "two", "three"]
            assert await runtime.ask(second, Ended()) == ["other"]
    await trio.lowlevel.checkpoint()


@pytest.mark.promise("lasting.list")
async def test_a_line_that_the_disk_took_half_of_harms_none_that_follow(
    tmp_path: Path, far_clock: VirtualClock
) -> None:
    address = Address("register", "a")
    with small_disk(tmp_path / "disk", "4m") as disk:

        def opened() -> AbstractAsyncContextManager[Any]:
            return open_runtime(
                tmp_path / "data",
                actors=[Register],
                clock=far_clock,
                committer=InlineCommitter(),
                secrets=disk / "secrets",
            )

        async with opened() as runtime:
            await runtime.ask(address, End(what="before", until=far_clock.now()))
            filler = disk / "filler"
            with suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4_096))
            await runtime.ask(address, End(what="x" * 8_192, until=far_clock.now()))
            filler.unlink()
            await runtime.ask(address, End(what="after", until=far_clock.now()))
        (path,) = (disk / "secrets").glob("*.lasting")
        assert [json.loads(line[9:])[-1] for line in path.read_text().splitlines()] == ["before", "after"]
        async with opened() as runtime:
            assert len(await runtime.ask(address, Ended())) == 3
