"""What `greenroom repair` brings back of stores of which one page or one record is damaged.

A store is made once. Each round damages one page of it, or one bit of one record, repairs it, opens what was
saved and reads it as three users through several doors. A run fails where somebody is told what the sound
store did not tell, or told otherwise. So it does where an item is missing though the damage touches neither
its own records nor those that could say that it is gone, replaced or hidden.
"""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from bench.damaging import PAGE, flipped_record, rewrite
from bench.harness import Plan, Report, Table, check
from bench.salvage_store import Item, Rows, Seen, fill, pages_of, read
from greenroom.actors import repair_greenroom
from greenroom.runtime import restore

if TYPE_CHECKING:
    from pathlib import Path

LEAVES: Final = 200
BRANCHES: Final = 20
BITS: Final = 100
SMOKE: Final = 4
SEED: Final = 20_261_129
_MOST: Final = 5


class Damage(NamedTuple):
    """One damaged store.

    Attributes:
        kind: What was damaged.
        content: The file.
        touched: The records that are lost; None where nobody says how many, as below a branch.
    """

    kind: str
    content: bytes
    touched: set[bytes] | None


class Outcome(NamedTuple):
    """What came back of one store.

    Attributes:
        kind: As in `Damage`.
        expected: How many items had to come back.
        touched: How many others there are.
        back: How many of these came back all the same.
    """

    kind: str
    expected: int
    touched: int
    back: int


def run(plan: Plan) -> Report:
    """Damage stores, repair them, and read what was saved."""
    with plan.folder() as folder:
        outcomes = trio.run(_measured, plan, folder)
    rows: list[list[str | int]] = []
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.kind == kind]
        items = sum(outcome.expected + outcome.touched for outcome in mine)
        back = sum(outcome.expected + outcome.back for outcome in mine)
        touched = sum(outcome.touched for outcome in mine)
        rows.append([kind, len(mine), items, touched, back])
    table = Table(
        title="memories and messages after a repair: none told otherwise, none missing without cause",
        columns=["damaged", "stores", "items", "touched by the damage", "came back"],
        rows=rows,
    )
    return Report(tables=[table])


async def _measured(plan: Plan, folder: Path) -> list[Outcome]:
    sound = folder / "sound"
    await fill(sound, plan.size(45, 16), plan.size(40, 10))
    data = sound / "greenroom.mdb"
    truth = await read(sound, list(Rows(data).needs))
    patient = _Patient(folder, Rows(data), truth)  # who reads writes, too
    chance = random.Random(SEED)
    outcomes = [await patient.suffer(patient.leaf(chance)) for _ in range(plan.size(LEAVES, SMOKE))]
    outcomes += [await patient.suffer(patient.bit(chance)) for _ in range(plan.size(BITS, SMOKE))]
    if patient.has_branches:
        count = plan.size(BRANCHES, SMOKE)
        outcomes += [await patient.suffer(patient.branch(chance)) for _ in range(count)]
    return outcomes


class _Patient:
    """A store that is damaged and repaired again and again.

    Args:
        folder: Where what is saved is opened; ``sound`` in it is the store.
        rows: Where its records lie.
        truth: What it tells.
    """

    def __init__(self, folder: Path, rows: Rows, truth: Seen) -> None:
        self._folder = folder
        self._data = folder / "sound" / "greenroom.mdb"
        self._content = self._data.read_bytes()
        self._needs = rows.needs
        self._pages = pages_of(self._data)
        self._truth = truth
        self._told = {item for _, _, item in truth if item in rows.needs}

    @property
    def has_branches(self) -> bool:
        """Whether there are pages that lead to others."""
        return bool(self._pages.branches)

    def leaf(self, chance: random.Random) -> Damage:
        """Return the store with one leaf zeroed, or full of anything."""
        page = chance.choice(self._pages.leaves)
        touched = {key for key, where in self._pages.page_of.items() if where == page}
        return Damage("a leaf", self._with(page, chance), touched)

    def branch(self, chance: random.Random) -> Damage:
        """Return the store without a page that leads to others."""
        return Damage("a branch", self._with(chance.choice(self._pages.branches), chance), None)

    def bit(self, chance: random.Random) -> Damage:
        """Return the store with one bit flipped in what a record says."""
        key = chance.choice(sorted(self._pages.page_of))
        content = flipped_record(self._content, self._pages.page_of[key], key, chance.randrange(8, 48))
        return Damage("a bit", content, {key})

    def _with(self, page: int, chance: random.Random) -> bytes:
        anything = bytes(PAGE) if chance.random() < 1 / 2 else chance.randbytes(PAGE)
        return self._content[: PAGE * page] + anything + self._content[PAGE * (page + 1) :]

    async def suffer(self, damage: Damage) -> Outcome:
        """Return what comes back of a damaged store."""
        saved, other = self._folder / "saved", self._folder / "other"
        saved.unlink(missing_ok=True)
        shutil.rmtree(other, ignore_errors=True)
        rewrite(self._data, damage.content)
        said = repair_greenroom(self._data.parent, saved, now=1)
        restore(saved, other, secrets=self._folder / "secrets")
        seen = await read(other, list(self._needs))
        wrong = [
            f"{about} is told as {told!r}" for about, told in seen.items() if self._truth.get(about) != told
        ]
        check(not wrong, f"after damage to {damage.kind}: " + "; ".join(wrong[:_MOST]))
        expected = set() if damage.touched is None else self._untouched(damage.touched)
        missing = [about for about in self._truth if about[2] in expected and about not in seen]
        check(
            not missing,
            f"after damage to {damage.kind} missing: {missing[:_MOST]}; {said.set_aside}, {said.left_out}",
        )
        back = {item for _, _, item in seen if item in self._told}
        return Outcome(damage.kind, len(expected), len(self._told - expected), len(back - expected))

    def _untouched(self, touched: set[bytes]) -> set[Item]:
        return {item for item in self._told if not self._needs[item] & touched}
