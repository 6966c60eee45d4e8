"""What the settings say about the runtime and what runs beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from greenroom.actors import EmbedderChoice, PassportOptions, read_choice
from greenroom.runtime import Encryption, RuntimeOptions, StoreKeyError, key_source
from greenroom.transports.config.settings import EMBEDDER_KEY_VARIABLE, PASSPORT_SECRET_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from greenroom.transports.config.settings import Settings

# Requests were drained before the runtime closes; what it still holds are tells and timers,
# which are stored and go on at the next start. So a signal need not wait for them.
_DRAIN_SECONDS: Final = 0.2
LEAST_SECRET: Final = 16


def runtime_options(settings: Settings) -> RuntimeOptions:
    """What the settings say about the runtime."""
    return RuntimeOptions(
        durability=settings.durability,
        max_size=settings.max_size,
        min_free=settings.min_free,
        drain_seconds=_DRAIN_SECONDS,
    )


def encryption(settings: Settings) -> Encryption | None:
    """What the settings say about encryption.

    Raises:
        StoreKeyError: It is wanted, and there is no key.
    """
    if settings.encryption_key is not None:
        return Encryption(key_source(str(settings.encryption_key)), required=settings.encrypt)
    if settings.encrypt:
        raise StoreKeyError(
            "--encrypt needs a key, which is not kept in the store: put what `openssl rand -base64 32` "
            "prints into a file that is yours alone, and name it with --encryption-key file:PATH"
        )
    return None


def embedder_choice(settings: Settings, environment: Mapping[str, str]) -> EmbedderChoice:
    """What the settings say about the embedder.

    Raises:
        ValueError: They do not go together.
    """
    if str(settings.embedder).startswith("http") and settings.embedder_model is None:
        raise ValueError(f"--embedder {settings.embedder} needs the name of its model: --embedder-model NAME")
    return read_choice(
        str(settings.embedder),
        model=settings.embedder_model,
        key=environment.get(EMBEDDER_KEY_VARIABLE) or None,
    )


def passport_options(settings: Settings, environment: Mapping[str, str]) -> PassportOptions:
    """What the settings say about passports.

    Raises:
        ValueError: The shared secret is too short to be one.
    """
    shared = environment.get(PASSPORT_SECRET_VARIABLE)
    if shared and len(shared) < LEAST_SECRET:
        raise ValueError(f"{PASSPORT_SECRET_VARIABLE} has fewer than {LEAST_SECRET} characters")
    return PassportOptions(settings.trust_signer, shared.encode() if shared else None)
