"""The actor of one passport: exported text or link, and redemptions.

The actor remembers redemptions for longer than the passport is valid. So a one-time passport is redeemed only
once; later it is refused as expired. For a day, the redeemer gets the same reply again.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from typing import Final

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors, passport_errors
from greenroom.actors.core.auth.namespaces import agent_namespace, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.erasure import ErasedPart, EraseFrom
from greenroom.actors.core.resources import resources
from greenroom.actors.core.validation.times import DAY, HOUR, to_datetime, to_microseconds
from greenroom.actors.memories.requests.transfer import ExportResource
from greenroom.actors.sessions.passports import issued, requests
from greenroom.runtime import Actor, Context, Replay, Restate, Slices, handles

TIMER: Final = "forget"
UNDERWAY_FOR: Final = HOUR
"""How long the pieces of an incomplete passport are kept."""
REPEATED_FOR: Final = DAY
"""How long after the beginning of a redemption its redeemer can repeat it."""
LINK_FOR: Final = HOUR // 4
"""How long the link to a passport is valid."""
MIME_TYPE: Final = "application/json"
_LINK: Final = b"l"
_LINK_TAKEN: Final = "link"
"""The attempt of the link's entry in the revocation log."""
_HEAD: Final = b"h"
_PIECE: Final = b"p"
_REDEMPTION: Final = b"r"
_WITH_ATTEMPTS: Final = frozenset({_REDEMPTION, issued.TAKEN})
_OWNERS: Final = "greenroom/passport/owner"
_OWNER_BYTES: Final = 16


class PassportHeader(msgspec.Struct, frozen=True, array_like=True):
    """The owner who exported the passport here: the namespace of a user or agent."""

    owner: str


class StoredRedemption(msgspec.Struct, frozen=True, array_like=True):
    """A redemption: owner, session (empty if unknown), and whether it is done.

    ``agent`` is a digest of the owner's agent. ``here`` says whether the session is the exported session
    itself. Records of older stores have neither.
    """

    owner: str
    session_id: str
    at: int
    done: bool
    agent: str = ""
    here: bool = False

    def answer(self, attempt: str, now: int, session_id: str) -> requests.Redemption:
        """Return the reply to the redeemer; ``session_id`` is used if the record has none."""
        return requests.Redemption(
            attempt=attempt,
            session_id=self.session_id or session_id,
            at=to_datetime(self.at),
            here=self.here,
            done=self.done,
            is_late=self.at + REPEATED_FOR <= now,
        )


class StoredLink(msgspec.Struct, frozen=True, array_like=True):
    """A link to a session's passport, exported with the rights of its maker."""

    maker: Principal
    session_id: str
    expires: int


_redeemed = msgspec.json.Decoder(requests.Redeemed).decode


def _owner(context: Context) -> str:
    """Return the digest of the caller's namespace, since the revocation log has no names."""
    return _hidden(context, user_namespace(context.principal))


def _asker(context: Context) -> tuple[str, str]:
    return _owner(context), _hidden(context, agent_namespace(context.principal))


def _only_attempt(
    context: Context, attempt: str, stored: StoredRedemption | None
) -> tuple[str, StoredRedemption | None]:
    """Return the only attempt of a one-time passport, and its record."""
    owner, agent = _asker(context)
    if stored is None:
        for key, other in context.scan(StoredRedemption, prefix=_REDEMPTION):
            if other.owner != owner or (other.done and other.agent != agent):
                raise passport_errors.redeemed()
            if other.agent not in {"", agent}:
                raise passport_errors.being_redeemed()
            attempt, stored = key.removeprefix(_REDEMPTION).decode(), other
    if stored is not None and stored.done:
        if not stored.session_id:  # a restored backup lacks the session
            raise passport_errors.redeemed()
        if stored.at + REPEATED_FOR <= context.now:
            raise passport_errors.redeemed_long_ago(to_datetime(stored.at).isoformat(), stored.session_id)
    return attempt, stored


def _hidden(context: Context, name: str) -> str:
    return hmac.digest(context.derive(_OWNERS), name.encode(), hashlib.sha256)[:_OWNER_BYTES].hex()


def _open_link(context: Context) -> StoredLink | None:
    link = context.get(_LINK, StoredLink)
    return None if link is None or link.expires <= context.now else link


def _taker(attempt: str, session_id: str, context: Context) -> issued.Taker:
    principal: Principal = context.principal
    owner = user_namespace(principal)
    return issued.Taker(attempt, owner, principal.agent_id, context.now, session_id, done=False)


def _names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    return ((1, len(key)),) if key[:1] in _WITH_ATTEMPTS and len(key) > 1 else ()


class PassportActor(Actor):
    """One passport, addressed by its id."""

    kind = requests.KIND
    names = staticmethod(_names_in)

    @handles(requests.KeepPassport)
    def keep(self, request: requests.KeepPassport, context: Context) -> None:
        """Store a piece; the passport can be read once the last piece is stored."""
        owner = user_namespace(context.principal)
        head = context.get(_HEAD, PassportHeader)
        if head is not None and head.owner != owner:
            raise errors.denial(errors.resource_not_found(requests.passport_uri(context.address.key)))
        context.put(_PIECE + request.number.to_bytes(4), request.text)
        if request.is_last:
            context.put(_HEAD, PassportHeader(owner))
            issued.put_issued(
                context,
                issued.IssuedRow(
                    request.session_id,
                    owner,
                    context.principal.agent_id,
                    context.now,
                    to_microseconds(request.expires_at),
                    request.signer,
                    request.size,
                    request.memories,
                    request.one_time,
                    request.encrypted,
                ),
            )
            audit_record.record(
                context,
                "keep_passport",
                request.session_id,
                passport_id=context.address.key,
                memories=request.memories,
                characters=request.size,
            )
            self._forget_at(context, to_microseconds(request.expires_at))
        elif request.number == 0:
            context.set_timer(TIMER, context.now + UNDERWAY_FOR, requests.ForgetPassport())

    @handles(requests.AskStanding)
    def standing(self, request: requests.AskStanding, context: Context) -> Slices[requests.Standing]:
        """Return the time, the caller's redemption, and the text if requested."""
        text = None
        if request.text and context.get(_HEAD, PassportHeader) is not None:
            text = yield from self._text(context)
        asker = _asker(context)
        own = None
        for key, stored in context.scan(StoredRedemption, prefix=_REDEMPTION):
            if (stored.owner, stored.agent) == asker:
                answer = stored.answer(key.removeprefix(_REDEMPTION).decode(), context.now, "")
                own = answer if own is None or answer.at > own.at else own
            yield
        return requests.Standing(now=to_datetime(context.now), text=text, own=own)

    @handles(resources.ReadResource)
    def read(self, request: resources.ReadResource, context: Context) -> Slices[ExportResource]:
        """Return the text to the user who exported it."""
        head = context.get(_HEAD, PassportHeader)
        if head is None:
            raise errors.resource_not_found(request.uri)
        if head.owner != user_namespace(context.principal):
            raise errors.denial(errors.resource_not_found(request.uri))
        text = yield from self._text(context)
        audit_record.record_resource_read(context, characters=len(text))
        return ExportResource(uri=request.uri, mime_type=MIME_TYPE, text=text)

    @handles(requests.KeepLink)
    def keep_link(self, request: requests.KeepLink, context: Context) -> datetime:
        """Store a link for a limited time."""
        link = StoredLink(context.principal, request.session_id, context.now + LINK_FOR)
        context.put(_LINK, link)
        context.set_timer(TIMER, link.expires, requests.ForgetPassport())
        return to_datetime(link.expires)

    @handles(requests.FindLink)
    def find_link(self, _: requests.FindLink, context: Context) -> requests.LinkFound:
        """Return the session of the link."""
        link = _open_link(context)
        if link is None:
            return requests.LinkFound()
        return requests.LinkFound(maker=link.maker, session_id=link.session_id)

    @handles(requests.TakeLink)
    def take_link(self, _: requests.TakeLink, context: Context) -> bool:
        """Consume the link; restoring a backup does not restore it."""
        link = _open_link(context)
        if link is None:
            return False
        context.delete(_LINK)
        taken = requests.Redeemed(attempt=_LINK_TAKEN, owner="", done=True, expires=link.expires)
        context.record_revocation(taken, until=link.expires)
        return True

    @handles(requests.Redeem)
    def redeem(self, request: requests.Redeem, context: Context) -> requests.Redemption:
        """Begin a redemption, unless the passport may not be redeemed again."""
        expires = to_microseconds(request.expires_at)
        owner, agent = _asker(context)
        attempt = request.attempt
        stored = context.get(_REDEMPTION + attempt.encode(), StoredRedemption)
        if request.one_time:
            attempt, stored = _only_attempt(context, attempt, stored)
        known = None if stored is None else stored.answer(attempt, context.now, request.session_id)
        if expires <= context.now and (known is None or known.is_late or not request.one_time):
            raise passport_errors.expired(to_datetime(expires).isoformat())
        if known is not None:
            return known
        stored = StoredRedemption(
            owner, request.session_id, context.now, done=False, agent=agent, here=request.here
        )
        context.put(_REDEMPTION + attempt.encode(), stored)
        issued.put_taken(context, _taker(attempt, request.session_id, context), expires)
        self._forget_at(context, expires)
        if request.one_time:
            redeemed = requests.Redeemed(
                attempt=attempt, owner=owner, done=False, expires=expires, agent=agent
            )
            context.record_revocation(redeemed, until=expires)
        audit_record.record(context, "redeem_passport", request.session_id, passport_id=context.address.key)
        return stored.answer(attempt, context.now, request.session_id)

    @handles(requests.SettleRedemption)
    def settle(self, request: requests.SettleRedemption, context: Context) -> None:
        """Record that an attempt is done."""
        key = _REDEMPTION + request.attempt.encode()
        stored = context.get(key, StoredRedemption)
        owner = _owner(context)
        if stored is not None and not stored.done and stored.owner == owner:
            changed = msgspec.structs.replace(
                stored, session_id=request.session_id, done=True, here=request.here
            )
            context.put(key, changed)
            expires = to_microseconds(request.expires_at)
            was = issued.find_taken(context, request.attempt)
            if was is not None:
                taker = msgspec.structs.replace(was.taker, session_id=request.session_id, done=True)
                issued.put_taken(context, taker, expires)
            if request.one_time:
                redeemed = requests.Redeemed(
                    attempt=request.attempt, owner=owner, done=True, expires=expires, agent=stored.agent
                )
                context.record_revocation(redeemed, until=expires)

    @handles(Replay)
    def replay(self, request: Replay, context: Context) -> None:
        """Record redemptions that a restored backup lacks; their sessions are lost."""
        context.use_reserve()
        for redeemed in map(_redeemed, request.values):
            if redeemed.attempt == _LINK_TAKEN:
                context.delete(_LINK)
                continue
            key = _REDEMPTION + redeemed.attempt.encode()
            stored = context.get(key, StoredRedemption)
            if stored is None or redeemed.done > stored.done:
                session_id, here = ("", False) if stored is None else (stored.session_id, stored.here)
                again = StoredRedemption(
                    redeemed.owner, session_id, context.now, redeemed.done, redeemed.agent, here
                )
                context.put(key, again)
                self._forget_at(context, redeemed.expires)
                audit_record.record(context, "redeem_passport_again", None, passport_id=context.address.key)

    @handles(requests.NoteRefusal)
    def note_refusal(self, request: requests.NoteRefusal, context: Context) -> None:
        """Buffer the audit record of the refusal."""
        audit_record.record_read(
            context, context.principal, "restore_session", None, outcome="denied", code=request.code
        )

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Erase a person's passport or link; anonymous records of redemptions stay."""
        head, link = context.get(_HEAD, PassportHeader), context.get(_LINK, StoredLink)
        counts: dict[str, int] = {}
        keys: list[bytes] = []
        if head is not None and request.person.has_root(head.owner):
            counts["passports"] = 1
            keys += [_HEAD, *(key for key, _piece in context.scan(msgspec.Raw, prefix=_PIECE))]
        if link is not None and request.person.has_root(user_namespace(link.maker)):
            counts["passport_links"] = 1
            keys.append(_LINK)
        if not request.dry_run:
            context.use_reserve()
            if _HEAD in keys:
                issued.remove_issued(context)
            issued.remove_taken(context, lambda taker: request.person.has_root(taker.owner))
            for key in keys:
                context.delete(key)
                yield
        return ErasedPart(counts=counts)

    @handles(requests.ForgetPassport)
    def forget(self, _: requests.ForgetPassport, context: Context) -> Slices[None]:
        """Remove everything."""
        context.use_reserve()
        issued.remove_taken(context, lambda _taker: True)
        issued.remove_issued(context)
        for key in [key for key, _ in context.scan(msgspec.Raw)]:
            context.delete(key)
            yield

    @handles(Restate)
    def restate(self, _: Restate, context: Context) -> None:
        """Write the index rows of the passport again."""
        context.use_reserve()
        issued.list_again(context)

    def _forget_at(self, context: Context, expires: int) -> None:
        """Delete the passport a day after it expires, since clocks may be set back."""
        due = max(expires + DAY, context.timer_due(TIMER) or 0)
        context.set_timer(TIMER, due, requests.ForgetPassport())

    def _text(self, context: Context) -> Slices[str]:
        pieces: list[str] = []
        for _, piece in context.scan(str, prefix=_PIECE):
            pieces.append(piece)
            yield
        return "".join(pieces)
