"""Common parts of the services: their runtime, results, errors, and strict JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import Field, field
from datetime import UTC, date, datetime
from functools import partial
from inspect import Parameter, Signature, get_annotations
from operator import itemgetter
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar, dataclass_transform, get_args

import msgspec

from greenroom.actors.core.auth.errors import not_serializable
from greenroom.actors.core.validation.times import parse_time_argument
from greenroom.runtime import Address, Message, Procedure, Refusal

R = TypeVar("R")


class Askable(Protocol):
    """The runtime of a service: of this event loop, or a `Database` from any loop."""

    async def ask(self, address: Address, message: Message[R], *, principal: Any = None) -> R:
        """Return an actor's reply, as `RuntimeClient.ask` does."""
        ...

    async def query(self, query: Procedure[R], *, principal: Any = None) -> R:
        """Return the answer of a query, as `RuntimeClient.query` does."""
        ...


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class ServiceResult(dict[str, Any]):
    """The result of a service: a dictionary of JSON values, with attributes as Python values.

    ``result["status"]`` equals ``result.status``, except for times: the attribute is a datetime, the item its
    text as in a tool's answer. ``result.copy()`` is a plain dictionary. ``Event(**json.loads(text))`` makes
    an event from its JSON.
    """

    __signature__: ClassVar[Signature] = Signature()
    _names: ClassVar[tuple[str, ...]] = ()
    _times: ClassVar[tuple[str, ...]] = ()
    _parts: ClassVar[Mapping[str, type[ServiceResult]]] = {}

    def __init_subclass__(cls) -> None:
        hints = get_annotations(cls, eval_str=True)
        parameters = dict(cls.__signature__.parameters)
        for name, hint in hints.items():
            default = cls.__dict__.get(name, Parameter.empty)
            parameters[name] = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        times = [name for name, hint in hints.items() if datetime in (hint, *get_args(hint))]
        parts = {name: part for name, hint in hints.items() for part in get_args(hint) if _is_result(part)}
        for name in hints:
            setattr(cls, name, property(partial(_time, name) if name in times else itemgetter(name)))
        cls.__signature__ = Signature(list(parameters.values()))
        cls._names = tuple(parameters)
        cls._times = (*cls._times, *times)
        cls._parts = {**cls._parts, **parts}

    def __init__(self, **given: Any) -> None:
        """Take every field by name.

        Raises:
            TypeError: A field is unknown or missing.
            ServiceError: ``VALIDATION_ERROR``: a time is invalid.
        """
        if tuple(given) != self._names:
            given = self._completed(given)
        for name in self._times:
            if given[name] is not None:
                given[name] = _time_text(name, given[name])
        for name, part in self._parts.items():
            given[name] = [each if isinstance(each, part) else part(**each) for each in given[name]]
        super().__init__(given)

    def _completed(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields in order, with defaults."""
        try:
            bound = self.__signature__.bind(**given)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        bound.apply_defaults()
        return {name: _default(value) for name, value in bound.arguments.items()}

    def _refuse(self, *_given: Any, **_named: Any) -> NoReturn:
        name = type(self).__name__
        raise TypeError(f"{name}: it cannot be changed; dict(result) is a dictionary that can")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}: it cannot be changed, nor get an attribute {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}: it cannot be changed, nor lose its {name!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self))


def _default(value: Any) -> Any:
    return value.default_factory() if isinstance(value, Field) and callable(value.default_factory) else value


def _is_result(part: Any) -> bool:
    return isinstance(part, type) and issubclass(part, ServiceResult)


def _rebuild(result_type: type[ServiceResult], fields: dict[str, Any]) -> ServiceResult:
    return result_type(**fields)


def _time(name: str, result: ServiceResult) -> datetime | None:
    text = result[name]
    return None if text is None else datetime.fromisoformat(text)


def _time_text(name: str, given: Any) -> str:
    """Return the JSON text of a time, which may be a text already."""
    if type(given) is datetime and given.tzinfo is UTC:
        return str(msgspec.to_builtins(given))  # same result as below, several times faster
    text = given.isoformat() if isinstance(given, date) else given
    if not isinstance(text, str):
        sentence = f"{name}: it takes a time, or its text such as 2026-01-31T12:00:00Z, and got {given!r:.60}"
        raise ServiceError("VALIDATION_ERROR", sentence, field=name)
    with service_errors():
        return parse_time_argument(name, text).isoformat().replace("+00:00", "Z")


def to_json(value: Any) -> bytes:
    """Encode a value as JSON that decodes to an equal value.

    Raises:
        Refusal: ``SERIALIZATION_ERROR``: JSON cannot represent it (a tuple, a key that is no text, NaN, …).
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        unchanged = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise not_serializable(f"this is no value for JSON: {error}") from None
    if not unchanged:
        raise not_serializable(
            "this is no value for JSON: keys must be texts, and a sequence must be a list and no tuple"
        )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise not_serializable(f"a text holds a lone surrogate at character {error.start}") from None


def from_json(raw: msgspec.Raw) -> Any:
    """Decode checked JSON, in which no integer is too long for Python."""
    return json.loads(bytes(raw))


def plain(value: Any) -> Any:
    """Convert a mapping to a dictionary; return anything else unchanged."""
    return dict(value) if isinstance(value, Mapping) else value


class ServiceError(Refusal, ValueError):
    """A refusal of a service, such as an unknown session or an invalid value.

    It is a ``ValueError`` with the ``code``, ``sentence`` and ``details`` of the `Refusal` that an MCP client
    would get. Nothing was changed. Errors that the caller did not cause are no `ServiceError`.
    """

    @classmethod
    def of(cls, refusal: Refusal) -> ServiceError:
        """Convert a refusal to a service's error."""
        return cls(refusal.code, refusal.sentence, **refusal.details)


@contextmanager
def service_errors() -> Iterator[None]:
    """Convert a `Refusal` in the block to a `ServiceError`."""
    try:
        yield
    except Refusal as refusal:
        raise ServiceError.of(refusal) from None
