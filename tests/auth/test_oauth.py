"""OAuth 2.1 access tokens: which open this server, as whom, and how clients find their issuer."""

from __future__ import annotations

import base64
import json
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import jwt
import pytest
import trio
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mcp.server.auth.provider import AccessToken
from sockets.test_http_process import guests_at, server
from support.agents import House
from support.https import Guest, told
from support.issuers import RESOURCE, Issuer, issuing, rsa_key
from support.keyed import Premises, bearer, create_key, premises

from greenroom.actors import CreateSession, open_greenroom
from greenroom.runtime import RuntimeOptions, SystemClock
from greenroom.transports.auth.jwt import (
    ALGORITHMS,
    KEYS_SECONDS,
    REFETCH_SECONDS,
    REFRESH_SECONDS,
    JwtVerifier,
    credential_of_token,
    metadata_paths,
    metadata_url,
)
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.ops.cli.support.authentication import check_auth_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = pytest.mark.promise("oauth.tokens")


@asynccontextmanager
async def verifying(
    now: Callable[[], float] = trio.current_time,
) -> AsyncIterator[tuple[Issuer, JwtVerifier]]:
    async with issuing() as issuer:
        verifier = JwtVerifier(issuer.url, RESOURCE, now=now)
        try:
            yield issuer, verifier
        finally:
            await verifier.aclose()


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[Issuer, Premises]]:
    """Serve tools to those with tokens, in real time."""
    options = RuntimeOptions(durability="process")
    async with (
        verifying() as (issuer, verifier),
        open_greenroom(folder, embedder="none", options=options) as runtime,
        premises(House(runtime, SystemClock()), required=True, tokens=verifier,  # type: ignore[arg-type]
                 oauth_issuer=issuer.url, oauth_resource=RESOURCE) as here,
    ):  # fmt: skip
        yield issuer, here


def with_token(token: str) -> dict[str, Any]:
    return {"authorization": f"Bearer {token}"}


async def call(guest: Guest, token: str, tool: str, **arguments: Any) -> Any:
    await guest.modern("tools/call", {"name": tool, "arguments": arguments}, **with_token(token))
    answer = await guest.answer()
    assert answer.status == 200, answer
    return told(answer.json())


@pytest.mark.slow
async def test_a_token_says_who_somebody_is_and_what_they_may_do(folder: Path) -> None:
    async with serving(folder) as (issuer, here):
        guest = await here.guest()
        made = await call(guest, issuer.token(), "create_session", purpose="p", session_id="s")
        assert made["created_by"].startswith("app.")
        denied = await call(
            guest, issuer.token(scope="sessions:read"), "add_message", session_id="s", content="x"
        )
        assert denied["details"] == {"scope": "sessions:write"}
        named = issuer.token(greenroom_agent="a critic", greenroom_agent_type="critic", scope=None, scp=["*"])
        said = await call(guest, named, "add_message", session_id="s", content="x")
        assert said["success"]
        page = await call(guest, issuer.token(), "get_messages", session_id="s")
        assert page["messages"][0]["sender"] == "a-critic"


@pytest.mark.slow
@pytest.mark.promise("identity.own-project")
async def test_a_token_is_of_the_projects_that_it_lists_and_of_no_other(folder: Path) -> None:
    async with serving(folder) as (issuer, here):
        owner = here.at.agent("owner")
        for project in ("p", "q", "user:bob", "user:ann"):
            await owner.ask(CreateSession(purpose="p", session_id=f"of-{project[-3:]}", project_id=project))
        guest = await here.guest()
        for token, found in (
            (issuer.token(), ["of-ann"]),
            (issuer.token(greenroom_projects="p"), ["of-ann"]),
            (issuer.token(greenroom_projects=["p"]), ["of-ann", "of-p"]),
            (issuer.token(greenroom_projects=["user:bob"]), ["of-ann"]),
            (issuer.token(greenroom_projects=["user:ann"], sub="bob"), ["of-bob"]),
        ):
            page = await call(guest, token, "list_sessions")
            assert sorted(session["session_id"] for session in page["sessions"]) == found


@pytest.mark.slow
@pytest.mark.promise("exchange.authorship")
async def test_over_a_token_an_import_has_the_tokens_agent_as_author(folder: Path) -> None:
    line = {"content": "signed off", "namespace": "team:x", "created_by": "anna"}
    async with serving(folder) as (issuer, here):
        guest = await here.guest()
        for scope, author, imported in (
            ("memory:read memory:write", "critic", {"created_by": "anna"}),
            ("memory:read memory:write admin", "anna", None),
        ):
            token = issuer.token(greenroom_agent="critic", scope=scope)
            source = json.dumps({**line, "key": author})
            done = await call(guest, token, "import_memories", source=source)
            assert done["counts"] == {"created": 1}
            page = await call(guest, token, "list_memories", namespace="team:x", filters={"author": author})
            assert [(each["key"], each.get("imported")) for each in page["memories"]] == [(author, imported)]


WRONG_CLAIMS: list[dict[str, Any]] = [
    {"aud": "https://other.example.org/mcp"},
    {"aud": None},
    {"iss": "https://id.example.org"},
    {"iss": None},
    {"exp": 1_000},
    {"exp": None},
    {"exp": "soon"},
    {"exp": float("inf")},
    {"nbf": 32_503_680_000},
    {"sub": None},
    {"sub": "half a character: \ud83d"},
    {"greenroom_projects": ["\udc00"]},
    {"kid": "unheard-of"},
]


@pytest.mark.parametrize("wrong", WRONG_CLAIMS, ids=str)
async def test_a_token_with_anything_wrong_opens_nothing(wrong: dict[str, Any]) -> None:
    async with verifying() as (issuer, verifier):
        assert await verifier.verify_token(issuer.token()) is not None
        kid = wrong.pop("kid", "one") if "kid" in wrong else "one"
        token = issuer.token(kid=kid, key=issuer.keys["one"], **wrong)
        wrong.setdefault("kid", kid)
        assert await verifier.verify_token(token) is None


INFINITE = (float("nan"), float("inf"), float("-inf"))
OF_WRONG_TYPES: dict[str, tuple[Any, ...]] = {
    "sub": ("", " ", "\t\n", "\u2003\u200b", "\0", 7, True, ["ann"], {"name": "ann"}),
    "exp": ("32503680000", "1e12", True, False, [32_503_680_000], {}, *INFINITE),
    "nbf": ("1000", True, False, [1_000], {}, *INFINITE),
    "iat": ("1000", True, False, [1_000], {}, *INFINITE),
    "aud": ([], "", {RESOURCE: 1}, [RESOURCE, 7], [[RESOURCE]], True, 7),
    "iss": ("", 7, True, ["x"], {}),
    **dict.fromkeys(
        ("client_id", "azp", "greenroom_agent", "greenroom_agent_type"),
        (7, True, False, 0, [], ["app"], {}, {"a": 1}),
    ),
}


@pytest.mark.promise("oauth.claims")
async def test_a_claim_of_another_type_opens_nothing() -> None:
    async with verifying() as (issuer, verifier):
        for claim, values in OF_WRONG_TYPES.items():
            for value in values:
                assert await verifier.verify_token(issuer.token(**{claim: value})) is None, (claim, value)
        for claims in ({"exp": time.time() + 60.5, "nbf": 0.5, "iat": 0}, {"aud": ["x", RESOURCE]}):
            assert await verifier.verify_token(issuer.token(**claims)) is not None, claims


@pytest.mark.promise("oauth.claims")
async def test_scopes_and_projects_that_are_no_texts_give_nothing() -> None:
    async with verifying() as (issuer, verifier):
        for wrong in (7, True, {"*": 1}, [7], [None], [True], [["*"]]):
            access = await verifier.verify_token(issuer.token(scope=wrong, greenroom_projects=wrong))
            assert access is not None
            grant = credential_of_token(access, 0).grant
            assert (grant.scopes, grant.projects) == (frozenset(), frozenset()), wrong


@pytest.mark.slow
@pytest.mark.promise("oauth.claims")
@pytest.mark.parametrize(("subject", "client"), [("", "app"), (" ", "app"), (None, ""), (None, "\0")])
async def test_access_that_names_no_user_opens_nothing_whatever_verified_it(
    subject: str | None, client: str, folder: Path
) -> None:
    class Introspection:
        async def verify_token(self, token: str) -> AccessToken:
            return AccessToken(token=token, client_id=client, scopes=["*"], subject=subject)

    options = RuntimeOptions(durability="process")
    async with (
        open_greenroom(folder, embedder="none", options=options) as runtime,
        premises(House(runtime, SystemClock()), required=True, tokens=Introspection()) as here,  # type: ignore[arg-type]
    ):
        guest = await here.guest()
        await guest.modern("tools/list", **with_token("opaque"))
        assert (await guest.answer()).status == 401


@pytest.mark.slow
async def test_odd_subjects_and_ends_are_served(folder: Path) -> None:
    async with serving(folder) as (issuer, here):
        guest = await here.guest()
        subjects: list[dict[str, Any]] = [{"sub": "a\0b"}, {"sub": "\n/ :~"}, {"sub": "é" * 128}]
        for number, claims in enumerate([*subjects, {"exp": 1e300}, {"exp": 10**40}]):
            token = issuer.token(scope="*", **claims)
            said = await call(guest, token, "create_session", purpose="p", session_id=f"s{number}")
            assert said["success"], (claims, said)
            for tool, arguments in (
                ("set_memory", {"key": "k", "value": 1}),
                ("store_memory", {"key": "k", "content": "x"}),
                ("set_preferences", {"preferences": {"theme": "dark"}}),
                ("list_sessions", {}),
            ):
                said = await call(guest, token, tool, **arguments)
                assert said["success"], (claims, tool, said)


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


async def test_forged_tokens_open_nothing() -> None:
    async with verifying() as (issuer, verifier):
        good = issuer.token()
        head, body, signature = good.split(".")
        claims = jwt.decode(good, options={"verify_signature": False})
        public = issuer.keys["one"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        richer = part({**claims, "scope": "*"})
        forged = [
            f"{part({'alg': 'none'})}.{body}.",
            f"{part({'alg': 'None', 'kid': 'one'})}.{body}.",
            f"{head}.{richer}.{signature}",
            f"{head}.{body}.{signature[:-4]}AAAA",
            issuer.token(key=rsa_key()),
            # The public key taken for the secret of an HMAC.
            _hmac_token({"alg": "HS256", "typ": "JWT", "kid": "one"}, claims, public),
            # Keys that the token brings along, or says where to find.
            jwt.encode(claims, (own := rsa_key()), "RS256", headers={"kid": "one", "jku": "http://127.0.0.1:1/"}),
            jwt.encode(claims, own, "RS256", headers={"kid": "one", "jwk": {"kty": "RSA"}}),
            jwt.encode(claims, issuer.keys["one"], "RS256", headers={"kid": "one", "typ": "dpop+jwt"}),
            good + "." + signature,
            f"{part({'alg': 'RS256', 'kid': ['one']})}.{body}.{signature}",
            f"{part({'alg': ['RS256'], 'kid': 'one'})}.{body}.{signature}",
            f"{base64.urlsafe_b64encode(b'[' * 9_000).decode()}.{body}.{signature}",
            "a.b.c", "", ".", "..", "é.é.é", "x" * 100_000, good.replace(".", ""),
        ]  # fmt: skip
        for token in forged:
            assert await verifier.verify_token(token) is None, token[:100]
        assert await verifier.verify_token(good) is not None


def _hmac_token(head: dict[str, Any], claims: dict[str, Any], secret: bytes) -> str:
    import hashlib  # noqa: PLC0415  (the library refuses to make such a token)
    import hmac  # noqa: PLC0415

    signed = f"{part(head)}.{part(claims)}"
    digest = hmac.digest(secret, signed.encode(), hashlib.sha256)
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


@pytest.mark.parametrize(
    ("key", "alg"),
    [
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
    ],
    ids=["ES256", "ES384", "EdDSA"],
)
async def test_other_kinds_of_keys_are_known(key: Any, alg: str) -> None:
    assert alg in ALGORITHMS
    async with verifying() as (issuer, verifier):
        issuer.keys["two"] = key
        assert await verifier.verify_token(issuer.token(kid="two", alg=alg)) is not None


async def test_an_issuer_with_one_key_need_not_name_it() -> None:
    async with verifying() as (issuer, verifier):
        assert await verifier.verify_token(issuer.token(kid=None)) is not None
    async with verifying() as (issuer, verifier):
        issuer.keys["two"] = rsa_key()
        assert await verifier.verify_token(issuer.token(kid=None)) is None


@pytest.mark.promise("oauth.issuer")
async def test_the_issuer_is_asked_once_and_not_for_every_token_that_comes() -> None:
    async with verifying() as (issuer, verifier):
        for _ in range(50):
            assert await verifier.verify_token(issuer.token()) is not None
            assert await verifier.verify_token(issuer.token(kid="unheard-of", key=issuer.keys["one"])) is None
        assert issuer.asked == ["/.well-known/oauth-authorization-server", "/keys"]


@pytest.mark.promise("oauth.issuer")
async def test_a_new_key_of_the_issuer_is_found_and_one_that_is_gone_is_gone() -> None:
    elapsed = 0.0
    async with verifying(lambda: elapsed) as (issuer, verifier):
        old = issuer.token()
        assert await verifier.verify_token(old) is not None
        issuer.keys["two"] = rsa_key()
        del issuer.keys["one"]
        elapsed += REFETCH_SECONDS
        assert await verifier.verify_token(issuer.token(kid="two")) is not None
        assert await verifier.verify_token(old) is None


@pytest.mark.promise("oauth.issuer")
async def test_an_issuer_that_is_away_lets_nobody_in_by_old_keys() -> None:
    elapsed = 0.0
    async with verifying(lambda: elapsed) as (issuer, verifier):
        issuer.away = True
        assert await verifier.verify_token(issuer.token()) is None
        issuer.away = False
        elapsed += REFETCH_SECONDS
        assert await verifier.verify_token(issuer.token()) is not None
        issuer.away = True
        elapsed += REFRESH_SECONDS + 1
        assert await verifier.verify_token(issuer.token()) is not None
        elapsed += KEYS_SECONDS
        assert await verifier.verify_token(issuer.token()) is None


ANSWERS: dict[str, tuple[str, Any]] = {
    "another issuer": (
        "/.well-known/oauth-authorization-server",
        {"issuer": "http://x", "jwks_uri": "http://x"},
    ),
    "no keys": ("/keys", {"keys": []}),
    "no list": ("/keys", {"keys": "none"}),
    "a secret": ("/keys", {"keys": [{"kty": "oct", "k": "AAAA", "kid": "one"}]}),
    "for encryption": ("/keys", {"keys": [{"kty": "RSA", "use": "enc", "kid": "one"}]}),
    "not JSON": ("/keys", b"<html>"),
    "too much": ("/keys", b'{"keys":[' + b'"",' * 1_000_000 + b'""]}'),
    "deep": ("/keys", b"[" * 100_000),
    "keys in the clear": (
        "/.well-known/oauth-authorization-server",
        {"issuer": "@", "jwks_uri": "http://id.example.org/keys"},
    ),
    "a file": ("/.well-known/oauth-authorization-server", {"issuer": "@", "jwks_uri": "file:///etc/passwd"}),
}


@pytest.mark.promise("oauth.issuer")
@pytest.mark.parametrize("case", ANSWERS)
async def test_an_issuer_that_says_odd_things_lets_nobody_in(case: str) -> None:
    async with verifying() as (issuer, verifier):
        path, document = ANSWERS[case]
        if isinstance(document, dict) and document.get("issuer") == "@":
            document = {**document, "issuer": issuer.url}
        issuer.documents[path] = document
        assert await verifier.verify_token(issuer.token()) is None


async def test_openid_s_form_of_the_document_will_do() -> None:
    async with verifying() as (issuer, verifier):
        issuer.documents["/.well-known/oauth-authorization-server"] = None
        issuer.documents["/.well-known/openid-configuration"] = {
            "issuer": issuer.url,
            "jwks_uri": f"{issuer.url}/keys",
        }
        assert await verifier.verify_token(issuer.token()) is not None


async def test_what_a_token_makes_of_its_holder_ends_with_it() -> None:
    async with verifying() as (issuer, verifier):
        access = await verifier.verify_token(
            issuer.token(exp=(ends := int(time.time()) + 60), scope="* root")
        )
        assert access is not None
        credential = credential_of_token(access, 0)
        assert (credential.expires, credential.by_key) == (ends * 1_000_000, False)
        assert credential.grant.scopes == {"*"}
        assert credential.grant.user == "ann"
        another = await verifier.verify_token(issuer.token(exp=ends, sub="bob"))
        assert another is not None
        agents = [credential.grant.agent, credential_of_token(another, 0).grant.agent]
        assert agents[0] != agents[1]  # what one keeps in a program is not for others who use it
        assert all(agent is not None and agent.startswith("app.") for agent in agents)
        less = await verifier.verify_token(issuer.token(exp=ends, scope="sessions:read"))
        assert less is not None
        lesser = credential_of_token(less, 0)
        assert lesser.id != credential.id
        assert lesser.holder == credential.holder  # what it sends is counted with what was sent before
        assert credential_of_token(another, 0).holder != credential.holder


@pytest.mark.slow
async def test_what_the_clocks_may_differ_by_prolongs_no_token(folder: Path) -> None:
    async with serving(folder) as (issuer, here):
        guest = await here.guest()
        for early, status in ((-600, 200), (5, 401)):
            token = issuer.token(exp=int(time.time()) - early)
            await guest.modern("tools/list", **with_token(token))
            assert (await guest.answer()).status == status


async def test_long_subjects_are_as_many_users() -> None:
    async with verifying() as (issuer, verifier):
        users = []
        for subject in ("s" * 128, "s" * 129, "s" * 130, "s" * 128 + "t"):
            access = await verifier.verify_token(issuer.token(sub=subject))
            assert access is not None
            users.append(credential_of_token(access, 0).grant.user or "")
        assert users[0] == "s" * 128
        assert len(set(users)) == 4
        assert {len(user) for user in users} == {128}


@pytest.mark.slow
async def test_a_session_is_not_taken_over_with_a_lesser_token(folder: Path) -> None:
    async with serving(folder) as (issuer, here):
        session = await here.session(None, **with_token(issuer.token(scope="*")))
        thief = await here.guest()
        thief.session = {**session.session, **with_token(issuer.token(scope="sessions:read"))}
        await thief.request("tools/list")
        assert (await thief.answer()).status == 404
        thief.session = {**session.session, **with_token(issuer.token(scope="*", jti="a fresh one"))}
        await thief.request("tools/list")
        assert (await thief.answer()).status == 200


@pytest.mark.slow
async def test_keys_of_ours_open_beside_tokens(folder: Path) -> None:
    async with serving(folder) as (_, here):
        key = await create_key(here.at, "sessions:*")
        await here.cache.load()
        guest = await here.guest()
        await guest.modern("tools/list", **bearer(key))
        assert (await guest.answer()).status == 200


@pytest.mark.quick
@pytest.mark.promise("oauth.discovery")
@pytest.mark.slow
async def test_who_comes_without_a_token_is_told_where_to_look(tmp_path: Path) -> None:
    async with issuing() as issuer:
        flags = ("--oauth-issuer", issuer.url, "--oauth-resource", RESOURCE, "--behind-proxy")
        async with server(tmp_path, *flags) as (_, port), guests_at(port) as (guest,):
            refused = await guest.ask("POST")
            assert refused.status == 401
            assert f'resource_metadata="{metadata_url(RESOURCE)}"' in refused.headers["www-authenticate"]
            for path in metadata_paths(RESOURCE):
                document = (await guest.ask("GET", path)).json()
                assert document["resource"] == RESOURCE
                assert document["authorization_servers"] == [issuer.url]
                assert "memory:read" in document["scopes_supported"]
            assert (await call(guest, issuer.token(), "list_sessions"))["success"]
            wrong = await guest.ask("POST", **with_token(issuer.token(exp=1_000)))
            assert 'error="invalid_token"' in wrong.headers["www-authenticate"]


def test_where_the_metadata_are() -> None:
    assert metadata_url(RESOURCE) == "https://greenroom.example.org/.well-known/oauth-protected-resource/mcp"
    assert metadata_paths("https://a.example")[0] == "/.well-known/oauth-protected-resource"


def test_an_issuer_needs_to_know_whom_its_tokens_are_for() -> None:
    with pytest.raises(ValueError, match="go together"):
        check_auth_settings(Settings(oauth_issuer="https://id.example.org"))
