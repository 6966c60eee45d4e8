"""Weights for signals, fitted to questions whose answers are known.

Each answer is to be stronger than every row that is no answer to its question:

    loss = - sum over answers of  ln( exp(s_answer) / (exp(s_answer) + sum over others exp(s_other)) )

with s = weights · signals, each question counting the root of its number of answers, and a small
penalty on large weights. It is convex; Newton's steps find the one best set of weights.
Of the others only the strongest are looked at, and these are chosen anew as the weights change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.floating[Any]]
    Places = npt.NDArray[np.intp]

OTHERS = 40
PENALTY = 3.0
_ROUNDS = 3
_STEPS = 12
_SETTLED = 1e-3


@dataclass(frozen=True)
class Example:
    """A question: the values of all signals by row and signal, the rows that answer it, and its weight."""

    values: Floats
    answers: Places
    weight: float = 1.0


def fit(
    examples: Sequence[Example],
    columns: Sequence[int],
    *,
    at_least_0: Collection[int] = (),
    start: Floats | None = None,
    penalty: float = PENALTY,
) -> Floats:
    """Return the weight of each of ``columns``.

    Args:
        examples: The questions.
        columns: Which signals have a weight.
        at_least_0: Which of them must not count against a row; they get 0 instead.
        start: Weights that are known to be near; else it begins without any.
        penalty: What a weight costs, in units of the signal's spread.
    """
    chosen = [example.values[:, columns].astype(np.float32) for example in examples]
    spread = np.sqrt(np.mean([values.var(axis=0) for values in chosen], axis=0)) + 1e-3
    chosen = [values / spread for values in chosen]
    weights: Floats = np.zeros(len(columns)) if start is None else start * spread
    free = np.ones(len(columns), np.bool_)
    for _ in range(_ROUNDS if start is None else 1):
        leads, there, counts = _problem(examples, chosen, weights)
        weights = _newton(leads, there, counts, weights, free, penalty)
        for place, column in enumerate(columns):
            if column in at_least_0 and weights[place] < 0:
                free[place] = False
                weights[place] = 0.0
    result: Floats = weights / spread
    return result


def _problem(
    examples: Sequence[Example], chosen: Sequence[Floats], weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return, for each answer: its lead over others by signal, which of these are there, what it counts."""
    leads: list[Floats] = []
    there: list[Floats] = []
    counts: list[float] = []
    for example, values in zip(examples, chosen, strict=True):
        strength = values @ weights
        strength[example.answers] = -np.inf
        strongest = np.argsort(-strength)[: min(OTHERS, len(strength) - len(example.answers))]
        spread = np.setdiff1d(np.arange(0, len(strength), 1 + len(strength) // OTHERS), example.answers)
        others = values[np.union1d(strongest, spread)]
        missing = 2 * OTHERS - len(others)
        for answer in example.answers:
            leads.append(np.pad(values[answer] - others, ((0, missing), (0, 0))))
            there.append(np.pad(np.ones(len(others), np.float32), (0, missing)))
            counts.append(example.weight / len(example.answers) ** 0.5)
    return np.stack(leads), np.stack(there), np.array(counts, np.float32)


def _newton(
    leads: Floats, there: Floats, counts: Floats, weights: Floats, free: Any, penalty: float
) -> Floats:
    kept = leads[:, :, free]
    found = weights[free].astype(np.float32)

    def behind(trial: Floats) -> tuple[Floats, float]:
        lag = there * np.exp(np.clip(-(kept @ trial), -60, 60))
        return lag, float(counts @ np.log1p(lag.sum(axis=1)) + penalty * (trial @ trial))

    lag, loss = behind(found)
    for _ in range(_STEPS):
        share = lag / (1 + lag.sum(axis=1, keepdims=True))
        mean = np.einsum("ij,ijk->ik", share, kept)
        gradient = 2 * penalty * found - counts @ mean
        weighted = (kept * (share * counts[:, None])[:, :, None]).reshape(-1, len(found))
        second = weighted.T @ kept.reshape(-1, len(found)) - (mean * counts[:, None]).T @ mean
        step = np.linalg.solve(second + 2 * penalty * np.eye(len(found)), gradient).astype(np.float32)
        size = 1.0
        while size > _SETTLED:
            lag, after = behind(found - np.float32(size) * step)
            if after < loss:
                break
            size /= 2
        found = found - np.float32(size) * step
        if loss - after < _SETTLED:
            break
        loss = after
    result = np.zeros(len(weights))
    result[free] = found
    return result
