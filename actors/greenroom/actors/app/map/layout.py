"""Nearest vectors, and the positions of a map's nodes. Needs numpy.

Equal nodes and links get equal positions.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.intp]

PLANE: Final = (
    "the first two principal components of the vectors (Pearson 1901); forces then draw the nearest "
    "together and keep others apart (Fruchterman and Reingold 1991), by way of a mesh (Hockney and "
    "Eastwood 1988)"
)
GRAPH: Final = (
    "clusters by meaning (k-means, Lloyd 1957) and forces: links draw together, and all keep apart "
    "(Fruchterman and Reingold 1991), by way of a mesh (Hockney and Eastwood 1988)"
)
_GOLDEN: Final = np.pi * (3 - np.sqrt(5))
_LEAST_MESH, _MOST_MESH = 32, 128
"""The least and the most lines of the mesh; a mesh for more nodes has more lines."""
_PULL: Final = 4.0
_GRAVITY: Final = 1.0
_EDGE: Final = 0.02
"""How far the mesh extends beyond the outermost nodes, as a fraction of its width."""

NEIGHBOURS: Final = 4
"""The number of neighbours of each vector."""
_SMALL: Final = 1_500
"""Up to this many vectors, all pairs are compared."""
_GROUPS_LOOKED_AT: Final = 4
_TURNS: Final = 2


class Links(NamedTuple):
    """The pairs of nodes that attract each other."""

    source: Places
    target: Places


def spiral(count: int) -> Floats:
    """Return evenly spaced points within the unit circle, the first in the middle (Vogel 1979)."""
    turns = np.arange(count, dtype=np.float32)
    away = np.sqrt((turns + 0.5) / max(1, count))
    angles = turns * np.float32(_GOLDEN)
    return np.stack((away * np.cos(angles), away * np.sin(angles)), axis=1).astype(np.float32)


def scattered(groups: Places, chances: npt.NDArray[np.int64]) -> Floats:
    """Return points within the unit circle, the members of a group around one point.

    A position depends on the node's own numbers and the number of groups, not on other members.

    Args:
        groups: The group of each node; groups are numbered from 0 without gaps.
        chances: A random number for each node, below 2**48.
    """
    middles = spiral(int(groups.max(initial=0)) + 1)
    wide = np.float32(1 / np.sqrt(len(middles)))
    away = wide * np.sqrt((chances & 0xFFFFFF) / 2**24)
    angles = (chances >> 24) * (2 * np.pi / 2**24)
    return middles[groups] + np.stack((away * np.cos(angles), away * np.sin(angles)), axis=1).astype(
        np.float32
    )


def components(vectors: Floats) -> Floats:
    """Return the first two principal components of vectors, within the unit circle.

    Each component points towards most of the skew, so that small changes do not flip it.
    """
    centred = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    places: Floats = centred @ axes[:, : -min(2, vectors.shape[1]) - 1 : -1].astype(np.float32)
    if places.shape[1] == 1:
        places = np.column_stack((places, np.zeros(len(places), np.float32)))
    skews = np.sign((places.astype(np.float64) ** 3).sum(axis=0))
    places = places * np.where(skews == 0, 1, skews).astype(np.float32)
    farthest = float(np.sqrt((places**2).sum(axis=1)).max(initial=0))
    return places / np.float32(farthest or 1)


def around(count: int) -> Floats:
    """Return points on a circle around the unit circle."""
    angles = np.arange(count, dtype=np.float32) * np.float32(_GOLDEN)
    return np.float32(1.15) * np.stack((np.cos(angles), np.sin(angles)), axis=1)


def amid(places: Floats, count: int, links: Links) -> Floats:
    """Return positions in which every node after the first ``count`` lies amid its neighbours."""
    places = places.copy()
    linked = links.target >= count
    target, source = links.target[linked], links.source[linked]
    degrees = np.maximum(1, np.bincount(target, minlength=len(places)))
    for axis in range(2):
        sums = np.bincount(target, places[source, axis], len(places))
        places[count:, axis] = (sums / degrees)[count:]
    return places


def relaxed(places: Floats, links: Links, *, steps: int, reach: float, check: Callable[[], None]) -> Floats:
    """Return positions within the unit circle after some steps of forces.

    Args:
        places: The positions of the nodes.
        links: The attracting pairs.
        steps: The number of steps.
        reach: The longest move in the first step; it decreases in later ones.
        check: Called before each step; it may raise to end the work.
    """
    count = len(places)
    if count < 2:  # noqa: PLR2004 - a node alone stays in the middle
        return np.zeros_like(places)
    # Rows of x and y, for sequential reads. Nodes at one point are pushed in different directions.
    at = np.ascontiguousarray((places + 1e-4 * spiral(count)).T)
    degrees = np.bincount(np.concatenate(links), minlength=count)
    weights = 1 + np.log2(1 + degrees).astype(np.float32)
    inert = np.maximum(weights, degrees * _PULL * 2).astype(np.float32)
    lines = min(_MOST_MESH, _LEAST_MESH + 2 * isqrt(count))
    meshes = [_Mesh(max(_LEAST_MESH, lines // 2)), _Mesh(lines)]  # a coarse mesh suffices at first
    for step in range(steps):
        check()
        forces = meshes[2 * step >= steps].repulsion(at, weights) / np.float32(count)
        forces -= _GRAVITY * at
        forces *= weights
        pulls = _PULL * (at[:, links.target] - at[:, links.source])
        for axis, pull in enumerate(pulls):
            forces[axis] += np.bincount(links.source, pull, count)
            forces[axis] -= np.bincount(links.target, pull, count)
        moves = forces / inert
        lengths = np.hypot(*moves)
        at += moves * np.minimum(1, reach * (1 - step / steps) / np.maximum(lengths, 1e-9)).astype(np.float32)
    at -= (at.min(axis=1, keepdims=True) + at.max(axis=1, keepdims=True)) / 2
    return (at.T / (np.abs(at).max() or 1)).astype(np.float32, order="C")


class _Mesh:
    """The repulsion of all nodes on a mesh, at a nearly constant cost."""

    def __init__(self, lines: int) -> None:
        self._lines = lines
        steps = np.arange(2 * lines)
        steps[lines:] -= 2 * lines
        across, along = np.meshgrid(steps, steps, indexing="ij")
        squares = across**2 + along**2 + 0.5
        kernels = np.stack([axis / squares for axis in (across, along)])
        self._kernels = np.fft.rfft2(kernels).astype(np.complex64)

    def repulsion(self, places: Floats, weights: Floats) -> Floats:
        """Return for each node the sum of weight divided by distance over all other nodes.

        Args:
            places: Two rows: the x and y of each node.
            weights: The weights of the nodes.
        """
        lines = self._lines
        low, high = places.min(axis=1, keepdims=True), places.max(axis=1, keepdims=True)
        width = np.float32(float((high - low).max()) * (1 + 2 * _EDGE) or 1.0)
        cell = width / np.float32(lines - 1)
        at = (places - (low + high) / 2) / cell + np.float32((lines - 1) / 2)
        corner = np.clip(at.astype(np.intp), 0, lines - 2)
        across, along = at - corner
        shares = np.stack(
            ((1 - across) * (1 - along), (1 - across) * along, across * (1 - along), across * along)
        )
        points = corner[0] * lines + corner[1] + np.array([[0], [1], [lines], [lines + 1]])
        density = np.bincount(points.ravel(), (shares * weights).ravel(), lines * lines)
        dense = density.reshape(lines, lines).astype(np.float32)  # half the time of float64
        spectrum = np.fft.rfft2(dense, (2 * lines, 2 * lines))
        fields = np.fft.irfft2(spectrum * self._kernels, (2 * lines, 2 * lines))[:, :lines, :lines]
        fields = fields.reshape(2, lines * lines)
        forces: Floats = np.einsum("fsn,sn->fn", fields[:, points], shares) / cell
        return forces


class Neighbours(NamedTuple):
    """Pairs of neighbours, each once, in order of index, and their cosines."""

    first: Places
    second: Places
    cosines: Floats


def neighbours(vectors: Floats, check: Callable[[], None]) -> Neighbours:
    """Return the `NEIGHBOURS` nearest vectors of each vector by cosine, as pairs.

    Many vectors are grouped around centroids (k-means, Lloyd 1957). Each vector is compared with the vectors
    in the groups of the nearest centroids: an inverted file (Jégou et al. 2011).
    """
    count = len(vectors)
    if count <= NEIGHBOURS:
        groups = [(np.arange(count), np.arange(count))]
    elif count <= _SMALL:
        groups = [(rows, np.arange(count)) for rows in np.array_split(np.arange(count), 1 + count // 500)]
    else:
        groups = _groups(vectors, check)
    best = np.full((count, NEIGHBOURS), -1, np.intp)
    cosines = np.zeros((count, NEIGHBOURS), np.float32)
    for rows, others in groups:
        check()
        closeness = vectors[rows] @ vectors[others].T
        closeness[rows[:, None] == others] = -2
        most = min(NEIGHBOURS, len(others) - 1)
        if most < 1:
            continue
        found = np.argpartition(closeness, -most, axis=1)[:, -most:]
        best[rows, :most] = others[found]
        cosines[rows, :most] = np.take_along_axis(closeness, found, axis=1)
    places = np.repeat(np.arange(count), NEIGHBOURS)
    others, close = best.ravel(), cosines.ravel()
    known = others >= 0
    pairs = np.minimum(places, others)[known] * count + np.maximum(places, others)[known]
    pairs, at = np.unique(pairs, return_index=True)
    return Neighbours(pairs // count, pairs % count, close[known][at])


def _groups(vectors: Floats, check: Callable[[], None]) -> list[tuple[Places, Places]]:
    """Return groups of vectors, each with the indexes of the vectors to compare."""
    count = len(vectors)
    number = int(np.sqrt(count))
    middles = vectors[np.linspace(0, count - 1, number).astype(np.intp)]
    for _ in range(_TURNS):
        check()
        nearest = (vectors @ middles.T).argmax(axis=1)
        order = np.argsort(nearest, kind="stable")
        _present, starts = np.unique(nearest[order], return_index=True)
        middles = np.add.reduceat(vectors[order], starts, axis=0)
        middles /= np.maximum(np.linalg.norm(middles, axis=1, keepdims=True), np.float32(1e-9))
    nearest = (vectors @ middles.T).argmax(axis=1)
    members = [np.flatnonzero(nearest == group) for group in range(len(middles))]
    close = np.argsort(-(middles @ middles.T), axis=1, kind="stable")[:, :_GROUPS_LOOKED_AT]
    return [
        (rows, np.sort(np.concatenate([members[other] for other in close[group]])))
        for group, rows in enumerate(members)
        if len(rows)
    ]
