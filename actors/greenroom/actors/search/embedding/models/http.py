"""An embedding endpoint with OpenAI's protocol, which Ollama, vLLM and many other programs serve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import httpx2
import msgspec
import numpy as np
import trio

from greenroom.actors.core.replies.memory_types import MAX_DIMENSIONS
from greenroom.actors.search.embedding import quantization
from greenroom.actors.search.embedding.embedder import EmbedderChoice, LocalEmbedder, embedded_part
from greenroom.actors.search.embedding.errors import EmbedderError, TextRefusedError
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors

_PATH: Final = "/embeddings"
_CONNECT_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 60.0  # a model without a GPU is slow
_ANSWER_LIMIT: Final = 64 << 20  # bytes of a reply
_REFUSED: Final = frozenset({400, 413, 422})
_CLIPPED: Final = 200  # this many characters of an endpoint's own error are kept
_PROBE: Final = "probe"


class _Item(msgspec.Struct, frozen=True):
    embedding: list[float]
    index: int | None = None


class _Answer(msgspec.Struct, frozen=True):
    data: list[_Item]


class HttpEmbedder:
    """An endpoint; see `Embedder`. Call `connect` before anything else."""

    has_tokens = False
    quick: LocalEmbedder | None = None
    batch = 16  # a reply is parsed within some milliseconds

    def __init__(
        self,
        choice: EmbedderChoice,
        *,
        answer_seconds: float = _ANSWER_SECONDS,
        answer_limit: int = _ANSWER_LIMIT,
    ) -> None:
        self._answer_seconds = answer_seconds
        self._answer_limit = answer_limit
        self._url = choice.place if choice.place.endswith(_PATH) else choice.place + _PATH
        self._model = choice.model
        self.space = ""
        self.dimensions = 0
        self._waiting: set[trio.CancelScope] = set()
        headers = {"Authorization": f"Bearer {choice.key}"} if choice.key else {}
        times = httpx2.Timeout(answer_seconds, connect=_CONNECT_SECONDS)
        self._client = httpx2.AsyncClient(timeout=times, headers=headers, follow_redirects=False)

    async def connect(self) -> None:
        """Embed a probe to learn the number of dimensions."""
        rows = await self._ask([_PROBE])
        self.dimensions = rows.shape[1]
        self.space = f"http:{self._model}:{self.dimensions}"

    async def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of stored texts."""
        rows = await self._ask([embedded_part(text) or " " for text in texts])
        return [quantization.quantize(row) for row in rows]

    async def query(self, text: str) -> QueryVectors:
        """Return the vector of a query."""
        (row,) = await self._ask([embedded_part(text) or " "])
        return QueryVectors(
            space=self.space, words=[], rows=b"", sentence=quantization.normalize(row).tobytes()
        )

    async def aclose(self) -> None:
        """Cancel the requests, so that none loses a connection while opening it; close all connections."""
        for scope in self._waiting:
            scope.cancel()
        await self._client.aclose()

    async def _ask(self, texts: list[str]) -> quantization.Floats:
        with trio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                response, content = await self._post(texts)
            finally:
                self._waiting.remove(scope)
        if scope.cancelled_caught:
            raise EmbedderError(f"the connection to {self._url} was closed")
        if response.is_success:
            return self._rows(content, len(texts))
        sentence = f"{self._url} answers {response.status_code}"
        if texts == [_PROBE]:  # an error about another text may quote it in the log, which others read
            sentence += f": {content[:_CLIPPED].decode(errors='replace').strip()}"
        if response.status_code in _REFUSED:
            raise TextRefusedError(sentence)
        raise EmbedderError(sentence, retry_after=_seconds(response.headers.get("retry-after")))

    async def _post(self, texts: list[str]) -> tuple[httpx2.Response, bytes]:
        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        try:
            async with self._client.stream("POST", self._url, json=body) as response:
                return response, await self._read(response)
        except httpx2.ReadTimeout as error:
            raise EmbedderError(
                f"{self._url} does not answer within {self._answer_seconds:g} seconds"
            ) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise EmbedderError(f"{self._url} cannot be reached: {error or type(error).__name__}") from error

    async def _read(self, response: httpx2.Response) -> bytes:
        content = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > self._answer_limit:
                    # No `break` here: the library's generators end in order only if reading fails.
                    await response.aclose()
        except httpx2.TransportError:
            if len(content) <= self._answer_limit:
                raise
        if len(content) > self._answer_limit:
            raise EmbedderError(f"{self._url} answers with more than {self._answer_limit >> 20} MiB")
        return bytes(content)

    def _rows(self, content: bytes, count: int) -> quantization.Floats:
        """Return the vectors of a reply, in the order of the texts."""
        try:
            items = _ANSWERS.decode(content).data
        except msgspec.DecodeError as error:
            raise EmbedderError(f"{self._url} does not answer with embeddings: {error}") from error
        if len(items) != count:
            raise EmbedderError(f"{self._url} answers {count} texts with {len(items)} vectors")
        sizes = {len(item.embedding) for item in items}
        expected = self.dimensions or min(sizes)
        if sizes != {expected} or not expected:
            found = ", ".join(map(str, sorted(sizes)))
            raise EmbedderError(
                f"{self._url} answers with vectors of {found} dimensions, and {self.dimensions or 'some'} "
                "are expected; if there is another model now, start again, and everything is embedded anew"
            )
        if expected > MAX_DIMENSIONS:
            raise EmbedderError(
                f"{self._url} answers with vectors of {expected:,} dimensions, "
                f"and at most {MAX_DIMENSIONS:,} are searched"
            )
        places = [place if item.index is None else item.index for place, item in enumerate(items)]
        if sorted(places) != [*range(count)]:
            raise EmbedderError(f"{self._url} does not say which vector is of which text")
        rows = np.empty((count, expected), np.float32)
        with np.errstate(over="ignore"):  # a number too large for a float32 becomes infinite
            for place, item in zip(places, items, strict=True):
                rows[place] = item.embedding
        if not np.isfinite(rows).all():
            raise EmbedderError(f"{self._url} answers with numbers that are not finite")
        return rows


_ANSWERS: Final = msgspec.json.Decoder(_Answer)


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:  # a date; no endpoint is known to send one
        return None
