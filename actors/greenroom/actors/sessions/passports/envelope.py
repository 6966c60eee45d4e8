"""The passport document: fields, canonical form, checks before it is trusted.

Version 3. The *body* is every member but ``signature`` and ``qr``. It is signed in the canonical form of RFC
8785, so blanks and order do not matter. Version 2 (data within ``content``) and version 1 (also other names
in `SessionContext`) can be read, too. This module does not handle keys, compression or the content.
"""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Final, Literal, get_type_hints

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import passport_errors
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.strict_json import check_json
from greenroom.actors.sessions.requests import session_context
from greenroom.runtime import Refusal

VERSION: Final = 3
READ: Final = (1, 2, VERSION)
"""The versions that can be read."""
MAX_DOCUMENT_BYTES: Final = 48 << 20
"""The most bytes of a passport as JSON."""
MAX_CONTENT_BYTES: Final = 32 << 20
"""The most bytes of its unpacked content."""
MAX_METADATA_BYTES: Final = 16_384
"""The most bytes of its metadata as JSON, which are parsed before the signature is checked."""
NOT_SIGNED: Final = frozenset({"signature", "qr"})

_READ_RAW: Final = frozenset(str(version).encode() for version in READ)
_BLANKS: Final = 16
"""The factor by which blanks may lengthen metadata."""
_BASE64 = re.compile(r"[A-Za-z0-9+/=]*")
_HEX_ID = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}(?!\n)$")]
_DIGEST = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}(?!\n)$")]
_TEXT = Annotated[str, Meta(max_length=4_096)]
_AUDIENCE = Annotated[list[Annotated[str, Meta(min_length=1, max_length=200)]], Meta(max_length=20)]


class Exporter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The exporter: tool, agent, user."""

    tool: _TEXT | None
    agent_id: _TEXT
    agent_type: _TEXT | None
    user: _TEXT | None


class Encryption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The encryption of the content: AES-256-GCM, key from the passphrase by scrypt."""

    cipher: Literal["aes-256-gcm"]
    kdf: Literal["scrypt"]
    n: Annotated[int, Meta(ge=2, le=1 << 18)]
    r: Annotated[int, Meta(ge=1, le=8)]
    p: Annotated[int, Meta(ge=1, le=4)]
    salt: Annotated[str, Meta(max_length=64)]
    nonce: Annotated[str, Meta(max_length=32)]


class Content(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content: JSON of `PassportPayload`, compressed, optionally encrypted.

    Attributes:
        size: The bytes of the JSON.
        sha256: The digest of the JSON; None if encrypted, since a digest would reveal known content.
    """

    encoding: Literal["zstd"]
    size: Annotated[int, Meta(ge=1, le=MAX_CONTENT_BYTES)]
    sha256: _DIGEST | None
    encryption: Encryption | None


class OlderContent(Content, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content up to version 2, which includes the data."""

    data: str


class Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The signature of the body.

    ``key``: ``ed25519:`` and the public key, or ``hmac:`` and the name of the secret.
    """

    algorithm: Literal["ed25519", "hmac-sha256"]
    key: Annotated[str, Meta(max_length=100)]
    value: Annotated[str, Meta(max_length=100)]


class Members(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The members of all versions; `Passport` explains them."""

    passport_id: _HEX_ID
    session_id: types.SessionId
    exported_at: types.Instant
    exported_by: Exporter
    expires_at: types.Instant
    one_time: bool
    audience: _AUDIENCE
    project_id: types.ProjectId | None
    workspace_path: session_context.WorkspacePath | None
    context: session_context.SessionContext | None
    metadata: dict[str, Any]
    signature: Signature
    qr: str | None = None


class Passport(Members, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The document.

    Attributes:
        greenroom_passport: The version, where older servers look for it.
        version: The version again.
        exported_by_tool: The tool of ``exported_by``.
        compressed_context: The content in base64, described by ``content``.
        compression_ratio: Packed bytes per byte of JSON.
        one_time: Whether each server accepts it only once.
        audience: Names after ``user:`` or ``server:``; one of each kind that occurs must match. Empty: all.
        context: The work context; None if the content is encrypted.
        metadata: Information for people and programs, without effect.
        qr: A PNG in base64 with this passport or a claim to it; not signed.
    """

    greenroom_passport: Literal[3]
    version: Literal[3]
    exported_by_tool: _TEXT | None
    compressed_context: str
    compression_ratio: Annotated[float, Meta(ge=0)]
    content: Content

    @property
    def data(self) -> str:
        """The content in base64."""
        return self.compressed_context


class OlderPassport(Members, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The document up to version 2."""

    greenroom_passport: Literal[1, 2]
    content: OlderContent

    @property
    def data(self) -> str:
        """The content in base64."""
        return self.content.data


AnyPassport = Passport | OlderPassport


def canonical(value: dict[str, Any]) -> bytes:
    """Return the canonical JSON (RFC 8785) of a passport, or of its body."""
    import rfc8785  # noqa: PLC0415  (only for export and restore)

    mark = secrets.token_hex(16)
    data, marked = _mark_data(value, mark)
    try:
        if not isinstance(data, str) or _BASE64.fullmatch(data) is None:
            return rfc8785.dumps(value)
        # Base64 is its own canonical form: inserting it afterwards avoids scanning megabytes.
        text = rfc8785.dumps(marked)
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise passport_errors.invalid(f"it has no canonical form: {error}") from None
    before, after = text.split(mark.encode())
    return b"".join((before, data.encode(), after))


def _mark_data(value: dict[str, Any], mark: str) -> tuple[object, dict[str, Any]]:
    """Return a passport's data, and the passport with a mark in place of the data."""
    content = value.get("content")
    if "compressed_context" in value or not isinstance(content, dict):
        return value.get("compressed_context"), {**value, "compressed_context": mark}
    return content.get("data"), {**value, "content": {**content, "data": mark}}


def read(document: bytes | str | dict[str, Any]) -> tuple[AnyPassport, bytes]:
    """Parse a passport; return it and its canonical body, both untrusted."""
    parsed = document if isinstance(document, dict) else _parse(document)
    version = parsed.get("greenroom_passport")
    if version not in READ or isinstance(version, bool):
        raise _another_format(None if version is None else str(version))
    try:
        passport = msgspec.convert(parsed, _type_of(version))
    except msgspec.ValidationError as error:
        raise passport_errors.invalid(f"it does not match the format: {error}") from None
    if isinstance(passport, Passport) and passport.exported_by_tool != passport.exported_by.tool:
        raise passport_errors.invalid("its two names of the exporting tool differ")
    try:
        size = len(msgspec.json.encode(passport.metadata))
    except RecursionError as error:
        raise passport_errors.invalid(f"its metadata are too deep: {error}") from None
    if size > MAX_METADATA_BYTES:
        raise passport_errors.too_large(size, MAX_METADATA_BYTES)
    return passport, canonical({name: value for name, value in parsed.items() if name not in NOT_SIGNED})


def _type_of(version: int) -> type[AnyPassport]:
    return Passport if version == VERSION else OlderPassport


class _Version(msgspec.Struct):
    greenroom_passport: msgspec.Raw = msgspec.Raw(b"null")


@cache
def _outline(kind: type[AnyPassport]) -> msgspec.json.Decoder[Any]:
    """Return a decoder of passports that leaves their metadata unparsed."""
    hints = get_type_hints(kind, include_extras=True)
    fields = [
        (field.name, msgspec.Raw if field.name == "metadata" else hints[field.name])
        for field in msgspec.structs.fields(kind)
        if field.name != "qr"
    ]
    outline = msgspec.defstruct(
        "Passport", [*fields, ("qr", hints["qr"], None)], kw_only=True, forbid_unknown_fields=True
    )
    return msgspec.json.Decoder(outline)


_read_version = msgspec.json.Decoder(_Version).decode


def _check_outline(raw: bytes) -> None:
    """Refuse documents of another form before they become Python objects."""
    try:
        version = bytes(_read_version(raw).greenroom_passport)
        if version not in _READ_RAW:
            raise _another_format(None if version == b"null" else version[:20].decode(errors="replace"))
        size = len(memoryview(_outline(_type_of(int(version))).decode(raw).metadata))
    except msgspec.ValidationError as error:
        raise passport_errors.invalid(f"it does not match the format: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise passport_errors.invalid(f"it is not JSON: {error}") from None
    if size > _BLANKS * MAX_METADATA_BYTES:
        raise passport_errors.too_large(size, MAX_METADATA_BYTES)


def _another_format(version: str | None) -> Refusal:
    return passport_errors.invalid(
        "it is not a passport of Greenroom"
        if version is None
        else f"its format is {version[:20]}, and this server reads {READ[0]} to {VERSION}"
    )


def write(body: dict[str, Any], signature: Signature, qr: str | None = None) -> bytes:
    """Return the JSON of a passport, in canonical form."""
    whole = {**body, "signature": msgspec.to_builtins(signature)}
    return canonical(whole if qr is None else {**whole, "qr": qr})


def _parse(document: bytes | str) -> dict[str, Any]:
    try:
        raw = document.encode() if isinstance(document, str) else document
    except UnicodeEncodeError:
        raise passport_errors.invalid("it is not UTF-8") from None
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise passport_errors.too_large(len(raw), MAX_DOCUMENT_BYTES)
    _check_outline(raw)
    try:
        parsed = check_json(raw)
    except Refusal as refusal:
        raise passport_errors.invalid(refusal.sentence) from None
    if not isinstance(parsed, dict):
        raise passport_errors.invalid("it is not a JSON object")
    return parsed


def instant(time: datetime) -> str:
    """Return a time in the form of passports."""
    return str(msgspec.to_builtins(time))
