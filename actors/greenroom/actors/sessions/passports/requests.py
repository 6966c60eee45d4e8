"""Requests about passports: those of tools, and those to the actor of one passport."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.replies import Continued, Reply
from greenroom.actors.core.validation import types
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.runtime import Address, Message

KIND = "passport"
MOST_DAYS = 366

_KNOWN_MEMBER = {"properties": {"greenroom_passport": {"type": "integer"}}}
"""OpenAI's strict mode takes no object without one."""
PassportText = Annotated[
    str | Annotated[dict[str, Any], Meta(extra_json_schema=_KNOWN_MEMBER)],
    Meta(description="a passport, as text or object, or a claim (GREENROOM:C1:…)"),
]
Passphrase = Annotated[str, Meta(min_length=8, max_length=1_024, description="encrypts the content")]
GivenPassphrase = Annotated[str, Meta(max_length=1_024, description="if it is encrypted")]
ValidFor = Annotated[int, Meta(ge=60, le=MOST_DAYS * 86_400, description="seconds")]
Audience = Annotated[
    list[
        Annotated[
            str,
            Meta(
                pattern=r"^(user:.{1,128}|server:ed25519:[A-Za-z0-9_-]{43})(?!\n)$",
                extra={"takes": "user: and a name, or server: and a signer's public key"},
            ),
        ]
    ],
    Meta(max_length=20, description="user:NAME, server:KEY; empty = anyone"),
]


def passport_address(passport_id: str) -> Address:
    """Return the actor of a passport."""
    return Address(KIND, passport_id)


REFUSALS = passport_address("refused")
"""The actor that hears of passports that were refused, whichever they were."""


def passport_uri(passport_id: str) -> str:
    """Return the URI at which an exported passport can be read."""
    return f"greenroom://passport/{passport_id}"


# -- tools -------------------------------------------------------------


class MemoryPassport(msgspec.Struct, frozen=True, kw_only=True):
    """How a session can be taken elsewhere.

    Attributes:
        passport_id: Of the passport that the link gives; without a link an id of the claim.
        claim: A text by which another tool takes this session up, at this server; valid for 30 days.
        export_url: A link that gives its passport, once and to whoever has it, without a key; None where
            there is no HTTP, or the caller may not export.
        export_expires_at: When the link ends.
        qr_code: A data URL with the claim as a QR code, where that was asked for.
    """

    passport_id: str
    claim: str
    export_url: str | None = None
    export_expires_at: datetime | None = None
    qr_code: str | None = None


BriefPassport = Annotated[MemoryPassport | None, Meta(extra_json_schema=types.BRIEF)]


class SessionStarted(Reply, frozen=True, kw_only=True):
    """Answers `StartSession`.

    Attributes:
        notice: What was done and why, and how to go on, in words.
        briefing: What was recorded and said, in words, as data.
        talk: How much was said in what was restored, and how that is read.
        continues: The session that had ended and that this one continues.
        restored: Whether it is one that was there, or was in a passport, or continues one.
        taken_up: Where it comes from, if the start itself took it up.
        offered: Other sessions of the same user and project that are open, last used first, and behind them
            those that hooks keep; each with who works there, and with the call that goes on with it.
        memory_passport: How the session goes elsewhere.
    """

    notice: str
    briefing: str
    talk: travel.BriefTalk = travel.TalkView()
    session_id: str
    continues: Continued = UNSET
    project_id: str | None
    created_at: datetime
    tool: str
    restored: bool
    taken_up: travel.BriefTakenUp
    offered: list[travel.BriefOffer]
    context: travel.BriefContext
    memory_passport: BriefPassport


class SessionRestored(Reply, frozen=True, kw_only=True):
    """Answers `RestoreSession`.

    Attributes:
        notice: What was restored, in words.
        briefing: What was recorded and said, in words, as data.
        talk: How much was said in it, and how that is read.
        continues: The session that had ended and that this one continues.
        original_tool: The tool that the session was started in.
        original_session_id: What it was called where it was exported, or before it was continued.
        messages: How many messages the caller sees in what came in a passport; None for one that was here.
        memories: How many memories came with it.
    """

    notice: str
    briefing: str
    talk: travel.BriefTalk = travel.TalkView()
    session_id: str
    continues: Continued = UNSET
    project_id: str | None
    context: travel.BriefContext
    created_at: datetime
    restored_at: datetime
    tool: str
    original_tool: str | None
    original_session_id: str
    messages: int | None = None
    memories: int = 0


class SessionExported(Reply, frozen=True, kw_only=True):
    """Answers `ExportSession`.

    Attributes:
        uri: Where the passport can be read until it expires, by the same user.
        claim: A short text that stands for it at this server.
        passport: The passport itself, where it is small.
        qr: What the QR code carries: the ``passport`` or the ``claim``; its PNG comes as an image.
        qr_png: That PNG in base64.
    """

    passport_id: str
    session_id: str
    uri: str
    claim: str
    signer: str
    exported_at: datetime
    expires_at: datetime
    one_time: bool
    encrypted: bool
    size_bytes: int
    messages: int
    memories: int
    passport: msgspec.Raw | UnsetType = UNSET
    qr: str | None = None
    qr_png: str | None = None


class SessionMigrated(Reply, frozen=True, kw_only=True):
    """Answers `MigrateSession`.

    Attributes:
        instructions: What to do in the other tool.
        briefing: What was recorded and said, in words, for the other tool, as data.
        talk: How much was said in it, and how that is read.
        claim: What the other tool gives `RestoreSession`.
    """

    instructions: str
    briefing: str
    talk: travel.BriefTalk = travel.TalkView()
    session_id: str
    from_tool: str | None
    to_tool: str
    claim: str
    expires_at: datetime
    migrated_at: datetime


# -- to the actor of one passport ----------------------------------------


class Redemption(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `Redeem`: which attempt this is, and the session that it makes.

    Attributes:
        at: When it began.
        here: Whether it takes up the exported session itself.
        done: Whether it was done before.
        is_late: Whether it began so long ago that no repeat of it is answered any more.
    """

    attempt: str
    session_id: str
    at: datetime
    here: bool = False
    done: bool = False
    is_late: bool = False


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `AskStanding`: the time, and the text where it is kept here.

    Attributes:
        own: The asker's own redemption, the last one.
    """

    now: datetime
    text: str | None = None
    own: Redemption | None = None


class AskStanding(Message[Standing], frozen=True, kw_only=True):
    """Find out how a passport stands here."""

    text: bool = False


class KeepPassport(Message[None], frozen=True, kw_only=True):
    """Keep a piece of an exported passport, until it expires; without its last one it is none.

    Attributes:
        session_id: Which session is in it.
        memories: How many memories are.
        size: How many characters it has in all.
        signer: The public key of who signed it; empty from an older program, which says nothing of these.
    """

    number: int
    text: str
    expires_at: datetime
    session_id: str
    memories: int
    size: int
    is_last: bool
    signer: str = ""
    one_time: bool = False
    encrypted: bool = False


class KeepLink(Message[datetime], frozen=True, kw_only=True):
    """Keep that somebody may have a session's passport of this id, once; answers until when."""

    session_id: str


class LinkFound(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `FindLink`: whose passport to make, and of which session; nobody's where there is no link."""

    maker: Principal | None = None
    session_id: str = ""


class FindLink(Message[LinkFound], frozen=True, kw_only=True):
    """Find what a link opens; who asks is not looked at, since the address of its actor is the secret."""


class TakeLink(Message[bool], frozen=True, kw_only=True):
    """Use a link up; answers whether it was there: of several who found it, one is told so."""


class Redeem(Message[Redemption], frozen=True, kw_only=True):
    """Redeem a passport that was checked; of a one-time passport the same agent's attempt is gone on with."""

    attempt: str
    session_id: str
    one_time: bool
    expires_at: datetime
    here: bool = False


class SettleRedemption(Message[None], frozen=True, kw_only=True):
    """Say that an attempt is done, and which session it made."""

    attempt: str
    session_id: str
    one_time: bool
    expires_at: datetime
    here: bool = False


class Redeemed(msgspec.Struct, frozen=True, kw_only=True):
    """That a one-time passport is somebody's to redeem, or ``done``: what no restored backup undoes.

    Attributes:
        owner: Stands for the user who redeems it, and names nobody.
        agent: Stands for that user's agent, likewise; older programs did not say.
    """

    attempt: str
    owner: str
    done: bool
    expires: int
    agent: str = ""


class NoteRefusal(Message[None], frozen=True, kw_only=True):
    """Word that a passport was refused, for the audit log."""

    code: str


class ForgetPassport(Message[None], frozen=True, kw_only=True):
    """The passport's word to itself: it expired."""
