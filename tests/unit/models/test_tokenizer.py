"""Wordpieces and their character offsets, on the shipped tokenizer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa import keys
from shardqa.errors import BadData, BadDocument, EmptyQuestion, QuestionTooLong
from shardqa.models import shipped
from shardqa.models.tokenizer import MAX_QUESTION_TOKENS, Tokenizer

TOKENIZER = Tokenizer.load(shipped.folder())
UNKNOWN = 100
SPECIAL = {0, 101, 102, 103}

# Plain text mixed with what breaks offsets: accents in both forms, CJK, Hangul, emoji, ligatures, controls, blanks.
AWKWARD = st.sampled_from(
    [
        "e\u0301",
        "é",
        "ﬁ",
        "İ",
        "ß",
        "東京",
        "한국",
        "👩\u200d🚀",
        "❤\ufe0f",
        "\u00ad",
        "\u200b",
        "\x00",
        "\n",
        "\u3000",
        "[SEP]",
    ]
)
TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=8) | AWKWARD, max_size=12).map("".join)


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in TOKENIZER.passage(text).offsets]


@given(TEXTS)
def test_offsets_lie_within_the_text_and_never_go_back(text: str) -> None:
    tokens = TOKENIZER.passage(text)
    starts, ends = tokens.offsets[:, 0], tokens.offsets[:, 1]
    assert tokens.ids.dtype == tokens.offsets.dtype == np.int32
    assert tokens.offsets.shape == (len(tokens), 2)
    assert (starts >= 0).all()
    assert (starts < ends).all()
    assert (ends <= len(text)).all()
    assert (np.diff(starts) >= 0).all()
    assert (np.diff(ends) >= 0).all()


@given(TEXTS)
def test_no_text_makes_a_special_token(text: str) -> None:
    assert not SPECIAL & set(TOKENIZER.passage(text).ids.tolist())


@given(TEXTS, TEXTS)
def test_offsets_count_characters_whatever_stands_before(before: str, after: str) -> None:
    shift = len(before) + 1
    whole, alone = TOKENIZER.passage(f"{before}\n{after}"), TOKENIZER.passage(after)
    if len(alone):
        assert (whole.offsets[-len(alone) :] - shift).tolist() == alone.offsets.tolist()


def test_an_empty_text_has_no_tokens() -> None:
    tokens = TOKENIZER.passage("")
    assert tokens.offsets.shape == (0, 2)
    assert len(tokens) == 0


def test_a_combining_accent_belongs_to_its_letter() -> None:
    assert pieces("a cafe\u0301.") == ["a", "cafe\u0301", "."]


def test_a_mark_that_is_a_piece_of_its_own_belongs_to_no_other() -> None:
    assert pieces("a!\U00011a01") == ["a", "!", "\U00011a01"]


def test_both_forms_of_an_accent_are_the_same_word() -> None:
    assert TOKENIZER.passage("cafe\u0301").ids.tolist() == TOKENIZER.passage("caf\u00e9").ids.tolist()


def test_an_emoji_made_of_several_characters_stays_whole() -> None:
    assert pieces("go 👩\u200d🚀 ❤\ufe0f now") == ["go", "👩\u200d🚀", "❤\ufe0f", "now"]


def test_ideographs_are_a_token_each() -> None:
    assert pieces("in 東京") == ["in", "東", "京"]


def test_the_letters_of_a_separator_are_only_letters() -> None:
    assert "".join(pieces("[SEP]")) == "[SEP]"
    assert 102 not in TOKENIZER.question("what is [SEP]?")


def test_a_word_past_a_hundred_characters_is_one_unknown_token() -> None:
    tokens = TOKENIZER.passage("x" * 101)
    assert tokens.ids.tolist() == [UNKNOWN]
    assert tokens.offsets.tolist() == [[0, 101]]


def test_a_question_may_fill_its_bound() -> None:
    assert len(TOKENIZER.question("why " * (MAX_QUESTION_TOKENS - 1))) == MAX_QUESTION_TOKENS


def test_a_question_past_its_bound_is_refused_with_both_values() -> None:
    with pytest.raises(QuestionTooLong, match="has 129 wordpieces, at most 128"):
        TOKENIZER.question("why " * 128)


def test_a_question_gets_back_the_mark_that_keys_drop() -> None:
    assert TOKENIZER.question("who built it").tolist() == TOKENIZER.question("Who built it??").tolist()


@pytest.mark.parametrize("text", ["", " \n", "?", " ?? "])
def test_a_question_of_nothing_but_its_mark_has_no_tokens(text: str) -> None:
    assert len(TOKENIZER.question(text)) == 0


def test_a_lone_surrogate_in_a_passage_is_a_bad_document() -> None:
    with pytest.raises(BadDocument, match=r"character 2 is the lone surrogate U\+D800"):
        TOKENIZER.passage("ab\ud800")


def test_a_lone_surrogate_in_a_question_is_bad_data() -> None:
    with pytest.raises(BadData, match="lone surrogate"):
        TOKENIZER.question("\udfff")


CORES = st.lists(
    st.sampled_from("CçΣςßẞ5⁵İI\u212aÅ\u212b\u2126 \t\x1c\x85\u2028.?．？#+…\u0301\u200b")
    | st.text(st.characters(codec="utf-8"), max_size=3)
    | AWKWARD,
    max_size=8,
).map("".join)


@given(CORES)
def test_what_keys_take_off_a_text_the_tokenizer_does_not_see(text: str) -> None:
    assert TOKENIZER.passage(keys.seen(text)).ids.tolist() == TOKENIZER.passage(text).ids.tolist()


@given(CORES)
def test_the_normal_form_of_a_question_has_the_same_wordpieces(question: str) -> None:
    try:
        normal = keys.normalise_question(question)
        seen = TOKENIZER.question(question)
    except (EmptyQuestion, QuestionTooLong):
        return
    assert TOKENIZER.question(normal).tolist() == seen.tolist()
