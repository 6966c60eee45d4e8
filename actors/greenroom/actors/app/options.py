"""The options of `Database` and `open_greenroom`: names, allowed values and defaults.

Besides the older names, an option may have the name of a store setting of `greenroom serve`. Such a name
means the same here as on the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast, get_args

from greenroom.actors.core.auth.errors import MAX_VALUE_BYTES
from greenroom.actors.core.base.byte_sizes import AUDIT_SIZES, FREE_SIZES, STORE_SIZES, SizeRange
from greenroom.actors.core.defaults import AUDIT_DAYS, CONTENT_LIMIT
from greenroom.actors.hooks.extraction.findings import Extractor
from greenroom.actors.search.embedding.embedder import EmbedderChoice, read_choice
from greenroom.actors.sessions.conversation_tiers import TierSizes, parse_tiers
from greenroom.runtime import Actor, CommonConfig, Encryption, Index, Procedure, RuntimeOptions, key_source
from greenroom.runtime.base.arguments import option_names, refuse_unknown
from greenroom.runtime.base.options import Durability
from greenroom.runtime.lmdb.encryption import KEY_BYTES
from greenroom.runtime.sharing.lock_or_attach import May


class GreenroomOptions(CommonConfig, total=False):
    """The options of `Database` and `open_greenroom`.

    Store settings of `greenroom serve` have their own names here, too; of two for one thing, give one.

    Attributes:
        content_limit: The most characters of a message, up to 1,048,576; 10,000 by default.
        conversation_tiers: How many of a conversation's newest messages are whole, how many older ones are
            shortened, and how many before them are one line; 20, 80 and 200 by default.
        audit_days: How long audit records are kept, in days; 90 by default.
        audit_size: How many bytes of the newest audit records are kept: a number, or a text such as ``1GiB``;
            all by default.
        audit_bytes: The same as ``audit_size``, as a number; None means all.
        embedder: What makes embeddings of memories: ``minilm`` (`greenroom embedder install`), ``static`` for
            the word vectors that ship with the program, ``auto`` (the default) for the best that is
            installed, ``onnx:DIR`` for a sentence-transformers export, ``http:URL``, ``python:MODULE:CLASS``,
            ``none``, or an `EmbedderChoice`. The owner process decides.
        embedder_model: The model name for an endpoint.
        embedder_key: The API key for an endpoint.
        models: The folder of installed models; in the user's data folder by default.
        language: Snowball's name of the language whose words are stemmed; ``english`` by default. After a
            change an index is rebuilt when it is next used.
        languages: Several languages instead of one.
        extractor: Extracts memories from hook events; plain rules by default. The owner process decides.
        reviewed_only: Whether hooks give sessions no memory before its review, not even what the person
            typed; False by default. The owner process decides.
        actors: Further actor classes.
        indexes: Further shared indexes.
        queries: Further queries and procedures.
        secrets: The folder of the store's secret, from which the keys of the audit log, API keys and
            passports are derived; made when first needed. None means where it already is: the folder of the
            data, or the command's default place. A new one is then made beside the data, where it does not
            protect against a reader of that folder.
        new_secret: Whether a store whose secret is lost goes on with a new one, which ends API keys and
            passports. Otherwise such a store is refused.
        may: How far this process may go, as in `open_shared_runtime`.
        durability: What an answered write survives: ``power`` (the default) a power cut, ``process`` only the
            end of the process.
        max_size: The largest size of the store, in bytes or as a text such as ``256GiB``.
        min_free: Writes stop when the disk has less free space than this, in bytes or as a text.
        encryption_key: The key of an encrypted store: its 32 bytes, ``file:PATH``, ``env:NAME`` or
            ``keyring:NAME``. A new store is made encrypted; an unencrypted one is refused.
        encrypt: Whether the store must be encrypted. True needs ``encryption_key``; a given key implies True.
    """

    content_limit: int
    conversation_tiers: Sequence[int]
    audit_days: int
    audit_size: int | str
    audit_bytes: int | None
    embedder: str | EmbedderChoice
    embedder_model: str | None
    embedder_key: str | None
    models: str | Path
    language: str | Sequence[str]
    languages: Sequence[str]
    extractor: Extractor | None
    reviewed_only: bool
    actors: Iterable[type[Actor]]
    indexes: Iterable[Index]
    queries: Iterable[type[Procedure[Any]]]
    secrets: str | Path | None
    new_secret: bool
    may: May
    durability: Durability
    max_size: int | str
    min_free: int | str
    encryption_key: bytes | str
    encrypt: bool


_SAME: Final = (
    ("audit_size", "audit_bytes"),
    ("language", "languages"),
    ("durability", "options"),
    ("max_size", "options"),
    ("min_free", "options"),
    ("encryption_key", "encryption"),
    ("encrypt", "encryption"),
    ("encryption_key", "codec"),
    ("encrypt", "codec"),
)
"""Names of settings, each with another option that sets the same thing."""

_KEY_ALLOWED: Final = (
    f"{KEY_BYTES} bytes are allowed, or where they are kept: file:PATH, env:NAME or keyring:NAME"
)


@dataclass(frozen=True, kw_only=True)
class CheckedOptions:
    """Checked options, each under one name and with its default."""

    content_limit: int
    tiers: TierSizes
    audit_days: int
    audit_bytes: int | None
    embedder: EmbedderChoice
    languages: Sequence[str]
    extractor: Extractor | None
    reviewed_only: bool
    actors: tuple[type[Actor], ...]
    indexes: tuple[Index, ...]
    queries: tuple[type[Procedure[Any]], ...]
    secrets: Path | None
    new_secret: bool
    may: May
    common: CommonConfig


def check_greenroom_options(function: str, options: GreenroomOptions) -> CheckedOptions:
    """Check options, and return them with defaults; nothing is opened.

    Raises:
        TypeError: An option is unknown or of a wrong type, or two options set the same thing.
        ValueError: A value is not allowed.
    """
    given: Mapping[str, Any] = options
    refuse_unknown(function, given, option_names(GreenroomOptions))
    for new, old in _SAME:
        if new in given and old in given:
            raise TypeError(f"{function}() was given both {new!r} and {old!r}; give one, they set the same")
    common = {name: given[name] for name in option_names(CommonConfig) if name in given}
    common.update(_runtime_options(given))
    common.update(_encryption(function, given))
    secrets = given.get("secrets")
    audit_bytes = given.get("audit_bytes")
    if "audit_size" in given:
        audit_bytes = _size("audit_size", given["audit_size"], AUDIT_SIZES)
    elif audit_bytes is not None:
        audit_bytes = _count("audit_bytes", audit_bytes, 1)
    return CheckedOptions(
        content_limit=_count("content_limit", given.get("content_limit", CONTENT_LIMIT), 1, MAX_VALUE_BYTES),
        tiers=_tiers(given.get("conversation_tiers", TierSizes())),
        audit_days=_count("audit_days", given.get("audit_days", AUDIT_DAYS), 1),
        audit_bytes=audit_bytes,
        embedder=_embedder(function, given),
        languages=_languages(given),
        extractor=given.get("extractor"),
        reviewed_only=_flag("reviewed_only", given.get("reviewed_only", False)),
        actors=tuple(given.get("actors", ())),
        indexes=tuple(given.get("indexes", ())),
        queries=tuple(given.get("queries", ())),
        secrets=None if secrets is None else _folder("secrets", secrets),
        new_secret=_flag("new_secret", given.get("new_secret", False)),
        may=cast("May", _word("may", given.get("may", "create"), get_args(May))),
        common=cast("CommonConfig", common),
    )


def _runtime_options(given: Mapping[str, Any]) -> dict[str, RuntimeOptions]:
    limits: dict[str, Any] = {}
    if "durability" in given:
        limits["durability"] = _word("durability", given["durability"], get_args(Durability))
    for name, sizes in (("max_size", STORE_SIZES), ("min_free", FREE_SIZES)):
        if name in given:
            limits[name] = _size(name, given[name], sizes)
    return {"options": RuntimeOptions(**limits)} if limits else {}


def _encryption(function: str, given: Mapping[str, Any]) -> dict[str, Encryption]:
    """Return the encryption of the store.

    With a key, or ``encrypt``, the store is never opened unencrypted.
    """
    encrypt = _flag("encrypt", given.get("encrypt", "encryption_key" in given))
    if "encryption_key" not in given:
        if encrypt:
            raise ValueError(f"encrypt needs a key: give {function}() an encryption_key; {_KEY_ALLOWED}")
        return {}
    if not encrypt:
        raise ValueError("encrypt is False and an encryption_key is given; leave one of them out")
    key = given["encryption_key"]
    if isinstance(key, str):
        try:
            return {"encryption": Encryption(key_source(key), required=True)}
        except ValueError:
            raise ValueError(
                f"encryption_key is a text that does not say where the key is; {_KEY_ALLOWED}"
            ) from None
    if not isinstance(key, bytes):
        raise TypeError(f"encryption_key is of the type {type(key).__name__}; {_KEY_ALLOWED}")
    if len(key) != KEY_BYTES:
        raise ValueError(f"encryption_key has {len(key)} bytes; {_KEY_ALLOWED}")
    return {"encryption": Encryption(lambda: key, required=True)}


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, but True or False is allowed")
    return value


def _embedder(function: str, given: Mapping[str, Any]) -> EmbedderChoice:
    embedder = given.get("embedder", "auto")
    parts = {name: given.get(name) for name in ("embedder_model", "embedder_key")}
    for name, part in parts.items():
        if not isinstance(part, str | None):
            raise TypeError(f"{name} is {type(part).__name__}, but a text is allowed")
    if isinstance(embedder, EmbedderChoice):
        for name in (*parts, "models"):
            if given.get(name) is not None:
                raise TypeError(
                    f"{function}() was given {name!r} beside an EmbedderChoice as 'embedder'; put it there"
                )
        return embedder
    if not isinstance(embedder, str):
        raise TypeError(
            f"embedder is {embedder!r}, but a text such as 'auto' or an EmbedderChoice is allowed"
        )
    return read_choice(
        embedder,
        model=parts["embedder_model"],
        key=parts["embedder_key"],
        models=_folder("models", given["models"]).expanduser() if "models" in given else None,
    )


def _languages(given: Mapping[str, Any]) -> Sequence[str]:
    name = "language" if "language" in given else "languages"
    found = given.get(name, ("english",))
    if isinstance(found, str):
        found = [each.strip().lower() for each in found.split(",")]
    if not isinstance(found, Sequence) or not all(isinstance(each, str) for each in found):
        raise TypeError(f"{name} is {found!r}, but a list of languages such as 'english' is allowed")
    return tuple(found)


def _tiers(sizes: Any) -> TierSizes:
    if isinstance(sizes, str) or not isinstance(sizes, Sequence):
        raise TypeError(
            f"conversation_tiers is {sizes!r}, but three whole numbers such as (20, 80, 200) are allowed"
        )
    return parse_tiers([_count("conversation_tiers", each, 0) for each in sizes])


def _count(name: str, value: Any, least: int, most: int | None = None) -> int:
    allowed = f"at least {least}" if most is None else f"between {least} and {most}"
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r} and must be a whole number {allowed}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} is {value} and must be {allowed}")
    return value


def _size(name: str, value: Any, sizes: SizeRange) -> int:
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, but {sizes.allowed}")
    try:
        return sizes.read(value)
    except (ValueError, KeyError):
        raise ValueError(f"{name} is {value!r}, but {sizes.allowed}") from None


def _word(name: str, value: Any, words: tuple[str, ...]) -> str:
    if value not in words:
        raise ValueError(f"{name} is {value!r}, but {', '.join(words[:-1])} or {words[-1]} is allowed")
    return str(value)


def _folder(name: str, value: Any) -> Path:
    if not isinstance(value, str | Path):
        raise TypeError(f"{name} is {value!r}, but the path of a folder is allowed")
    return Path(value)
