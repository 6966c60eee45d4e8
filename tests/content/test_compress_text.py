"""Texts made shorter: what is kept, what is told of the rest, and texts that are there to harm."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.agents import begin, refused

from greenroom.actors import CompressText, TextCompressed
from greenroom.actors.content.compression.compress import compress

if TYPE_CHECKING:
    from support.agents import Enter

PAGE = """# The harbour

The harbour is open every day. The harbour is open on every day of the week, as it was said before.
Captain Ahlgren, who came in 1987, must never leave the pier before 6:30, unless the pilot boat is away.
It is really very nice there, and everybody is quite happy about it, and the weather is mostly fine.

```sh
moor --line 4 boat
```

| berth | depth |
| --- | --- |
| north | 4.5 m |

## Fees

The fee is 12.50 a night. People say that it is fair, and that other places are dearer, and so on.
"""


def is_extract(text: str, shorter: str) -> bool:
    characters = iter(text)
    return all(each in characters for each in shorter if not each.isspace())


def share(text: str, ratio: float) -> int:
    return int(len(text.encode()) * ratio)


@pytest.mark.promise("compression.keeps")
def test_headings_code_names_numbers_and_first_mentions_are_kept_first() -> None:
    made = compress(PAGE, share(PAGE, 0.7))
    for kept in ("# The harbour", "## Fees", "```sh\nmoor --line 4 boat\n```", "| north | 4.5 m |", "12.50"):
        assert kept in made.text
    assert "Captain Ahlgren" in made.text
    assert "1987" in made.text
    assert "as it was said before" not in made.text


@pytest.mark.promise("compression.keeps")
@pytest.mark.parametrize("ratio", [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_nothing_is_kept_without_what_negates_or_binds_it(ratio: float) -> None:
    text = (
        "The old pump in the cellar may be used, but never while the new one is running, as Eva Berg said. "
        "The tank holds 400 litres of diesel, unless somebody has taken some of it, which happens at night. "
        "Deploy the release on Friday evenings, except when the week has a public holiday in it somewhere. "
        "We have decided for the red paint of Holm and Sons, not for the blue one that was shown before."
    )
    made = compress(text, share(text, ratio)).text
    for said, bound in (
        ("may be used", "but never while"),
        ("400 litres", "unless somebody"),
        ("on Friday evenings", "except when"),
        ("red paint", "not for"),
    ):
        assert (said in made) == (bound in made)


@pytest.mark.promise("compression.extract")
@given(
    st.lists(
        st.one_of(
            st.text(max_size=60).filter(lambda said: not re.search("[\ud800-\udfff]", said)),
            st.sampled_from(
                [
                    "# Head",
                    "```",
                    "~~~",
                    "| a | b |",
                    "    x = 1;",
                    "",
                    "===",
                    "- item",
                    "A. B. C.",
                    "\u6f22\u5b57\u3002",
                ]
            ),
        ),
        max_size=30,
    ),
    st.floats(0.01, 1),
    st.floats(0, 1),
)
def test_a_compressed_text_is_an_extract_that_fits(lines: list[str], ratio: float, least: float) -> None:
    text = "\n".join(lines)
    budget = share(text, ratio)
    strict = compress(text, budget, least=least, is_strict=True)
    assert strict.fits is (len(strict.text.encode()) <= budget)
    assert bool(strict.text.strip()) is bool(text.strip())
    assert is_extract(text, strict.text)
    assert compress(text, budget, least=least, is_strict=True) == strict
    loose = compress(text, budget, least=least)
    assert is_extract(text, loose.text)
    assert loose.quality >= min(least, 1.0) - 1e-9
    assert 0 <= strict.quality <= loose.quality + 1e-9


IMPORTANT = "Eva Berg pays 4,500 euros to Holm and Sons on 3 May, as she said, and Dr. Osei signs for her."


@pytest.mark.promise("compression.extract")
@pytest.mark.parametrize(
    ("text", "least"),
    [
        (f"It was nice there. {IMPORTANT} So they all said.", IMPORTANT),
        (f"# On payments\n\n{IMPORTANT}\n\n```sh\npay\n```\n", IMPORTANT),
        ("hello world " * 40, ("hello world " * 40).strip()),
        ("```\nx = 1;\nreturn pay(Berg, 4_500);\n```", "return pay(Berg, 4_500);"),
        ("| berth | depth |\n| north | 4.5 m of Berg |", "| north | 4.5 m of Berg |"),
    ],
)
async def test_what_has_no_room_for_a_sentence_is_the_most_important_one_whole(
    enter: Enter, text: str, least: str
) -> None:
    async with enter() as at:
        alice = await begin(at)
        for tokens in (1, 5, len(least) // 4 - 1):
            made = await alice.ask(CompressText(text=text, max_tokens=tokens))
            assert (made.text.strip("`\n"), made.reached) == (least, False)
        roomy = await alice.ask(CompressText(text=text, max_tokens=len(least) // 4 + 3))
        assert least in roomy.text
        assert roomy.reached


@pytest.mark.promise("compression.told")
async def test_what_was_left_out_is_told_by_lines_and_counts(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        made = await alice.ask(CompressText(text=PAGE, target_ratio=0.6))
        assert made.tokens == -(-len(made.text.encode()) // 4)
        assert made.original_tokens == -(-len(PAGE.encode()) // 4)
        assert made.ratio <= 0.6
        dropped = made.dropped
        assert (dropped.headings, dropped.code_lines, dropped.more_runs) == (0, 0, 0)
        assert dropped.parts > 0
        assert dropped.words > 0
        lines = PAGE.split("\n")
        gone = {line for first, last in dropped.lines for line in range(first, last + 1)}
        cut = {line for first, last in dropped.shortened for line in range(first, last + 1)}
        assert not gone & cut
        for number, line in enumerate(lines, 1):
            if number in gone:
                assert line not in made.text
            elif line.strip() and number not in cut:
                assert line.strip() in made.text
        whole = await alice.ask(CompressText(text=PAGE, target_ratio=1.0))
        assert (whole.text, whole.quality, whole.dropped.lines) == (PAGE, 1.0, [])


@pytest.mark.promise("compression.told")
async def test_a_threshold_goes_before_the_ratio_and_a_budget_before_the_threshold(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)

        async def asked(**arguments: float) -> TextCompressed:
            return await alice.ask(CompressText(text=PAGE, **arguments))  # type: ignore[arg-type]

        low = await asked(target_ratio=0.3)
        good = await asked(target_ratio=0.3, quality_threshold=0.9)
        assert low.quality < 0.9 <= good.quality
        assert good.reached
        assert good.ratio > 0.3
        tight = await asked(max_tokens=40, quality_threshold=0.9)
        assert tight.tokens <= 40
        assert not tight.reached
        with refused("VALIDATION_ERROR", field="target_ratio"):
            await asked(max_tokens=40, target_ratio=0.5)


HOSTILE = {
    "one word": "a" * 200_000,
    "space": " " * 200_000,
    "lines": "\n" * 200_000,
    "fences": "```\n" * 50_000,
    "headings": "a\n-\n" * 50_000,
    "dots": ". " * 100_000,
    "initials": "A. " * 60_000,
    "quotes": '."' * 100_000,
    "citations": ".[1]" * 50_000,
    "brackets": "(" * 200_000,
    "pipes": "|" * 200_000,
    "combining": "e" + "\u0301" * 200_000,
    "han": "\u6f22" * 60_000,
    "commas": "a b c d, " * 20_000,
}


@pytest.mark.slow
@pytest.mark.promise("compression.hostile")
@pytest.mark.parametrize("name", HOSTILE)
async def test_an_odd_text_is_compressed_like_any_other(enter: Enter, name: str) -> None:
    text = HOSTILE[name]
    async with enter() as at:
        made = await (await begin(at)).ask(CompressText(text=text, max_tokens=5_000, quality_threshold=1.0))
    assert made.tokens <= 5_000 or not made.reached
    assert is_extract(text, made.text)


@pytest.mark.promise("compression.hostile")
async def test_a_text_that_is_too_long_is_refused_with_the_limit(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        with refused("VALIDATION_ERROR", field="text", limit=500_000):
            await alice.ask(CompressText(text="a" * 500_001))
