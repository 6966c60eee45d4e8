"""What a conversation is shortened to: word for word, within its bytes, what holds before what does not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.sessions.summary.features import Utterance
from greenroom.actors.sessions.summary.summary import GAP, MOST_MESSAGES, summarize
from greenroom.actors.sessions.summary.units import units
from greenroom.runtime import finish

if TYPE_CHECKING:
    from collections.abc import Sequence

LOG = """\
2026-03-02 10:00:01 INFO  worker started
2026-03-02 10:00:02 INFO  reading batch 17
2026-03-02 10:00:03 ERROR batch 17: checksum of part 3 differs
2026-03-02 10:00:04 ERROR batch 18: checksum of part 3 differs
2026-03-02 10:00:05 INFO  worker stopped"""


def shortened(said: Sequence[Utterance], most: int = 3_200) -> list[str]:
    return finish(summarize(said, most))


def agent(text: str) -> Utterance:
    return Utterance("claude-code", text)


def person(text: str) -> Utterance:
    return Utterance("ann", text, by_person=True)


TALK = [
    person("Please find out why the nightly export writes each row twice. Do not touch the API."),
    agent("Let me look."),
    agent("The cause is that the retry runs although the first attempt was committed, in `export/job.py`."),
    person("ok"),
    agent("Shall I make the insert idempotent, or drop the retry?"),
    person("Make the insert idempotent, with a unique key on run and row."),
    agent("Done on branch `fix/export`, the tests pass. Next: the migration for the unique key."),
]


def test_what_was_asked_decided_and_is_next_is_in_and_chatter_is_not() -> None:
    text = "\n".join(shortened(TALK, 370))
    assert "with a unique key on run and row" in text
    assert "Next: the migration for the unique key." in text
    assert "Let me look." not in text
    assert "a: ok" not in text


def test_who_is_a_person_is_said_once() -> None:
    first, *lines = shortened(TALK)
    assert first == "Who: a=ann, c=claude-code"
    assert {line[:3] for line in lines} == {"a: ", "c: "}


@given(st.lists(st.text("aB é", min_size=1, max_size=4), min_size=1, max_size=6, unique=True))
def test_no_two_senders_are_called_alike(names: list[str]) -> None:
    said = [
        Utterance(name, f"{name} takes the parts of the work that must be done until May.") for name in names
    ]
    first, *lines = shortened(said)
    assert len({line.partition(":")[0].strip() for line in lines}) == len(names)
    assert all(f"={name}" in first for name in names)


def test_of_a_log_the_errors_are_in_each_kind_once() -> None:
    told = [unit.text for unit in units(f"It failed:\n{LOG}\nI restart it.")]
    assert told == [
        "It failed:",
        "2026-03-02 10:00:04 ERROR batch 18: checksum of part 3 differs",
        "I restart it.",
    ]


def test_of_a_block_without_an_error_the_last_line_is_in() -> None:
    code = "\n".join(f"    value_{number} = {number}" for number in range(9))
    assert [unit.text for unit in units(f"So:\n```py\n{code}\n```")] == ["So:", "value_8 = 8"]


def test_the_last_message_is_in_however_short_it_is() -> None:
    assert shortened([*TALK, person("ok")])[-1] == "a: ok"
    assert shortened([*TALK, person("x")], 300)[-1] == "a: x"


def test_what_is_left_out_within_a_message_shows() -> None:
    middle = " ".join(f"Note {number} says nothing." for number in range(60))
    long = f"The key lies in `secrets/` and must never be logged. {middle} The port must stay 8443 until May."
    line = shortened([person("Where is the key, and which port is it?"), agent(long)], 420)[-1]
    assert GAP in line


def is_within(part: str, text: str) -> bool:
    """Return whether a text has the words of a part whole and in their order; lines may be left out."""
    at = 0
    for word in re.split(r"[\s…]+", part):
        found = text.find(word, at)
        if found < 0:
            return False
        at = found + len(word)
    return True


@given(
    st.lists(
        st.builds(Utterance, st.sampled_from(["ann", "bob", "c"]), st.text(max_size=300), st.booleans()),
        max_size=12,
    ),
    st.integers(0, 2_000),
)
def test_it_fits_and_has_nothing_that_was_not_said(said: list[Utterance], most: int) -> None:
    lines = shortened(said, most)
    assert sum(len(line.encode(errors="surrogatepass")) + 1 for line in lines) <= most
    whole = [re.sub(r"\s+", "", each.text) for each in said]
    for line in lines[1:]:
        for part in line.partition(": ")[2].split(GAP):
            assert any(is_within(part, text) for text in whole), part
    assert shortened(said, most) == lines


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "a." * 200_000,
        "`" * 100_000,
        "|" * 100_000,
        "(" * 50_000,
        "- " * 100_000,
        "\n" * 500_000,
    ],
    ids=["one word", "dots", "ticks", "rows", "brackets", "items", "lines"],
)
def test_a_hostile_message_costs_its_own_words_alone(text: str) -> None:
    lines = shortened([person("Keep port 8443 until the end of May, please."), agent(text)])
    assert "Keep port 8443 until the end of May, please." in lines[1]


def test_others_run_while_a_long_conversation_is_shortened() -> None:
    said = [
        agent(f"Step {number} of the work is done, and file_{number}.py is next.") for number in range(5_000)
    ]
    steps = summarize(said, 3_200)
    assert sum(1 for _ in steps) > MOST_MESSAGES


def test_of_a_very_long_conversation_the_newest_messages_count() -> None:
    said = [
        agent(f"Fact number {number} is that key_{number} must stay.") for number in range(MOST_MESSAGES + 50)
    ]
    text = "\n".join(shortened(said))
    assert f"Fact number {MOST_MESSAGES + 49} is" in text
    assert "Fact number 10 is" not in text
