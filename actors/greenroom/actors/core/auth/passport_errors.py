"""The refusals of passports, each worded once. In all these cases nothing was restored."""

from __future__ import annotations

from typing import Final

from greenroom.runtime import Refusal

SHARED: Final = "hmac:"
"""The prefix of a signer that is a secret which servers share."""
CODES: Final = frozenset(
    {
        "PASSPORT_INVALID",
        "PASSPORT_UNTRUSTED",
        "PASSPORT_EXPIRED",
        "PASSPORT_REDEEMED",
        "PASSPORT_NOT_FOR_YOU",
        "PASSPORT_TOO_LARGE",
        "PASSPHRASE_NEEDED",
    }
)


def _refusal(code: str, sentence: str, **details: str | int) -> Refusal:
    return Refusal(code, f"passport: {sentence}", field="passport", **details)


def invalid(sentence: str) -> Refusal:
    """Refuse a passport that is malformed, was changed, or has contents that cannot be stored."""
    return _refusal("PASSPORT_INVALID", sentence)


def untrusted(signer: str) -> Refusal:
    """Refuse a signer that is not trusted."""
    if signer.startswith(SHARED):
        remedy = (
            "it was signed with a secret that servers share, by GREENROOM_PASSPORT_SECRET: give the same here"
        )
    else:
        # The reader called a server, or ran a command that has this option.
        remedy = (
            "if you know the server that signed it, `greenroom serve` and `greenroom passport` trust it with "
            f"--trust-signer {signer}"
        )
    return _refusal(
        "PASSPORT_UNTRUSTED", f"its signer {signer!r} is not trusted here; {remedy}", signer=signer
    )


def expired(at: str) -> Refusal:
    """Refuse an expired passport."""
    return _refusal("PASSPORT_EXPIRED", f"it expired at {at}; export the session again", expired_at=at)


def redeemed() -> Refusal:
    """Refuse a one-time passport that was redeemed before."""
    return _refusal("PASSPORT_REDEEMED", "it could be redeemed once, and was; export the session again")


def redeemed_long_ago(at: str, session_id: str) -> Refusal:
    """Refuse a repeat by the same agent after 24 hours."""
    return _refusal(
        "PASSPORT_REDEEMED",
        f"it could be redeemed once, and you did at {at}, as the session {session_id!r}; a repeat "
        "is answered for 24 hours; export the session again",
    )


def redeemed_and_gone(session_id: str) -> Refusal:
    """Refuse a repeat by the same agent whose restored session is gone."""
    return _refusal(
        "PASSPORT_REDEEMED",
        f"it could be redeemed once, and you did; its session {session_id!r} is not here any more; "
        "export the session again",
    )


def being_redeemed() -> Refusal:
    """Refuse a one-time passport that another agent of the user is redeeming."""
    return _refusal(
        "PASSPORT_REDEEMED",
        "it can be redeemed once, and another agent of the same user has begun to; export the session again",
    )


def not_for_you() -> Refusal:
    """Refuse a passport for another audience."""
    return _refusal(
        "PASSPORT_NOT_FOR_YOU", "its audience is another server or another user; ask who gave it to you"
    )


def sealed() -> Refusal:
    """Refuse an encrypted passport without the right passphrase."""
    return Refusal(
        "PASSPHRASE_NEEDED",
        "passphrase: the passport is encrypted and this passphrase does not open it, or none was given",
        field="passphrase",
    )


def too_large(size: int, limit: int) -> Refusal:
    """Refuse a passport that is too large, packed or unpacked."""
    return _refusal(
        "PASSPORT_TOO_LARGE",
        f"it has {size:,} bytes and the limit is {limit:,}; leave memories out",
        size=size,
        limit=limit,
    )


def too_many(count: int, limit: int) -> Refusal:
    """Refuse a session with more messages than a passport may have."""
    return Refusal(
        "PASSPORT_TOO_LARGE",
        f"session_id: you see {count:,} messages in it and a passport has at most {limit:,}",
        field="session_id",
        size=count,
        limit=limit,
    )


def unknown_claim() -> Refusal:
    """Refuse a claim of another server, or of a passport that is gone."""
    return _refusal(
        "PASSPORT_INVALID",
        "this claim is none of this server's, or what it claims is not here any more; a claim is redeemed at "
        "the server that made it",
    )
