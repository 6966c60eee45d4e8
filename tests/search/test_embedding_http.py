"""An embeddings endpoint on loopback: what is sent, what of the answers is believed, what failures mean."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import trio
from support.endpoints import Answer, Endpoint, endpoint, failing, ok

from greenroom.actors import EmbedderChoice, EmbedderError, TextRefusedError
from greenroom.actors.search.embedding.embedder_loader import load
from greenroom.actors.search.embedding.models.http import HttpEmbedder


def choice_of(served: Endpoint, **more: Any) -> EmbedderChoice:
    return EmbedderChoice(kind="http", place=served.url, model="mini", **more)


async def test_texts_get_their_own_vectors_in_whatever_order_they_come() -> None:
    async with endpoint() as served:
        embedder = await load(choice_of(served))
        assert embedder.space == "http:mini:8"
        assert embedder.quick is None
        assert not embedder.has_tokens
        made = await embedder.embed(["aaa", "zz", ""])
        for text, vectors in zip(["aaa", "zz", " "], made, strict=True):
            expected = np.array(served.vector(text), np.float32)
            found = np.frombuffer(vectors.values, np.int8) * np.float32(vectors.scale)
            assert float(found @ expected / np.linalg.norm(expected)) > 0.999
        assert served.asked[-1] == ["aaa", "zz", " "]  # many refuse an empty text
        query = await embedder.query("aaa")
        assert query.words == []
        assert query.sentence is not None
        sentence = np.frombuffer(query.sentence, np.float32)
        assert abs(float(np.linalg.norm(sentence)) - 1) < 1e-5
        await embedder.aclose()


async def test_the_key_and_the_model_are_sent() -> None:
    async with endpoint() as served:
        embedder = await load(choice_of(served, key="sesame"))
        assert served.headers["authorization"] == "Bearer sesame"
        await embedder.aclose()
        seen: list[dict[str, Any]] = []

        def look(_served: Endpoint, body: dict[str, Any]) -> None:
            seen.append(body)

        served.behaviour = look
        embedder = await load(choice_of(served))
        assert "authorization" not in served.headers
        assert seen == [{"model": "mini", "input": ["probe"], "encoding_format": "float"}]
        await embedder.aclose()


async def test_who_closes_ends_what_is_asked() -> None:
    async with endpoint() as served:
        embedder = await load(choice_of(served))
        served.silent_about = {"one"}
        asked = trio.Event()

        async def ask() -> None:
            with pytest.raises(EmbedderError, match="was closed"):
                await embedder.embed(["one"])
            asked.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            while served.asked[-1] != ["one"]:
                await trio.testing.wait_all_tasks_blocked(0.001)
            await embedder.aclose()
        assert asked.is_set()
        await served.hung_up.wait()


async def test_a_whole_url_is_taken_as_it_is() -> None:
    async with endpoint() as served:
        whole = EmbedderChoice(kind="http", place=served.url + "/embeddings", model="mini")
        await (await load(whole)).aclose()
        assert served.asked == [["probe"]]


async def test_an_endpoint_that_is_not_there_is_named() -> None:
    async with endpoint() as served:
        pass
    with pytest.raises(EmbedderError, match=rf"{served.url}/embeddings cannot be reached"):
        await load(choice_of(served))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, TextRefusedError),
        (413, TextRefusedError),
        (422, TextRefusedError),
        (301, EmbedderError),
        (401, EmbedderError),
        (404, EmbedderError),
        (500, EmbedderError),
    ],
)
async def test_a_failure_says_what_the_endpoint_said_of_the_probe_alone(
    status: int, kind: type[EmbedderError]
) -> None:
    async with endpoint() as served:
        served.behaviour = failing(status, "x" * 5_000)
        with pytest.raises(EmbedderError, match=rf"answers {status}: x{{200}}$") as raised:
            await load(choice_of(served))
        assert type(raised.value) is kind
        assert raised.value.retry_after is None
        served.behaviour = lambda _endpoint, _body: None
        embedder = await load(choice_of(served))
        served.behaviour = failing(status, "what a memory says")
        with pytest.raises(kind, match=rf"answers {status}$"):
            await embedder.embed(["what a memory says"])
        await embedder.aclose()


@pytest.mark.parametrize(("said", "seconds"), [("7", 7.0), ("0.5", 0.5), ("-1", 0.0), ("tomorrow", None)])
async def test_an_endpoint_says_when_to_come_back(said: str, seconds: float | None) -> None:
    async with endpoint() as served:
        served.behaviour = failing(429, **{"retry-after": said})
        with pytest.raises(EmbedderError) as raised:
            await load(choice_of(served))
        assert raised.value.retry_after == seconds


def item(*numbers: Any, **more: Any) -> dict[str, Any]:
    return {"embedding": list(numbers), **more}


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((200, {}, b""), "does not answer with embeddings"),
        ((200, {}, b"<html>Sign in</html>"), "does not answer with embeddings"),
        (ok({"error": "no"}), "does not answer with embeddings"),
        (ok({"data": [{"embedding": "AAAA"}]}), "does not answer with embeddings"),
        (ok({"data": []}), "answers 1 texts with 0 vectors"),
        (ok({"data": [item(1, 2), item(1, 2)]}), "answers 1 texts with 2 vectors"),
        (ok({"data": [item()]}), "vectors of 0 dimensions"),
        (ok({"data": [item(*[1] * 16_385)]}), "vectors of 16,385 dimensions, and at most 16,384"),
        (ok({"data": [item(1, 2, index=5)]}), "which vector is of which text"),
        ((200, {}, b'{"data":[{"embedding":[1e39,2]}]}'), "not finite"),
    ],
)
async def test_an_answer_that_cannot_be_believed_is_refused(answer: Answer, sentence: str) -> None:
    async with endpoint() as served:
        served.behaviour = lambda _served, _body: answer
        with pytest.raises(EmbedderError, match=sentence):
            await load(choice_of(served))


@pytest.mark.promise("embedding.http")
async def test_another_model_behind_the_same_name_is_noticed() -> None:
    async with endpoint() as served:
        embedder = await load(choice_of(served))
        served.dimensions = 12
        with pytest.raises(EmbedderError, match="vectors of 12 dimensions, and 8 are expected"):
            await embedder.embed(["a"])
        served.behaviour = lambda _served, _body: ok({"data": [item(*[1] * 8), item(*[1] * 9)]})
        with pytest.raises(EmbedderError, match="vectors of 8, 9 dimensions"):
            await embedder.embed(["a", "b"])
        await embedder.aclose()


async def test_an_endless_answer_is_cut() -> None:
    async with endpoint() as served:
        served.behaviour = lambda _served, _body: (200, {}, b" " * (1 << 21))
        embedder = HttpEmbedder(choice_of(served), answer_limit=1 << 20)
        with pytest.raises(EmbedderError, match="more than 1 MiB"):
            await embedder.connect()
        await embedder.aclose()


async def test_an_endpoint_that_hangs_is_said_not_to_answer() -> None:
    async with endpoint() as served:
        served.silent = True
        embedder = HttpEmbedder(choice_of(served), answer_seconds=0.05)
        with pytest.raises(EmbedderError, match=r"/embeddings does not answer within 0.05 seconds"):
            await embedder.connect()
        await embedder.aclose()


async def test_who_does_not_want_to_wait_any_longer_hangs_up() -> None:
    async with endpoint() as served:
        embedder = HttpEmbedder(choice_of(served))
        await embedder.connect()
        served.silent = True
        served.was_asked = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(embedder.query, "a")
            await served.was_asked.wait()
            nursery.cancel_scope.cancel()
        await served.hung_up.wait()
        served.silent = False
        assert (await embedder.query("a")).space == "http:mini:8"
        await embedder.aclose()


async def test_long_texts_are_cut() -> None:
    async with endpoint() as served:
        embedder = await load(choice_of(served))
        await embedder.embed(["a" * 100_000])
        assert [len(text) for text in served.asked[-1]] == [8_192]
        await embedder.aclose()


async def test_what_is_sent_survives_json() -> None:
    async with endpoint() as served:
        embedder = await load(choice_of(served))
        text = 'quote " slash \\ null \0 \u2028 \U0001f600 e\u0301 \ud800'
        await embedder.embed([text])
        assert served.asked[-1] == [json.loads(json.dumps(text.encode(errors="replace").decode()))]
        await embedder.aclose()
