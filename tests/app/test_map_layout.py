"""Where nodes of a map lie: near what is near, apart from the rest, always in the same place."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from greenroom.actors.app.map.layout import (
    NEIGHBOURS,
    Links,
    amid,
    around,
    components,
    neighbours,
    relaxed,
    scattered,
    spiral,
)


def groups(count: int, number: int, *, seed: int = 1) -> npt.NDArray[np.float32]:
    """Return vectors of length 1 that lie in groups, one group after the other."""
    chance = np.random.default_rng(seed)
    middles = np.repeat(chance.normal(size=(number, 64)), count // number, axis=0)
    found = middles + 0.5 * chance.normal(size=middles.shape)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / lengths, np.float32)


def go_on() -> None:
    """Let the work go on."""


class StoppedError(Exception):
    """Ends the work."""


def stop() -> None:
    raise StoppedError


@pytest.mark.parametrize(("count", "least"), [(2, 1.0), (5, 1.0), (900, 1.0), (4_000, 0.95)])
def test_neighbours_are_those_that_are_nearest(count: int, least: float) -> None:
    vectors = groups(count, max(1, count // 40))
    found = neighbours(vectors, go_on)
    close = vectors @ vectors.T
    np.fill_diagonal(close, -2)
    wanted = {
        (min(one, other), max(one, other))
        for one, row in enumerate(np.argsort(-close, axis=1)[:, : min(NEIGHBOURS, count - 1)].tolist())
        for other in row
    }
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert len(wanted & set(pairs)) >= least * len(wanted)
    assert np.allclose(found.cosines, close[found.first, found.second], atol=1e-5)


def test_one_vector_and_none_have_no_neighbours() -> None:
    for count in (0, 1):
        assert not len(neighbours(np.ones((count, 8), np.float32), go_on).first)


def test_components_are_those_of_the_singular_values() -> None:
    vectors = groups(300, 3)
    found = components(vectors).astype(np.float64)
    centred = (vectors - vectors.mean(axis=0)).astype(np.float64)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    wanted = centred @ axes[:2].T
    for axis in range(2):
        assert abs(np.corrcoef(found[:, axis], wanted[:, axis])[0, 1]) > 0.999
    assert np.linalg.norm(found, axis=1).max() == pytest.approx(1)
    assert np.array_equal(components(vectors), components(vectors.copy()))


@pytest.mark.parametrize("count", [1, 2, 7])
def test_vectors_that_are_all_the_same_have_places(count: int) -> None:
    for vectors in (np.ones((count, 4)), np.zeros((count, 4)), np.ones((count, 1))):
        found = components(vectors.astype(np.float32))
        assert found.shape == (count, 2)
        assert np.isfinite(found).all()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 500])
def test_forces_keep_nodes_apart_and_on_the_map_wherever_they_begin(count: int) -> None:
    none = Links(np.zeros(0, np.intp), np.zeros(0, np.intp))
    for start in (np.zeros((count, 2), np.float32), spiral(count), 1e6 * spiral(count)):
        found = relaxed(start, none, steps=60, reach=0.1, check=go_on)
        assert found.shape == (count, 2)
        assert np.isfinite(found).all()
        assert np.abs(found).max(initial=0) <= 1.0001
        assert len(np.unique(found.round(4), axis=0)) >= 0.9 * count


def test_forces_draw_what_is_linked_together() -> None:
    size, number = 20, 12
    node = np.arange(size * number)
    group = node // size
    links = Links(node, (group * size).astype(np.intp))
    start = spiral(size * number)[np.random.default_rng(2).permutation(size * number)]
    found = relaxed(start, links, steps=120, reach=0.1, check=go_on)
    middles = np.stack([found[group == each].mean(axis=0) for each in range(number)])
    nearest = np.linalg.norm(found[:, None] - middles[None], axis=2).argmin(axis=1)
    assert (nearest == group).mean() > 0.95
    assert np.array_equal(found, relaxed(start, links, steps=120, reach=0.1, check=go_on))


def test_where_a_node_starts_depends_on_no_other_of_its_group() -> None:
    chance = np.random.default_rng(3)
    groups_of, chances = chance.integers(0, 4, 400), chance.integers(0, 2**48, 400)
    found = scattered(groups_of, chances)
    assert np.array_equal(scattered(groups_of[40:], chances[40:]), found[40:])
    middles = np.stack([found[groups_of == each].mean(axis=0) for each in range(4)])
    apart = np.linalg.norm(middles[:, None] - middles[None], axis=2) + 9 * np.eye(4)
    assert apart.min() > 0.3
    for each, middle in enumerate(middles):
        assert np.linalg.norm(found[groups_of == each] - middle, axis=1).max() < 0.7
    assert scattered(np.zeros(0, np.intp), np.zeros(0, np.int64)).shape == (0, 2)


def test_one_node_more_moves_the_others_little() -> None:
    count = 600
    chances = np.random.default_rng(4).integers(0, 2**48, count)
    node = np.arange(count)
    start, links = scattered(node % 3, chances), Links(node[10:], node[10:] // 10)
    whole = relaxed(start, links, steps=60, reach=0.1, check=go_on)
    without = Links(links.source[:-1], links.target[:-1])
    fewer = relaxed(start[:-1], without, steps=60, reach=0.1, check=go_on)
    assert np.median(np.linalg.norm(whole[:-1] - fewer, axis=1)) < 0.05


def test_what_is_no_memory_lies_amid_what_is_linked_to_it() -> None:
    places = np.array([(0, 0), (1, 0), (0, 1), (9, 9)], np.float32)
    links = Links(np.array([0, 1, 0]), np.array([3, 3, 1]))
    assert amid(places, 3, links)[3].tolist() == [0.5, 0]
    assert np.linalg.norm(around(50), axis=1) == pytest.approx(1.15)


def test_work_ends_when_nobody_waits_for_it() -> None:
    vectors = groups(2_000, 20)
    with pytest.raises(StoppedError):
        neighbours(vectors, stop)
    none = Links(np.zeros(0, np.intp), np.zeros(0, np.intp))
    with pytest.raises(StoppedError):
        relaxed(spiral(10), none, steps=5, reach=0.1, check=stop)
