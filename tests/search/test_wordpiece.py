"""Texts as numbers of tokens, as the makers of the models have them."""

from __future__ import annotations

import functools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from greenroom.actors.search.embedding.models.wordpiece import UNKNOWN, WordPiece

WORDS = (
    "[SEP] the cat cafe naive sea side seaside boats sleep 19 2024 . , - _ [ ] / e l m o s ss \u03c3 \u6771 "
    "##s ##ing ##side ##er ##2 ##0 ##4 ##e ##t ##a ##o ##\u03c3 ##\u0131 \u1112 ##\u1161 ##\u11ab"
)
VOCABULARY = {word: number for number, word in enumerate([UNKNOWN, *WORDS.split()])}
# Characters on which every version of Unicode agrees, so that it is no matter whose tables know newer ones.
SETTLED = "".join(
    chr(code)
    for code in range(0x30000)
    if unicodedata.category(chr(code)) == unicodedata.ucd_3_2_0.category(chr(code)) not in {"Cn", "Cs"}
)
PIECES = [*WORDS.replace("##", "").split(), "SEA", "Caf\u00e9", "\u00c9", "\u03a3", "\u0130"]
BETWEEN = ["\ud55c", "\u2260", " ", "\n", "\t", "\0", "\u00a0", "\u200b", "\u0301", ".", "##", "\u3000", ""]


@functools.cache
def theirs() -> Tokenizer:
    made = Tokenizer(models.WordPiece(VOCABULARY, unk_token=UNKNOWN, max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


@functools.cache
def ours() -> WordPiece:
    return WordPiece(VOCABULARY)


def texts(characters: str) -> st.SearchStrategy[str]:
    parts = st.sampled_from(PIECES) | st.sampled_from(BETWEEN) | st.sampled_from(characters)
    return st.lists(parts, max_size=40).map("".join)


@given(texts(SETTLED))
def test_a_text_has_the_tokens_that_its_makers_find_where_they_find_them(text: str) -> None:
    expected = theirs().encode(text)
    assert ours().ids(text) == expected.ids
    found = ours().tokens(text)
    assert [token.id for token in found] == expected.ids
    assert [(token.start, token.end) for token in found] == expected.offsets


@pytest.mark.slow
def test_every_character_is_taken_as_its_makers_take_it() -> None:
    text = " ".join(f"a{character}b" for character in SETTLED)
    expected = theirs().encode(text)
    found = ours().tokens(text)
    assert [token.id for token in found] == expected.ids
    assert [(token.start, token.end) for token in found] == expected.offsets


@given(st.text())
def test_any_text_has_tokens_in_their_order(text: str) -> None:
    found = ours().tokens(text)
    assert [token.id for token in found] == ours().ids(text)
    assert all(token.start < token.end <= len(text) for token in found)
    starts = [token.start for token in found]
    assert starts == sorted(starts)


@pytest.mark.parametrize(("length", "known"), [(100, True), (101, False)])
def test_a_word_of_more_than_a_hundred_characters_is_unknown(length: int, known: bool) -> None:  # noqa: FBT001
    word = "e" * length
    assert ours().ids(word) == theirs().encode(word).ids
    assert (ours().ids(word) != [VOCABULARY[UNKNOWN]]) is known


@pytest.mark.slow
def test_words_that_come_again_have_the_same_tokens() -> None:
    many = " ".join(f"sea{number}side" for number in range(20_000))
    assert ours().ids(f"{many} boats {many}") == theirs().encode(f"{many} boats {many}").ids
