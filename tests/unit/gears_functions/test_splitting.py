"""Passages: exact places, bounded, nothing lost, the same word pieces as their text alone."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shardqa import places
from shardqa.errors import BadDocument
from shardqa.gears_functions import splitting
from shardqa.gears_functions.splitting import Passage, split
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer

TOKENIZER = Tokenizer.load(shipped.folder())
SENTENCE = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist, who ground rye there. "

MARKS = st.lists(st.tuples(st.integers(0, 40), st.sampled_from([{}, {"headings": ["Ferry"]}, {"aside": "index"}])))

fragments = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            SENTENCE,
            "word ",
            "Dr. Who? ",
            "e\u0301",
            "한국어 ",
            "漢字。",
            "\n\n",
            "\t",
            "\x00",
            "\u200b",
            "x" * 120,
            "1,234.5 ",
            "😀",
            "\x0c",
        ]
    ),
    st.builds(
        lambda piece, n: piece * n,
        st.sampled_from(["a", " ", "ab ", "漢", "x, ", "\x01", "\u0301", "-"]),
        st.integers(1, 3000),
    ),
)
texts = st.lists(fragments, max_size=12).map("".join)


def has_words(text: str) -> bool:
    """Whether the tokenizer sees a part of a word in it."""
    return len(TOKENIZER.passage(text)) > 0 and splitting.A_WORD.search(text) is not None


def check(text: str, passages: list[Passage]) -> None:
    for p in passages:
        assert text[p.start : p.end] == p.text
        assert 1 <= len(p.ids) <= splitting.MAX_PASSAGE
        assert np.array_equal(TOKENIZER.passage(p.text).ids, p.ids)
    assert all(a.start < b.start and a.end < b.end for a, b in itertools.pairwise(passages))


@settings(max_examples=150)
@given(texts)
@example("-" * 199 + "0\x85¹")  # one word to the tokenizer
def test_every_passage_is_a_bounded_piece_of_the_text_with_the_pieces_of_its_own_text(text: str) -> None:
    check(text, split(text, TOKENIZER))


@settings(max_examples=150)
@given(texts)
def test_what_lies_between_passages_has_no_word_for_the_tokenizer(text: str) -> None:
    end = 0
    for p in split(text, TOKENIZER):
        assert not has_words(text[end : p.start])
        end = max(end, p.end)
    assert not has_words(text[end:])


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t \n", "\x00\x01", "\ufeff", " " * 100_000, ".", "." * 100_000, "= _ 😀"]
)
def test_a_text_without_words_has_no_passages(text: str) -> None:
    assert split(text, TOKENIZER) == []


@pytest.mark.parametrize("filler", [".", "-=", "… "])
def test_passages_without_a_word_are_left_out_and_the_others_stay(filler: str) -> None:
    before, after = SENTENCE * 20, SENTENCE * 20
    text = before + filler * 5_000 + after
    passages = split(text, TOKENIZER)
    check(text, passages)
    assert all(splitting.A_WORD.search(p.text) for p in passages)
    assert passages[0].start == 0
    assert passages[-1].end == len(text.rstrip())
    assert len(passages) < 2 * len(split(before, TOKENIZER)) + 5


def test_a_short_document_is_one_passage() -> None:
    text = SENTENCE * 3
    assert [p.text for p in split(text, TOKENIZER)] == [text.strip()]


def test_a_document_just_over_one_window_leaves_no_tiny_tail() -> None:
    sizes = [len(p.ids) for p in split(SENTENCE * 9, TOKENIZER)]
    assert len(sizes) == 2
    assert min(sizes) > 80


def test_neighbours_share_a_sentence() -> None:
    passages = split(SENTENCE * 40, TOKENIZER)
    assert all(b.start + len(SENTENCE) - 1 <= a.end for a, b in itertools.pairwise(passages))


def test_passages_begin_and_end_with_sentences() -> None:
    for p in split(SENTENCE * 40, TOKENIZER):
        assert p.text.startswith("The mill")
        assert p.text.endswith("there.")


def test_a_sentence_longer_than_a_passage_is_cut_between_words() -> None:
    text = " ".join(f"word{n}" for n in range(2_000))
    passages = split(text, TOKENIZER)
    check(text, passages)
    assert len(passages) > 10
    assert all(p.text.startswith("word") and text[p.end : p.end + 1] in ("", " ") for p in passages)


def test_a_word_of_a_million_letters_becomes_short_passages() -> None:
    text = "x" * 1_000_000
    passages = split(text, TOKENIZER)
    check(text, passages)
    assert passages[-1].end == len(text)
    assert max(len(p.text) for p in passages) <= 10_000


def test_a_sentence_behind_a_key_in_base64_is_not_hidden_by_it() -> None:
    passages = split(f"The key is {'aB3/' * 75}. The pilot is Ines Duarte.", TOKENIZER)
    assert passages[-1].text == "The pilot is Ines Duarte."


def test_a_long_gap_ends_a_passage() -> None:
    text = "before" + " " * 5_000 + "after"
    assert [p.text for p in split(text, TOKENIZER)] == ["before", "after"]


def test_a_long_document_is_split_to_its_end() -> None:
    text = SENTENCE * 2_000
    passages = split(text, TOKENIZER)
    check(text, passages[:50])
    assert passages[-1].end == len(text.rstrip())


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(BadDocument, match="lone surrogate"):
        split("good " * 10 + "\ud800", TOKENIZER)


def test_slices_are_the_same_passages_in_bounded_parts() -> None:
    text = (SENTENCE * 8_000)[: 20 * splitting.BLOCK]
    parts = list(splitting.split_in_slices(text, TOKENIZER))
    passages = [p for part in parts for p in part]
    assert [(p.start, p.end) for p in passages] == [(p.start, p.end) for p in split(text, TOKENIZER)]
    assert max(map(len, parts)) <= splitting.SLICE
    assert sum(not part for part in parts) >= 19  # one step for each block before the last


def test_a_run_without_blanks_takes_a_step_for_a_block_not_for_each_cut() -> None:
    blocks = 8
    parts = list(splitting.split_in_slices("x" * (blocks * splitting.BLOCK), TOKENIZER))
    assert blocks - 1 <= sum(not part for part in parts) <= 2 * blocks


# ---- structure


def entries(*sizes: int) -> tuple[str, places.Raw]:
    """A page with as many entries below one heading, each of so many sentences."""
    text, marks = "20.3 Settings", [[0, {"headings": ["20.3 Settings"]}]]
    for n, size in enumerate(sizes):
        marks.append([len(text) + 2, {"headings": ["20.3 Settings", f"key_{n} (integer)"]}])
        text += f"\n\nkey_{n} (integer)\n\n" + SENTENCE * size
    return text, marks


def test_long_entries_are_passages_of_their_own_with_their_paths() -> None:
    text, marks = entries(4, 12)
    passages = split(text, TOKENIZER, marks)
    check(text, passages)
    assert passages[0].text.startswith("20.3 Settings\n\nkey_0 (integer)")
    assert "key_1" not in passages[0].text
    assert passages[1].text.startswith("key_1 (integer)")
    assert [passage.path for passage in passages] == [
        ("20.3 Settings", "key_0 (integer)"),
        *[("20.3 Settings", "key_1 (integer)")] * (len(passages) - 1),
    ]


def test_short_entries_share_a_passage_and_the_path_above_them() -> None:
    text, marks = "ls\n\n-a\n\nAll files.\n\n-l\n\nLong lines.", [[0, {"headings": ["ls"]}]]
    marks += [[text.index(flag), {"headings": ["ls", flag]}] for flag in ("-a", "-l")]
    (passage,) = split(text, TOKENIZER, marks)
    assert (passage.text, passage.path) == (text, ("ls",))


def test_a_row_of_many_cells_is_a_passage_without_its_neighbours() -> None:
    cells = [["Ferry", "Berta"], ["Built", "1994"], ["Crew", "6"], ["Hull", "oak"], ["Port", "Lisk"]]
    text, marks = "Fleet\n\n", [[0, {"headings": ["Fleet"]}]]
    for name in ("Berta", "Clara"):
        marks.append([len(text), {"headings": ["Fleet"], "cells": [["Ferry", name], *cells[1:]]}])
        text += f"Ferry {name} has Built: 1994; Crew: 6; Hull: oak; Port: Lisk.\n"
    marks.append([len(text), {"headings": ["Fleet"]}])
    passages = split(f"{text}\nAll sail.", TOKENIZER, marks)
    assert [passage.text[:13] for passage in passages] == ["Ferry Berta h", "Ferry Clara h", "All sail."]
    assert {passage.path for passage in passages} == {("Fleet",)}


def test_a_new_chapter_does_not_join_the_last_entry() -> None:
    text, marks = entries(1)
    marks.append([len(text), {"headings": ["21 Backup"]}])
    assert [passage.path[0] for passage in split(f"{text}21 Backup\n\n{SENTENCE}", TOKENIZER, marks)] == [
        "20.3 Settings",
        "21 Backup",
    ]


@pytest.mark.parametrize("lead", ["These are given:\n", "Who may ring the bell?\n\n", "ring(bell)\n    ", "Bells\n\n"])
def test_what_leads_in_is_never_the_last_of_a_passage(lead: str) -> None:
    text = "".join(f"{SENTENCE * n}\n\n{lead}{SENTENCE}" for n in range(1, 9))
    passages = split(text, TOKENIZER)
    check(text, passages)
    assert len(passages) > 5
    assert not [passage.text for passage in passages if passage.text.endswith(lead.strip())]


@given(st.lists(fragments, max_size=4).map("".join), MARKS)
@settings(max_examples=300, deadline=None)
def test_a_short_text_taken_whole_is_what_cutting_makes_of_it(
    text: str, marks: list[tuple[int, dict[str, str]]]
) -> None:
    rising = [[at, place] for at, place in sorted(dict(marks).items())]
    whole = splitting._whole(text, TOKENIZER, rising)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitting, "_whole", lambda *_: None)
        cut = split(text, TOKENIZER, rising)
    if whole is not None:
        (passage,) = cut
        assert (passage.start, passage.end, passage.text, passage.path) == (
            whole.start,
            whole.end,
            whole.text,
            whole.path,
        )
        assert np.array_equal(passage.ids, whole.ids)
