"""The document that a passport is: its fields, its canonical form, and what is checked before it is trusted.

Version 3. The *body* is every member but ``signature`` and ``qr``. It is signed in the canonical form of
RFC 8785, so that it may be written with any blanks and in any order. Version 2, which had the data within
``content``, and version 1, in which members of the context had other names as well (`SessionContext`), are
read. Knows nothing of keys, compression and what is inside.
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
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.runtime import Refusal

VERSION: Final = 3
READ: Final = (1, 2, VERSION)
"""The versions that are read."""
MAX_DOCUMENT_BYTES: Final = 48 << 20
"""The most that a passport may take as JSON."""
MAX_CONTENT_BYTES: Final = 32 << 20
"""The most that its content may take once it is unpacked."""
MAX_METADATA_BYTES: Final = 16_384
"""The most that its metadata may take as JSON: they are read before anybody is known to have signed them."""
NOT_SIGNED: Final = frozenset({"signature", "qr"})

_READ_RAW: Final = frozenset(str(version).encode() for version in READ)
_BLANKS: Final = 16
"""So many times as long may metadata be that are written with blanks between their parts."""
_BASE64 = re.compile(r"[A-Za-z0-9+/=]*")
_HEX_ID = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}(?!\n)$")]
_DIGEST = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}(?!\n)$")]
_TEXT = Annotated[str, Meta(max_length=4_096)]
_AUDIENCE = Annotated[list[Annotated[str, Meta(min_length=1, max_length=200)]], Meta(max_length=20)]


class Exporter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who exported: a tool, its agent, the user."""

    tool: _TEXT | None
    agent_id: _TEXT
    agent_type: _TEXT | None
    user: _TEXT | None


class Encryption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the content is encrypted: AES-256-GCM under a key that scrypt makes of the passphrase."""

    cipher: Literal["aes-256-gcm"]
    kdf: Literal["scrypt"]
    n: Annotated[int, Meta(ge=2, le=1 << 18)]
    r: Annotated[int, Meta(ge=1, le=8)]
    p: Annotated[int, Meta(ge=1, le=4)]
    salt: Annotated[str, Meta(max_length=64)]
    nonce: Annotated[str, Meta(max_length=32)]


class Content(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What travels: JSON of `PassportPayload`, compressed, perhaps encrypted.

    Attributes:
        size: Bytes of the JSON.
        sha256: Of the JSON, unless it is encrypted, where it would tell what is inside.
    """

    encoding: Literal["zstd"]
    size: Annotated[int, Meta(ge=1, le=MAX_CONTENT_BYTES)]
    sha256: _DIGEST | None
    encryption: Encryption | None


class OlderContent(Content, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same up to version 2, with the data in it."""

    data: str


class Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Over the body: by which key (``ed25519:`` and the public key, ``hmac:`` and the secret's name)."""

    algorithm: Literal["ed25519", "hmac-sha256"]
    key: Annotated[str, Meta(max_length=100)]
    value: Annotated[str, Meta(max_length=100)]


class Members(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What passports of every version have; `Passport` says what it means."""

    passport_id: _HEX_ID
    session_id: types.SessionId
    exported_at: types.Instant
    exported_by: Exporter
    expires_at: types.Instant
    one_time: bool
    audience: _AUDIENCE
    project_id: types.ProjectId | None
    workspace_path: travel.WorkspacePath | None
    context: travel.SessionContext | None
    metadata: dict[str, Any]
    signature: Signature
    qr: str | None = None


class Passport(Members, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The document.

    Attributes:
        greenroom_passport: The version; servers of before look for it here.
        version: The same.
        exported_by_tool: The tool of ``exported_by``.
        compressed_context: The content in base64, as ``content`` says.
        compression_ratio: Bytes of the content as it travels for each byte of its JSON.
        one_time: Whether a server takes it once.
        audience: ``user:`` or ``server:`` and a name; of each kind that occurs one must fit. Empty for all.
        context: As in the session, unless the content is encrypted, which has it inside.
        metadata: Further words for people and programs; nothing is decided by them.
        qr: A PNG in base64 that carries this passport or a claim to it; outside of what is signed.
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
    """Return the canonical JSON (RFC 8785) of a passport, or of its body.

    Raises:
        Refusal: it has a number that no double holds exactly.
    """
    import rfc8785  # noqa: PLC0415  (only who exports or restores needs it)

    mark = secrets.token_hex(16)
    data, marked = _marked(value, mark)
    try:
        if not isinstance(data, str) or _BASE64.fullmatch(data) is None:
            return rfc8785.dumps(value)
        # Megabytes that are their own canonical form: they are put in at once, which holds nobody up.
        text = rfc8785.dumps(marked)
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise passport_errors.invalid(f"it has no canonical form: {error}") from None
    before, after = text.split(mark.encode())
    return b"".join((before, data.encode(), after))


def _marked(value: dict[str, Any], mark: str) -> tuple[object, dict[str, Any]]:
    """Return the data of a passport of any version, and the passport with a mark in its place."""
    content = value.get("content")
    if "compressed_context" in value or not isinstance(content, dict):
        return value.get("compressed_context"), {**value, "compressed_context": mark}
    return content.get("data"), {**value, "content": {**content, "data": mark}}


def read(document: bytes | str | dict[str, Any]) -> tuple[AnyPassport, bytes]:
    """Return a passport and its body in canonical form; nothing of it is trusted yet.

    Args:
        document: Its JSON, or that parsed.

    Raises:
        Refusal: ``PASSPORT_TOO_LARGE``, or ``PASSPORT_INVALID`` for what is no passport of a known version.
    """
    parsed = document if isinstance(document, dict) else _parsed(document)
    version = parsed.get("greenroom_passport")
    if version not in READ or isinstance(version, bool):
        raise _another_format(None if version is None else str(version))
    try:
        passport = msgspec.convert(parsed, _type_of(version))
    except msgspec.ValidationError as error:
        raise passport_errors.invalid(f"it is not made as one: {error}") from None
    if isinstance(passport, Passport) and passport.exported_by_tool != passport.exported_by.tool:
        raise passport_errors.invalid("it names two tools that exported it")
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
    """Return what reads a passport of which the metadata, which may be anything, are not looked into."""
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
    """Refuse what is no passport before Python objects are made of whatever is in it."""
    try:
        version = bytes(_read_version(raw).greenroom_passport)
        if version not in _READ_RAW:
            raise _another_format(None if version == b"null" else version[:20].decode(errors="replace"))
        size = len(memoryview(_outline(_type_of(int(version))).decode(raw).metadata))
    except msgspec.ValidationError as error:
        raise passport_errors.invalid(f"it is not made as one: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise passport_errors.invalid(f"it is no JSON: {error}") from None
    if size > _BLANKS * MAX_METADATA_BYTES:
        raise passport_errors.too_large(size, MAX_METADATA_BYTES)


def _another_format(version: str | None) -> Refusal:
    return passport_errors.invalid(
        "it is no passport of Greenroom"
        if version is None
        else f"it is of the format {version[:20]}, and this server knows {READ[0]} to {VERSION}"
    )


def write(body: dict[str, Any], signature: Signature, qr: str | None = None) -> bytes:
    """Return the JSON of a passport, in canonical form."""
    whole = {**body, "signature": msgspec.to_builtins(signature)}
    return canonical(whole if qr is None else {**whole, "qr": qr})


def _parsed(document: bytes | str) -> dict[str, Any]:
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
        raise passport_errors.invalid("it is no JSON object")
    return parsed


def instant(time: datetime) -> str:
    """Return a time as a passport has it."""
    return str(msgspec.to_builtins(time))
