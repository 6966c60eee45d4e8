"""API keys: how they are made, kept and ended, and whom they let in."""

from __future__ import annotations

import hmac
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import AuditTrail, refused

from greenroom.actors import (
    REQUESTS,
    Agent,
    ApiKeyMade,
    CreateApiKey,
    KeyCache,
    KeyRefusedError,
    ListApiKeys,
    Principal,
    RevokeApiKey,
    RotateApiKey,
    open_key_cache,
    parse_request,
)
from greenroom.actors.core.auth.grants import check_claims, credential_of, own_agent, principal_of
from greenroom.actors.core.auth.key_format import (
    digest_of,
    has_key,
    mask_keys,
    matches_digest,
    new_key,
    parse_key,
)
from greenroom.actors.core.auth.principal import MAX_NAME
from greenroom.actors.core.keys.actor import KEYS_ADDRESS, KeepKey, ReadKeys, RevokeKey
from greenroom.actors.core.validation.times import to_datetime
from greenroom.runtime import Refusal
from greenroom.testing import DAY

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter, House

pytestmark = pytest.mark.promise("keys.store")

HOUR = 3_600


def admin(at: House) -> Agent:
    return at.agent("root", user="owner", scopes=frozenset({"admin"}))


async def made(at: House, *scopes: str, **options: Any) -> ApiKeyMade:
    return await admin(at).ask(CreateApiKey(name="n", scopes=list(scopes or ("*:read",)), **options))


def status(key: ApiKeyMade, cache: KeyCache) -> str:
    try:
        cache.authenticate(key.api_key)
    except KeyRefusedError as error:
        return str(error)
    return "in"


def test_a_key_is_read_as_it_is_written_and_nothing_else_is() -> None:
    key = new_key(secrets.choice)
    assert parse_key(key.whole) == key
    assert key.whole != new_key(secrets.choice).whole
    assert len({new_key(secrets.choice).secret for _ in range(1_000)}) == 1_000
    for text in (
        "", "gr", "gr__", key.whole[:-1], key.whole + "x", key.whole + "\n", " " + key.whole,
        key.whole.upper(), key.whole.replace("gr_", "gx_"), key.whole.replace("_", "-"),
        f"gr_{key.key_id}_" + "é" * 43,
    ):  # fmt: skip
        assert parse_key(text) is None


def test_a_digest_fits_its_own_key_under_its_own_server_alone() -> None:
    key, other, pepper = new_key(secrets.choice), new_key(secrets.choice), b"p" * 32
    digest = digest_of(key, pepper)
    assert matches_digest(key, pepper, digest)
    assert not matches_digest(key, b"q" * 32, digest)
    assert not matches_digest(other, pepper, digest)
    assert not matches_digest(key._replace(key_id=other.key_id), pepper, digest)


def test_a_key_shows_itself_nowhere() -> None:
    key = new_key(secrets.choice)
    assert key.secret not in f"{key} {key!r} {[key]}"
    for text in (key.whole, f"/?key={key.whole}&x", f"Bearer {key.whole}", key.whole[:40]):
        assert has_key(text)
        assert key.secret[:12] not in mask_keys(text)
    assert mask_keys("gr_ and nothing else of a key") == "gr_ and nothing else of a key"


async def test_a_key_lets_its_holder_in_as_whom_it_was_made_for(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        assert not cache.required
        key = await made(
            at, "sessions:*", agent="bot", agent_type="worker", user="ann", projects=["p", "q"], rate_limit=7
        )
        await cache.load()
        assert cache.required
        shown = credential_of(cache.authenticate(key.api_key))
        said: dict[str, Any] = {"agent": "bot", "agent_type": None, "projects": frozenset()}
        assert principal_of(shown, **{**said, "projects": frozenset({"p"})}, address="::1") == Principal(
            agent_id="bot",
            agent_type="worker",
            user="ann",
            projects=frozenset({"p"}),
            scopes=frozenset({"sessions:*"}),
            key_id=key.key.key_id,
            address="::1",
        )
        assert principal_of(shown, **said, address=None).projects == {"p", "q"}
        assert principal_of(shown, **{**said, "agent": "client"}, address=None).agent_id == "bot"
        check_claims(shown.grant, **said)
        for claim in ({"agent": "other"}, {"agent_type": "other"}, {"projects": frozenset({"p", "r"})}):
            with refused("PERMISSION_DENIED"):
                check_claims(shown.grant, **{**said, **claim})


async def test_the_longest_names_of_agents_stay_two(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        key = await made(at)
        await cache.load()
        credential = credential_of(cache.authenticate(key.api_key))
        names = [own_agent(credential, "a" * 60 + end) for end in ("b", "c")]
        assert names[0] != names[1]
        assert len(own_agent(credential, "a" * MAX_NAME)) == MAX_NAME


async def test_a_key_without_a_user_works_for_the_one_who_made_it(enter: Enter) -> None:
    async with enter() as at:
        assert (await made(at)).key.user == "owner"


async def test_wrong_keys_are_refused_alike(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        key = await made(at)
        await cache.load()
        right = parse_key(key.api_key)
        assert right is not None
        wrong = (
            new_key(secrets.choice).whole,
            right._replace(secret=new_key(secrets.choice).secret).whole,
            "gr_",
            "",
            "x" * 100_000,
            "\0",
        )
        sentences = set()
        for text in wrong:
            with pytest.raises(KeyRefusedError) as caught:
                cache.authenticate(text)
            sentences.add(str(caught.value))
        assert sentences == {"the key is not valid on this server"}


async def test_wrong_keys_take_the_same_work_and_a_comparison_that_tells_no_time(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        key = await made(at)
        await cache.load()
        right = parse_key(key.api_key)
        assert right is not None
        done: list[tuple[str, int]] = []
        digest, compare = hmac.digest, hmac.compare_digest

        def seen_digest(pepper: bytes, message: bytes, algorithm: Any) -> bytes:
            done.append(("digest", len(message)))
            return digest(pepper, message, algorithm)

        def seen_compare(one: Any, other: Any) -> bool:
            done.append(("compare", len(one) + len(other)))
            return compare(one, other)

        monkeypatch.setattr(hmac, "digest", seen_digest)
        monkeypatch.setattr(hmac, "compare_digest", seen_compare)
        work = []
        for text in (
            right.whole,
            new_key(secrets.choice).whole,
            right._replace(secret=new_key(secrets.choice).secret).whole,
            right._replace(secret=right.secret[:-1] + "0").whole,
            "x",
            "",
        ):
            with suppress(KeyRefusedError):
                cache.authenticate(text)
            work.append(tuple(done))
            done.clear()
        assert set(work) == {(("digest", len(right.whole)), ("compare", 64))}


async def test_only_a_digest_is_kept(enter: Enter, folder: Path) -> None:
    async with enter() as at:
        key = await made(at)
        again = await admin(at).ask(RotateApiKey(key_id=key.key.key_id))
        trail = await at.runtime.query(AuditTrail())
        listed = await admin(at).ask(ListApiKeys())
    secrets = [text.rpartition("_")[2] for text in (key.api_key, again.api_key)]
    told = f"{trail} {listed} {key.key}"
    files = everything_in(folder)
    for secret in secrets:
        assert secret not in told
        assert secret.encode() not in files
    assert key.key.key_id.encode() in files
    assert {row.action for row in trail} == {"create_api_key", "rotate_api_key"}


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_a_key_of_one_store_is_none_of_another_with_the_same_records(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        stolen = new_key(secrets.choice)
        kept = KeepKey(
            key_id=stolen.key_id, digest=digest_of(stolen, bytes(32)), grant=(await _grant(at)), lifetime=DAY
        )
        await at.runtime.ask(KEYS_ADDRESS, kept, principal=admin(at).principal)
        await cache.load()
        with pytest.raises(KeyRefusedError):
            cache.authenticate(stolen.whole)


async def _grant(at: House) -> Any:
    await made(at)
    return (await at.runtime.ask(KEYS_ADDRESS, ReadKeys())).keys[0].grant


async def test_keys_end_when_they_expire_and_the_last_one_does_not_open_the_door(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        key = await made(at, expires_in_days=1)
        await cache.load()
        at.tick(24 * HOUR - 1)
        assert status(key, cache) == "in"
        at.tick(1)
        assert "expired" in status(key, cache)
        assert cache.required
        (listed,) = (await admin(at).ask(ListApiKeys())).keys
        assert (listed.status, (await admin(at).ask(ListApiKeys(include_ended=False))).keys) == (
            "expired",
            [],
        )


async def test_in_rotation_both_keys_are_good_for_a_while(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        old = await made(at, "admin", agent="bot", expires_in_days=30)
        at.tick(24 * HOUR)
        new = await admin(at).ask(RotateApiKey(key_id=old.key.key_id, overlap_seconds=HOUR))
        await cache.load()
        assert [status(old, cache), status(new, cache)] == ["in", "in"]
        assert (new.key.agent, new.key.scopes, new.key.replaces) == ("bot", ["admin"], old.key.key_id)
        assert (new.key.expires_at - new.key.created_at).days == 30
        at.tick(HOUR - 1)
        assert status(old, cache) == "in"
        at.tick(1)
        assert ["expired" in status(old, cache), status(new, cache)] == [True, "in"]
        with refused("VALIDATION_ERROR"):
            await admin(at).ask(RotateApiKey(key_id=old.key.key_id))
        with refused("VALIDATION_ERROR"):
            await admin(at).ask(RotateApiKey(key_id=new.key.key_id, overlap_seconds=-1))
        short = await admin(at).ask(RotateApiKey(key_id=new.key.key_id, expires_in_days=2))
        assert (short.key.expires_at - short.key.created_at).days == 2


async def test_rotation_does_not_prolong_what_ends_sooner_nor_revive_what_ended(enter: Enter) -> None:
    async with enter() as at:
        old = await made(at, expires_in_days=1)
        await admin(at).ask(RotateApiKey(key_id=old.key.key_id, overlap_seconds=30 * 86_400))
        first, _second = (await admin(at).ask(ListApiKeys())).keys
        assert first.expires_at == old.key.expires_at
        with refused("VALIDATION_ERROR"):  # it was replaced already
            await admin(at).ask(RotateApiKey(key_id=old.key.key_id))
        other = await made(at)
        await admin(at).ask(RevokeApiKey(key_id=other.key.key_id))
        with refused("VALIDATION_ERROR"):
            await admin(at).ask(RotateApiKey(key_id=other.key.key_id))
        with refused("KEY_NOT_FOUND"):
            await admin(at).ask(RotateApiKey(key_id="a" * 12))


async def test_revoking_is_for_good_and_twice_is_once(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        key = await made(at)
        first = await admin(at).ask(RevokeApiKey(key_id=key.key.key_id))
        at.tick()
        again = await admin(at).ask(RevokeApiKey(key_id=key.key.key_id))
        assert (first.key.status, again.key.revoked_at) == ("revoked", first.key.revoked_at)
        await cache.load()
        assert "revoked" in status(key, cache)
        assert cache.required
        with refused("KEY_NOT_FOUND"):
            await admin(at).ask(RevokeApiKey(key_id="a" * 12))


@pytest.mark.promise("keys.admin")
async def test_nobody_but_an_administrator_makes_keys(enter: Enter) -> None:
    async with enter() as at:
        key = await made(at)
        others = at.agent("mallory", scopes=frozenset({"*:read", "*:write", "audit:*", "sessions:*"}))
        for request in (
            CreateApiKey(name="n", scopes=["*"]),
            ListApiKeys(),
            RotateApiKey(key_id=key.key.key_id),
            RevokeApiKey(key_id=key.key.key_id),
        ):
            with refused("PERMISSION_DENIED", scope="admin"):
                await others.ask(request)
        for principal in (others.principal, None):  # past the doors, too
            with refused("PERMISSION_DENIED"):
                await at.runtime.ask(KEYS_ADDRESS, RevokeKey(key_id=key.key.key_id), principal=principal)
        assert [each.status for each in (await admin(at).ask(ListApiKeys())).keys] == ["active"]


@pytest.mark.parametrize("scopes", [["root"], ["sessions:read", "session:read"], [""], ["* "]])
async def test_a_key_for_scopes_that_are_none_is_not_made(enter: Enter, scopes: list[str]) -> None:
    async with enter() as at:
        with refused("VALIDATION_ERROR", field="scopes"):
            await made(at, *scopes)
        assert (await admin(at).ask(ListApiKeys())).keys == []


@pytest.mark.promise("keys.admin")
@pytest.mark.parametrize("scope", ["*", "admin", "audit:read", "audit:*"])
async def test_what_is_about_every_project_is_in_no_key_for_some(enter: Enter, scope: str) -> None:
    async with enter() as at:
        for projects in (["p"], []):
            with refused("VALIDATION_ERROR", field="projects"):
                await made(at, "sessions:*", scope, projects=projects)
        assert (await admin(at).ask(ListApiKeys())).keys == []
        assert (await made(at, "sessions:*", "*:read", projects=["p"])).key.projects == ["p"]
        assert (await made(at, scope)).key.projects is None


@pytest.mark.promise("keys.nowhere-else")
async def test_a_whole_key_in_the_place_of_its_id_is_not_repeated(enter: Enter) -> None:
    async with enter() as at:
        key = await made(at)
        secret = key.api_key.rpartition("_")[2]
        said = []
        for name in ("revoke_api_key", "rotate_api_key"):
            with pytest.raises(Refusal) as caught:
                parse_request(REQUESTS[name], msgspec.json.encode({"key_id": key.api_key}))
            said.append(caught.value)
        for arguments in ({key.api_key: 1}, {"name": "n", "scopes": [key.api_key]}):
            with pytest.raises(Refusal) as caught:
                await admin(at).ask(parse_request(CreateApiKey, msgspec.json.encode(arguments)))
            said.append(caught.value)
        assert secret[:4] not in f"{[(str(each), each.details) for each in said]}"
        assert key.key.key_id in str(said[0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"expires_in_days": 0},
        {"expires_in_days": 4_000},
        {"agent": "a b"},
        {"agent": "a\n"},
        {"rate_limit": 0},
        {"projects": [""]},
        {"name": ""},
    ],
)
async def test_a_key_that_cannot_be_is_refused_by_the_field(enter: Enter, wrong: dict[str, Any]) -> None:
    async with enter() as at:
        with refused("VALIDATION_ERROR"):
            await admin(at).ask(CreateApiKey(**{"name": "n", "scopes": ["*"], **wrong}))


@pytest.mark.promise("keys.revocation")
async def test_a_ring_hears_of_revocation_and_ends_what_the_key_holds_once(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        one, other = await made(at), await made(at)
        await trio.testing.wait_all_tasks_blocked()
        ended: list[str] = []
        late: list[str] = []
        with (
            cache.hold(one.key.key_id, ended.append),
            cache.hold(one.key.key_id, ended.append),
            cache.hold(other.key.key_id, ended.append),
        ):
            await admin(at).ask(RevokeApiKey(key_id=one.key.key_id))
            began = trio.current_time()
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert trio.current_time() - began < 1
            (sentence,) = set(ended)
            assert sentence.startswith(f"the key {one.key.key_id} was revoked at 2")
            assert len(ended) == 2
            await cache.load()
            assert len(ended) == 2
            with cache.hold(one.key.key_id, late.append):
                assert len(late) == 1


@pytest.mark.slow
@pytest.mark.promise("keys.revocation")
async def test_a_ring_ends_what_an_expired_key_holds_without_being_told(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        key = await made(at, expires_in_days=1)
        at.tick(23 * HOUR)
        began = trio.current_time()
        await trio.sleep(31.4)
        await made(at)  # so that the looks at the clock fall between those of the key's whole hours
        await trio.testing.wait_all_tasks_blocked()
        ended = trio.Event()
        with cache.hold(key.key.key_id, lambda _: ended.set()):
            await ended.wait()
            assert trio.current_time() - began == pytest.approx(HOUR, abs=2)


@pytest.mark.promise("keys.revocation")
async def test_who_came_without_a_key_goes_when_the_first_one_is_made(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        ended: list[str] = []
        with cache.hold(None, ended.append):
            await made(at)
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert ended == ["a key is needed from now on"]


async def test_uses_are_written_down_once_a_minute_at_most(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        key = await made(at)
        await trio.testing.wait_all_tasks_blocked()

        async def last_used() -> Any:
            return (await admin(at).ask(ListApiKeys())).keys[0].last_used_at

        for _ in range(1_000):
            cache.authenticate(key.api_key)
        assert await last_used() is None
        await trio.sleep(61)
        first = await last_used()
        assert first is not None
        cache.authenticate(key.api_key)
        await trio.sleep(61)
        assert await last_used() > first


async def test_a_use_is_written_down_when_the_server_closes(enter: Enter) -> None:
    async with enter() as at:
        async with open_key_cache(at.runtime, clock=at.clock) as cache:
            key = await made(at)
            await trio.testing.wait_all_tasks_blocked()
            cache.authenticate(key.api_key)
            used = at.clock.now()
        at.tick(5)
    async with enter() as at:
        (listed,) = (await admin(at).ask(ListApiKeys())).keys
        assert listed.last_used_at == to_datetime(used)


async def test_a_use_within_the_minute_of_the_last_is_not_written_whatever_wakes_the_ring(
    enter: Enter,
) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        key = await made(at)
        await trio.testing.wait_all_tasks_blocked()

        async def use() -> Any:
            """Use the key, wake the ring by a change, and return when the key was used last."""
            cache.authenticate(key.api_key)
            await made(at)
            await trio.testing.wait_all_tasks_blocked(0.01)
            listed = (await admin(at).ask(ListApiKeys())).keys
            return next(each.last_used_at for each in listed if each.key_id == key.key.key_id)

        first = await use()
        at.tick(30)
        assert await use() == first
        at.tick(31)
        assert await use() > first


async def test_what_stays_open_because_of_a_key_uses_it(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        key, idle = await made(at), await made(at)
        await trio.testing.wait_all_tasks_blocked()

        async def last_used(hours: float) -> Any:
            at.tick(hours * HOUR)
            await trio.sleep(61)
            listed = {each.key_id: each for each in (await admin(at).ask(ListApiKeys())).keys}
            assert listed[idle.key.key_id].last_used_at is None
            return listed[key.key.key_id].last_used_at

        cache.authenticate(key.api_key)
        with cache.hold(key.key.key_id, lambda _: None):
            first, same, later = [await last_used(hours) for hours in (0, 0.5, 0.6)]
        assert first == same < later == await last_used(2)


async def test_who_has_no_key_needs_one_where_that_is_said(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, required=True) as cache:
        assert cache.required


async def test_keys_survive_the_end_of_the_server(enter: Enter) -> None:
    async with enter() as at:
        key = await made(at)
        revoked = await made(at)
        await admin(at).ask(RevokeApiKey(key_id=revoked.key.key_id))
    async with enter() as at, open_key_cache(at.runtime, clock=at.clock) as cache:
        assert status(key, cache) == "in"
        assert "revoked" in status(revoked, cache)
