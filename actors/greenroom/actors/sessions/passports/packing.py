"""The content of a passport: payload, checks, packing and unpacking.

Packed data declares its unpacked size. Data with another size than expected is refused before unpacking, so
a few bytes cannot expand to many.

Packing uses zstd and, with a passphrase, AES-256-GCM with a key derived from the passphrase.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import passport_errors
from greenroom.actors.core.auth.errors import MAX_VALUE_BYTES
from greenroom.actors.core.base.zstd import load_zstd
from greenroom.actors.core.validation.strict_json import check_json
from greenroom.actors.sessions.passports.envelope import (
    MAX_CONTENT_BYTES,
    MAX_DOCUMENT_BYTES,
    AnyPassport,
    Content,
    Encryption,
)
from greenroom.actors.sessions.passports.signing import decode_strictly, encode
from greenroom.actors.sessions.requests import payloads, session_context
from greenroom.runtime import Refusal

LEVEL: Final = 6
SCRYPT_N: Final = 1 << 16
SCRYPT_R: Final = 8
SCRYPT_P: Final = 1
MOST_SCRYPT_BYTES: Final = 256 << 20
SALT_BYTES: Final = 16
NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32
_RATIO_DIGITS: Final = 4
MOST_MESSAGES = 100_000
MOST_MEMORIES = 10_000
_encode = msgspec.json.Encoder().encode
_message = msgspec.json.Decoder(payloads.PayloadMessage).decode


class Packed(NamedTuple):
    """Packed content: description, data in base64, packed bytes per byte of JSON."""

    content: Content
    data: str
    ratio: float


def pack(content: bytes, passport_id: str, passphrase: str | None = None) -> Packed:
    """Pack content."""
    if len(content) > MAX_CONTENT_BYTES:
        raise passport_errors.too_large(len(content), MAX_CONTENT_BYTES)
    data = load_zstd().compress(content, LEVEL)
    encryption = None
    if passphrase is not None:
        encryption = Encryption(
            cipher="aes-256-gcm",
            kdf="scrypt",
            n=SCRYPT_N,
            r=SCRYPT_R,
            p=SCRYPT_P,
            salt=encode(secrets.token_bytes(SALT_BYTES)),
            nonce=encode(secrets.token_bytes(NONCE_BYTES)),
        )
        data = _encrypt(data, encryption, passport_id, passphrase)
    described = Content(
        encoding="zstd",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest() if encryption is None else None,
        encryption=encryption,
    )
    ratio = round(len(data) / len(content), _RATIO_DIGITS)
    return Packed(described, base64.b64encode(data).decode(), ratio)


def unpack(passport: AnyPassport, passphrase: str | None = None) -> bytes:
    """Unpack the content of a passport with a checked signature."""
    content = passport.content
    if len(passport.data) > MAX_DOCUMENT_BYTES:
        raise passport_errors.too_large(len(passport.data), MAX_DOCUMENT_BYTES)
    try:
        data = base64.b64decode(passport.data, validate=True)
    except (binascii.Error, ValueError):
        raise passport_errors.invalid("its content is not base64") from None
    if content.encryption is not None:
        if passphrase is None:
            raise passport_errors.sealed()
        data = _decrypt(data, content.encryption, passport.passport_id, passphrase)
    plain = decompress(data, content.size)
    digest = hashlib.sha256(plain).hexdigest()
    if content.sha256 is not None and not hmac.compare_digest(digest, content.sha256):
        raise passport_errors.invalid("its content does not match its signed digest")
    return plain


def decompress(data: bytes, size: int) -> bytes:
    """Decompress one frame of zstd of the declared size."""
    if frame_size(data) != size:
        raise passport_errors.invalid("its content does not have the declared size")
    frame = load_zstd().ZstdDecompressor()
    try:
        plain: bytes = frame.decompress(data, size + 1)  # bounded, even if the frame declares a false size
    except load_zstd().ZstdError as error:
        raise passport_errors.invalid(f"its content cannot be unpacked: {error}") from None
    if len(plain) != size or not frame.eof or frame.unused_data:
        raise passport_errors.invalid("its content does not have the declared size")
    return plain


def frame_size(data: bytes) -> int:
    """Return the declared size of a frame of zstd; 0 if it declares none."""
    try:
        size: int | None = load_zstd().get_frame_info(data).decompressed_size
    except load_zstd().ZstdError as error:
        raise passport_errors.invalid(f"its content cannot be unpacked: {error}") from None
    return size or 0


def _encrypt(data: bytes, how: Encryption, passport_id: str, passphrase: str) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  (30 ms, when needed)

    nonce = _decode_exact(how.nonce, NONCE_BYTES)
    return AESGCM(_key(how, passphrase)).encrypt(nonce, data, passport_id.encode())


def _decrypt(data: bytes, how: Encryption, passport_id: str, passphrase: str) -> bytes:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415  (as above)
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    nonce = _decode_exact(how.nonce, NONCE_BYTES)
    try:
        return AESGCM(_key(how, passphrase)).decrypt(nonce, data, passport_id.encode())
    except InvalidTag:
        raise passport_errors.sealed() from None


def _key(how: Encryption, passphrase: str) -> bytes:
    if 128 * how.n * how.r > MOST_SCRYPT_BYTES:
        raise passport_errors.invalid("the key derivation of its passphrase needs too much memory")
    try:
        return hashlib.scrypt(
            passphrase.encode(),
            salt=_decode_exact(how.salt, SALT_BYTES),
            n=how.n,
            r=how.r,
            p=how.p,
            maxmem=MOST_SCRYPT_BYTES + (1 << 20),
            dklen=_KEY_BYTES,
        )
    except ValueError as error:
        raise passport_errors.invalid(f"no key can be derived from its passphrase: {error}") from None


def _decode_exact(text: str, size: int) -> bytes:
    data = decode_strictly(text)
    if data is None or len(data) != size:
        raise passport_errors.invalid("its encryption parameters are malformed")
    return data


class PassportPayload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The payload: a session with all that the exporter may see and selected for export.

    Attributes:
        messages: JSON of `PayloadMessage`, oldest first.
        memories: JSON of `MemoryLine`; an import maps the exporter's namespaces to the importer's.
    """

    session: payloads.PayloadSession
    context: session_context.SessionContext
    migrations: Annotated[list[session_context.Migration], Meta(max_length=session_context.MOST_MIGRATIONS)]
    messages: list[msgspec.Raw]
    memories: list[msgspec.Raw] = []


_decode = msgspec.json.Decoder(PassportPayload).decode


def write(payload: PassportPayload) -> bytes:
    """Return the payload as JSON."""
    return _encode(payload)


def read(raw: bytes) -> PassportPayload:
    """Parse and check a payload, except its memories, which their import checks."""
    try:
        payload = _decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise passport_errors.invalid(f"its content is not a session: {error}") from None
    _check_size("messages", payload.messages, MOST_MESSAGES)
    _check_size("memories", payload.memories, MOST_MEMORIES)
    _check_object("the metadata of the session", payload.session.metadata)
    _check_object("the state of the session", payload.session.state)
    for number, line in enumerate(payload.messages):
        try:
            message = _message(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise passport_errors.invalid(f"its message {number} is invalid: {error}") from None
        _check_json(f"its message {number}", line)
        _check_shape(f"the metadata of its message {number}", message.metadata)
    return payload


def id_of(line: msgspec.Raw) -> int:
    """Return the id of a message."""
    return _message(line).message_id


def time_of(line: msgspec.Raw) -> datetime:
    """Return when a message was written."""
    return _message(line).timestamp


def pieces(messages: Iterable[msgspec.Raw]) -> list[list[msgspec.Raw]]:
    """Return messages in pieces of about `PIECE_BYTES`."""
    found: list[list[msgspec.Raw]] = []
    size = payloads.PIECE_BYTES
    for line in messages:
        if size >= payloads.PIECE_BYTES:
            found.append([])
            size = 0
        found[-1].append(line)
        size += len(memoryview(line))
    return found


def _check_size(name: str, lines: list[Any], most: int) -> None:
    if len(lines) > most:
        raise passport_errors.invalid(f"it has {len(lines):,} {name} and the limit is {most:,}")


def _check_object(name: str, raw: msgspec.Raw) -> None:
    _check_shape(name, raw)
    _check_json(name, raw)


def _check_shape(name: str, raw: msgspec.Raw) -> None:
    value = bytes(raw)
    if not value.startswith(b"{"):
        raise passport_errors.invalid(f"{name} is not a JSON object")
    if len(value) > MAX_VALUE_BYTES:
        raise passport_errors.invalid(f"{name} has {len(value):,} bytes and the limit is {MAX_VALUE_BYTES:,}")


def _check_json(name: str, raw: msgspec.Raw) -> None:
    try:
        check_json(bytes(raw))
    except Refusal as refusal:
        raise passport_errors.invalid(f"{name}: {refusal.sentence}") from None
