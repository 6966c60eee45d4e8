"""The document itself: signed, canonical, packed within limits, opened with the right words only."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import zlib
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
import rfc8785
import zxingcpp
from hypothesis import given
from support.passports import signers

from greenroom.actors.core.base.zstd import load_zstd
from greenroom.actors.sessions.passports import claims, envelope, packing
from greenroom.actors.sessions.passports.signing import Signers, check_signer, encode
from greenroom.runtime import Refusal

WORDS = "correct horse"
PASSPORT_ID = "0123456789abcdef" * 2
CONTENT = b'{"what": "travels"}'


def body(content: bytes = CONTENT, passphrase: str | None = None, **changes: Any) -> dict[str, Any]:
    packed, data, ratio = packing.pack(content, PASSPORT_ID, passphrase)
    return {
        "greenroom_passport": 3,
        "version": 3,
        "passport_id": PASSPORT_ID,
        "session_id": "session_1",
        "exported_at": "2026-01-31T12:00:00Z",
        "exported_by": {"tool": "cursor", "agent_id": "a", "agent_type": None, "user": "naïve"},
        "exported_by_tool": "cursor",
        "expires_at": "2026-02-28T12:00:00.5Z",
        "one_time": True,
        "audience": [],
        "project_id": "atlas",
        "workspace_path": "/home/user/ätlas",
        "context": {
            "files_accessed": [
                {
                    "path": "a.py",
                    "importance": 0.3,
                    "uses": 1,
                    "last_used": "2026-01-31T12:00:00Z",
                    "note": None,
                }
            ],
            "recent_searches": [],
            "memories": [],
            "decisions": [],
            "workflow_state": None,
        },
        "metadata": {"purpose": 'to "quote"'},
        "content": msgspec.to_builtins(packed),
        "compressed_context": data,
        "compression_ratio": ratio,
    } | changes


def signed(signer: Signers, **changes: Any) -> bytes:
    made = body(**changes)
    return envelope.write(made, signer.sign(envelope.canonical(made)))


def opened(document: bytes | str | dict[str, Any], signer: Signers, passphrase: str | None = None) -> bytes:
    """Do what restoring does with the document."""
    passport, text = envelope.read(document)
    signer.check(text, passport.signature)
    return packing.unpack(passport, passphrase)


def refusal(document: Any, signer: Signers, passphrase: str | None = None) -> Refusal:
    with pytest.raises(Refusal) as caught:
        opened(document, signer, passphrase)
    return caught.value


@pytest.mark.slow
@pytest.mark.promise("passport.signed")
def test_no_byte_of_a_passport_can_be_changed() -> None:
    signer = signers()
    document = signed(signer)
    assert opened(document, signer) == CONTENT
    for place in range(len(document)):
        for other in {document[place] ^ 1, document[place] ^ 0x20, ord("A"), ord(" ")} - {document[place]}:
            changed = document[:place] + bytes([other]) + document[place + 1 :]
            with pytest.raises(Refusal) as caught:
                opened(changed, signer)
            assert caught.value.code in {"PASSPORT_INVALID", "PASSPORT_UNTRUSTED"}, changed


@pytest.mark.promise("passport.signed")
def test_blanks_and_order_do_not_matter_and_the_qr_code_is_not_signed() -> None:
    signer = signers()
    document = json.loads(signed(signer))
    backwards = dict(reversed(document.items()))
    assert opened(json.dumps(backwards, indent=4, ensure_ascii=True), signer) == CONTENT
    assert opened(backwards | {"qr": "anything"}, signer) == CONTENT
    for name in document:
        if name not in envelope.NOT_SIGNED:
            assert refusal({**document, name: "changed"}, signer).code == "PASSPORT_INVALID"
            less = {key: value for key, value in document.items() if key != name}
            assert refusal(less, signer).code == "PASSPORT_INVALID"
    assert refusal(document | {"more": 1}, signer).code == "PASSPORT_INVALID"


@pytest.mark.promise("passport.signed")
@pytest.mark.parametrize(
    "changes",
    [{"exported_by_tool": "zed"}, {"version": 2}, {"greenroom_passport": 2}, {"compression_ratio": -1}],
)
def test_what_contradicts_itself_is_refused_also_from_who_may_sign(changes: dict[str, Any]) -> None:
    signer = signers()
    assert refusal(signed(signer, **changes), signer).code == "PASSPORT_INVALID"


@pytest.mark.promise("passport.trust")
def test_only_those_in_the_trust_list_are_believed() -> None:
    mine, other = signers("a"), signers("b")
    document = signed(mine)
    unknown = refusal(document, other)
    assert (unknown.code, unknown.details["signer"]) == ("PASSPORT_UNTRUSTED", mine.name)
    assert f"--trust-signer {mine.name}" in unknown.sentence
    assert opened(document, signers("b", check_signer(mine.name))) == CONTENT

    impostor = json.loads(signed(other))
    impostor["signature"]["key"] = mine.name
    assert refusal(impostor, signers("c", mine.name)).code == "PASSPORT_INVALID"
    made = body()
    for_something_else = mine.sign_claim(envelope.canonical(made))
    twisted = envelope.write(
        made, envelope.Signature(algorithm="ed25519", key=mine.name, value=encode(for_something_else))
    )
    assert refusal(twisted, mine).code == "PASSPORT_INVALID"


@pytest.mark.promise("passport.trust")
def test_a_shared_secret_is_as_good_as_trust_for_those_who_have_it() -> None:
    shared = signers("a", shared=b"a secret of two servers")
    document = signed(shared)
    assert json.loads(document)["signature"]["algorithm"] == "hmac-sha256"
    assert opened(document, signers("b", shared=b"a secret of two servers")) == CONTENT
    assert refusal(document, signers("a")).code == "PASSPORT_UNTRUSTED"
    unknown = refusal(document, signers("a", shared=b"another one of others"))
    assert unknown.code == "PASSPORT_UNTRUSTED"
    assert "GREENROOM_PASSPORT_SECRET: give the same here" in unknown.sentence, "no --trust-signer takes it"
    swapped = json.loads(document)
    swapped["signature"]["algorithm"] = "ed25519"
    assert refusal(swapped, shared).code == "PASSPORT_UNTRUSTED"
    public = json.loads(signed(signers("a")))
    public["signature"] |= {"algorithm": "hmac-sha256"}
    assert refusal(public, shared).code == "PASSPORT_UNTRUSTED"
    assert b"secret of two" not in document


@pytest.mark.parametrize(
    "key",
    ["", "ed25519:", "ed25519:short", "rsa:" + "A" * 43, "ed25519:" + "A" * 42 + "B", "ed25519:" + "=" * 43],
)
def test_a_key_that_is_none_is_told(key: str) -> None:
    with pytest.raises(ValueError, match="public key"):
        check_signer(key)


@pytest.mark.promise("passport.passphrase")
def test_an_encrypted_passport_opens_with_its_passphrase_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "SCRYPT_N", 1 << 8)  # the cost of guessing is no part of this
    signer = signers()
    document = signed(signer, passphrase=WORDS)
    assert opened(document, signer, WORDS) == CONTENT
    for wrong in (None, "", "correct hors", "correct horse "):
        assert refusal(document, signer, wrong).code == "PASSPHRASE_NEEDED"
    assert json.loads(document)["content"]["sha256"] is None
    assert base64.b64encode(CONTENT)[:8] not in document
    # Who may sign cannot pass the content of one off as that of another either.
    other = json.loads(document) | {"passport_id": "f" * 32}
    moved = {name: value for name, value in other.items() if name not in envelope.NOT_SIGNED}
    again = envelope.write(moved, signer.sign(envelope.canonical(moved)))
    assert refusal(again, signer, WORDS).code == "PASSPHRASE_NEEDED"


@pytest.mark.promise("passport.bombs")
def test_nothing_is_unpacked_that_is_larger_than_it_says() -> None:
    signer = signers()
    many = load_zstd().compress(b"\0" * (64 << 20))
    place = many.index((64 << 20).to_bytes(4, "little"))
    lying = many[:place] + (1_000).to_bytes(4, "little") + many[place + 4 :]
    compressor = load_zstd().ZstdCompressor()
    unsized = compressor.compress(b"x" * 1_000) + compressor.flush()
    beyond = b"\x28\xb5\x2f\xfd\xe0" + (1 << 62).to_bytes(8, "little") + b"\x01\x00\x00"
    cases = {
        "says it is beyond all memory": (beyond, 1_000),
        "says it is large": (many, 64 << 20),
        "says another size": (many, 1_000),
        "its frame lies, too": (lying, 1_000),
        "does not say": (unsized, 1_000),
        "has more behind it": (load_zstd().compress(b"x" * 1_000) + b"more", 1_000),
        "is cut off": (load_zstd().compress(bytes(range(256)) * 4)[:-5], 1_024),
        "is none": (b"no zstd at all", 1_000),
    }
    for data, size in cases.values():
        content = {
            "encoding": "zstd",
            "size": size,
            "sha256": hashlib.sha256(b"x" * 1_000).hexdigest(),
            "encryption": None,
        }
        made = body()
        made |= {"content": content, "compressed_context": base64.b64encode(data).decode()}
        document = envelope.write(made, signer.sign(envelope.canonical(made)))
        assert refusal(document, signer).code == "PASSPORT_INVALID"


@pytest.mark.promise("passport.bombs")
@pytest.mark.slow
def test_a_document_that_is_too_deep_or_odd_is_refused() -> None:
    signer = signers()
    good = json.loads(signed(signer))
    deep: Any = 1
    for _ in range(100_000):
        deep = {"a": deep}
    texts: list[bytes | str] = [
        b"",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{" * 1_000_000,
        '{"greenroom_passport":1,"greenroom_passport":1}',
        json.dumps(good)[:-1] + ',"metadata":{}}',
        json.dumps(good | {"metadata": {"number": 10**40}}),
        json.dumps(good | {"greenroom_passport": 4}),
        json.dumps(good | {"greenroom_passport": True}),
        json.dumps(good | {"metadata": {"n": float("nan")}}),
        '{"greenroom_passport":1,"metadata":' + '{"a":' * 50_000 + "1" + "}" * 50_001,
        "\ud800",
    ]
    for text in texts:
        assert refusal(text, signer).code == "PASSPORT_INVALID", text[:100]
    assert refusal({**good, "metadata": deep}, signer).code == "PASSPORT_INVALID"


@pytest.mark.promise("passport.bombs")
def test_a_document_beyond_the_limit_is_not_even_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelope, "MAX_DOCUMENT_BYTES", 1_000)
    assert refusal(b"\xff" * 1_001, signers()).code == "PASSPORT_TOO_LARGE"


@pytest.mark.promise("passport.bombs")
@pytest.mark.slow
def test_no_key_is_made_that_takes_more_memory_than_is_spent_on_one() -> None:
    signer = signers()
    made = json.loads(signed(signer, passphrase=WORDS))
    for change in ({"n": 1 << 18, "r": 8, "p": 1}, {"n": 3, "r": 8, "p": 1}, {"n": 1 << 30, "r": 8, "p": 1}):
        made["content"]["encryption"] |= change
        plain = {name: value for name, value in made.items() if name not in envelope.NOT_SIGNED}
        document = envelope.write(plain, signer.sign(envelope.canonical(plain)))
        expected = {"PASSPHRASE_NEEDED"} if change["n"] == 1 << 18 else {"PASSPORT_INVALID"}
        assert refusal(document, signer, "wrong words").code in expected


@pytest.mark.promise("passport.claims")
def test_a_claim_is_this_servers_alone_and_has_one_spelling() -> None:
    mine, other = signers("a"), signers("b")
    claim = claims.Claim("passport", PASSPORT_ID, 1_800_000_000)
    text = claims.claim_text(claim, mine)
    assert claims.is_small(text)
    assert claims.read_small(text, mine) == claim
    assert claims.read_small(f"  {text.lower()}\n", mine) == claim, "a scanner may write it so"
    with pytest.raises(Refusal, match="none of this server's"):
        claims.read_small(text, other)
    for place in range(len(claims.CLAIM), len(text)):
        for letter in {"A", "7", "B"} - {text[place]}:
            with pytest.raises(Refusal):
                claims.read_small(text[:place] + letter + text[place + 1 :], mine)
    for odd in (claims.CLAIM, claims.CLAIM + "1", claims.CLAIM + "A" * 500, claims.PASSPORT + "AAAA"):
        with pytest.raises(Refusal):
            claims.read_small(odd, mine)


@pytest.mark.promise("passport.bombs")
def test_a_small_text_does_not_become_a_large_passport() -> None:
    bomb = load_zstd().compress(b"\0" * (8 << 20))
    text = claims.PASSPORT + base64.b32encode(bomb).rstrip(b"=").decode()
    with pytest.raises(Refusal) as caught:
        claims.read_small(text, signers())
    assert caught.value.code == "PASSPORT_TOO_LARGE"


@pytest.mark.promise("passport.qr")
def test_what_a_qr_code_carries_comes_out_of_it_again() -> None:
    signer = signers()
    document = signed(signer)
    text = claims.passport_text(document)
    assert text is not None
    claim = claims.claim_text(claims.Claim("passport", PASSPORT_ID, 1_800_000_000), signer)
    for carried in (text, claim):
        pixels = np.array(_pixels(claims.qr_png(carried)), dtype=np.uint8)
        (found,) = zxingcpp.read_barcodes(pixels)
        assert found.text == carried
    assert claims.read_small(text, signer) == document
    large = signed(signer, content=bytes(hashlib.sha512(str(n).encode()).digest()[0] for n in range(5_000)))
    assert claims.passport_text(large) is None


def _pixels(png: bytes) -> list[list[int]]:
    """Read a PNG of one bit a pixel whose rows are as they are, or the difference from the one above."""
    place, data, width = 8, b"", 0
    while place < len(png):
        length, kind = struct.unpack_from(">I4s", png, place)
        chunk = png[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            width, _, depth = struct.unpack_from(">IIB", chunk)
            assert depth == 1
        data += chunk if kind == b"IDAT" else b""
        place += 12 + length
    rows = zlib.decompress(data)
    stride = 1 + (width + 7) // 8
    lines: list[bytes] = []
    above = bytes(stride)
    for start in range(0, len(rows), stride):
        line = rows[start : start + stride]
        assert line[0] in {0, 2}, "no other filters"
        if line[0] == 2:
            line = bytes((here + up) & 255 for here, up in zip(line, above, strict=True))
        lines.append(line)
        above = line
    return [[255 * (line[1 + x // 8] >> (7 - x % 8) & 1) for x in range(width)] for line in lines]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e6, 1e6) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.promise("passport.signed")
@given(metadata=st.dictionaries(st.text(max_size=5), json_values, max_size=4), content=st.binary(min_size=1))
def test_whatever_is_signed_can_be_checked(metadata: dict[str, Any], content: bytes) -> None:
    signer = signers()
    document = signed(signer, content=content, metadata=metadata)
    assert document == rfc8785.dumps(json.loads(document))
    assert opened(document, signer) == content
    assert opened(json.dumps(json.loads(document), indent=1), signer) == content
