"""Which memories hooks give: useful ones at a start, an answer for a prompt, nothing outdated alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.hook_events import FOLDER, PROJECT, Client, call, fill, model, user

from greenroom.actors import ListMemories, MemoryFilters, RateMemory, StoreMemory, UpdateMemory
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.memories.recall.prompt_cues import is_trivial
from greenroom.actors.memories.requests.requests import NoteUses
from greenroom.actors.search.embedding.models.safetensors import read_tensors
from greenroom.actors.search.ranking.ordinary import VECTORS, prompts

if TYPE_CHECKING:
    from support.agents import Enter

SPACE = f"user:ann:{PROJECT}"
MOST_UNPROVEN = 3
MOST_TOKENS = 600
BESIDE = 150
"""Tokens that the delimiters and headings take at most."""


def towns(number: int) -> str:
    return f"Order {number} went to a town on a grey morning in {1980 + number}"


async def uses(ann: Client, memory_id: str) -> None:
    used = NoteUses(memory_ids=[memory_id])
    await ann.at.runtime.ask(memory_address("user:ann"), used, principal=ann.principal)


# -- the start of a session ----------------------------------------------------


@pytest.mark.promise("hook-context.useful")
async def test_a_start_has_what_was_used_or_rated_or_is_about_the_files_in_hand_whatever_its_tags(
    enter: Enter,
) -> None:
    async with enter() as at:
        ann = Client(at)
        edit = call("Edit", path=f"{FOLDER}/src/cart.py", wrote=True)
        await ann.tells("session-end", user("Please go on"), edit, session="s0")
        await ann.knows("The mast leans to port", key="used", tags=["sail"])
        rated = await ann.knows("Kelp is stored below deck", namespace=SPACE, key="rated")
        await ann.knows("The total is rounded in src/cart.py", namespace=SPACE, key="about")
        for number in range(40):
            await ann.knows(towns(number))
        (mast,) = (await ann.agent.ask(ListMemories(filters=MemoryFilters(key="used")))).memories
        await uses(ann, mast.memory_id)
        await ann.agent.ask(RateMemory(memory_id=rated, rating=1.0))
        told = await ann.starts()
        assert "- The mast leans to port [used, " in told
        assert "- Kelp is stored below deck [rated, " in told
        assert "- The total is rounded in src/cart.py [about, " in told


@pytest.mark.promise("hook-context.useful")
async def test_of_what_an_agent_alone_stored_three_are_given_and_of_all_what_fits(enter: Enter) -> None:
    async with enter() as at:
        ann, person = Client(at), Client(at, agent="console")
        for number in range(20):
            await ann.knows(towns(number))
        assert (await ann.starts()).count("went to a town") == MOST_UNPROVEN
        for number in range(60):
            await person.knows(f"The person says: {towns(number)}")
        told = await ann.starts("s2")
        assert told.count("The person says") > MOST_UNPROVEN
        assert MOST_TOKENS * 4 * 0.8 < len(told.encode()) < (MOST_TOKENS + BESIDE) * 4


@pytest.mark.promise("hook-context.useful")
async def test_a_finding_that_the_person_accepted_counts_as_confirmed(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        for number in range(5):
            await ann.tells(
                "stop", user(f"Remember that buoy {number} has {number + 2} bells."), model("Yes.")
            )
        found = (await ann.agent.ask(ListMemories(filters=MemoryFilters(unreviewed=True)))).memories
        for each in found:
            await ann.agent.ask(UpdateMemory(memory_id=each.memory_id, unreviewed=False))
        known = (await ann.starts("s2")).partition(f"## To know, from {SPACE}\n")[2]
        assert known.count("bells") == len(found) == 5


@pytest.mark.promise("hook-context.useful")
async def test_a_start_has_what_the_person_typed_in_the_last_session_and_its_files(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        await ann.asks("Please port the cart", session="s0")
        edit = call("Edit", path=f"{FOLDER}/cart.py", wrote=True)
        await ann.tells("stop", user("Please port the cart"), edit, session="s0")
        await ann.tells("session-end", user("Now the docs of the cart"), session="s0", reason="logout")
        last = (await ann.starts()).partition("## How the last session ended\n")[2].partition("\n## ")[0]
        assert "the person's last request was: Now the docs of the cart" in last
        assert "\n- Its files: cart.py [session " in last
        assert last.count("Before, the person typed: Please port the cart [session ") == 1
        assert len(last.encode()) <= 4 * 200


# -- outdated memories ---------------------------------------------------------

OLD = "We send the order mails through Mailgun from the web process"
NEW = "Order mails no longer go through Mailgun; the web process hands the order mails to Postmark instead"


@pytest.mark.promise("hook-context.outdated")
@pytest.mark.parametrize("is_named", [True, False])
async def test_what_is_outdated_is_not_given_without_what_replaced_it(enter: Enter, is_named: bool) -> None:  # noqa: FBT001
    async with enter() as at:
        ann = Client(at, agent="console")
        await fill(ann)
        old = await ann.knows(OLD, tags=["decision"])
        at.tick(24 * 3_600)
        await ann.agent.ask(StoreMemory(content=NEW, tags=["decision"], supersedes=old if is_named else None))
        started = await ann.starts("s2")
        assert NEW in started
        assert OLD not in started
        asked = "Through what do we send the order mails from the web process, Mailgun?"
        given = await ann.asks(asked)
        assert NEW in given
        assert OLD not in given.partition(NEW)[0]
        assert OLD not in await ann.asks(asked)


@pytest.mark.promise("hook-context.outdated")
async def test_what_replaced_a_memory_and_was_given_before_does_not_bring_the_older_one_alone(
    enter: Enter,
) -> None:
    async with enter() as at:
        ann = Client(at)
        await fill(ann)
        await ann.knows(NEW, key="new")
        assert NEW in await ann.asks("Do order mails still go through Mailgun or to Postmark?")
        at.tick(-24 * 3_600)
        await ann.knows(OLD, key="old")
        at.tick(24 * 3_600)
        given = await ann.asks("Through what do we send the order mails from the web process, Mailgun?")
        assert OLD not in given


# -- a prompt ------------------------------------------------------------------


@pytest.mark.promise("hook-context.relevant")
@pytest.mark.parametrize(
    "prompt",
    [
        "ja mach weiter",
        "Ja, mach das bitte!",
        "yes, go on",
        "yep, do that, next",
        "great, carry on please",
        "looks good to me",
        "let's go",
        "oui, vas-y",
        "sí, adelante",
        "va bene, continua",
        "sim, pode continuar",
        "да, давай дальше",
        "好的 继续",
    ],
)
def test_consent_asks_for_nothing_in_any_language(prompt: str) -> None:
    assert is_trivial(prompt)


@pytest.mark.parametrize(
    "prompt", ["welche Farbe hat der Knopf?", "do it with Postmark", "weiter mit dem Mast"]
)
def test_what_names_a_matter_is_no_mere_consent(prompt: str) -> None:
    assert not is_trivial(prompt)


@pytest.mark.promise("hook-context.relevant")
async def test_a_question_in_another_language_brings_no_unrelated_memories(enter: Enter) -> None:
    async with enter(embedder="static") as at:
        ann = Client(at)
        await fill(ann)
        for text in (
            "Die Rechnungen werden quartalsweise gestellt",
            "Der Server steht im Keller neben der Heizung",
            "Wir testen immer mit der echten Datenbank",
        ):
            await ann.knows(text)
        await ann.knows("Das Logo hat die Farbe Petrol", key="logo-farbe")
        given = await ann.answered(ann.event("user-prompt", prompt="Welche Farbe hat das Logo noch mal?"))
        assert "Petrol" in given.context
        assert len(given.memory_ids) == 1
        for unrelated in (
            "Welche Farbe hat der Zug nach Wien?",
            "Wer hat die Katze gefüttert und wann war das?",
        ):
            assert await ann.asks(unrelated, "s2") == ""


@pytest.mark.promise("hook-context.relevant")
async def test_word_vectors_find_other_words_and_leave_ordinary_prompts_alone(enter: Enter) -> None:
    async with enter(embedder="static") as at:
        ann = Client(at)
        await fill(ann)
        await ann.knows("Guest checkout stays, since forced accounts cost us a fifth of the carts")
        asked = "Should we force people to make an account before the checkout?"
        assert "Guest checkout" in await ann.asks(asked)
        some = prompts()[::3]
        given = [await ann.asks(prompt, f"o{number}") for number, prompt in enumerate(some)]
        assert sum(map(bool, given)) <= len(some) // 20


@pytest.mark.promise("hook-context.own")
async def test_better_matches_of_another_project_do_not_crowd_out_the_own_one(enter: Enter) -> None:
    async with enter(embedder="static") as at:
        ann = Client(at)
        await fill(ann)
        await ann.knows("Staging is at port 5433")
        for number in range(60):
            await ann.knows(
                f"The staging database listens on port {number}", namespace="user:ann:blog-99999999"
            )
        assert "5433" in await ann.asks("On which port does the staging database listen?")


def test_the_vectors_of_the_ordinary_prompts_are_of_these_prompts() -> None:
    (vectors,) = read_tensors(VECTORS).values()
    assert len(vectors) == len(prompts()) == len(set(prompts()))
