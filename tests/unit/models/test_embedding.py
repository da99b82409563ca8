"""A passage's vectors: of its whole, and of parts that are whole sentences."""

import numpy as np

from shardqa.models import shipped
from shardqa.models.embedding import OUTPUT, PART, STATES, STEPS, WIDTH, PassageRow
from shardqa.models.tokenizer import Tokenizer

TOKENIZER = Tokenizer.load(shipped.folder())
SENTENCES = [f"Mill number {n} stands by the river {'and grinds rye ' * n}for the town." for n in range(1, 8)]


def test_parts_are_whole_sentences_and_behind_the_title() -> None:
    title, text = "The mills", " ".join(SENTENCES)
    passage = PassageRow.of(TOKENIZER, title, text)
    begins = [4 + len(TOKENIZER.passage(" ".join(SENTENCES[:n])).ids) for n in range(8)]
    parts = passage.parts.tolist()
    assert set(parts) <= set(begins)
    assert (parts[0], parts[-1]) == (begins[0], len(passage.row.input_ids) - 1)
    assert len(parts) > 3
    assert max(np.diff(parts)) <= PART


def test_a_short_passage_has_one_vector_and_one_that_is_cut_parts_within_the_row() -> None:
    assert not len(PassageRow.of(TOKENIZER, "The mills", SENTENCES[0]).parts)
    long = PassageRow.of(TOKENIZER, "", " ".join(SENTENCES * 9))
    assert long.parts[-1] == len(long.row.input_ids) - 1 == 255
    assert min(np.diff(long.parts)) > 0


def test_a_part_has_the_mean_of_its_states() -> None:
    passage = PassageRow.of(TOKENIZER, "The mills", " ".join(SENTENCES))
    states = np.random.default_rng(5).normal(size=(1, len(passage.row.input_ids), WIDTH)).astype(np.float32)
    whole = np.full((1, WIDTH), 7, np.int8)
    vectors = passage.vectors({OUTPUT: whole, STATES: states})
    mean = states[0, passage.parts[1] : passage.parts[2]].mean(axis=0)
    assert vectors.dtype == np.int8
    assert len(vectors) == len(passage.parts)
    assert (vectors[0] == whole).all()
    assert abs(vectors[2] - np.rint(STEPS * mean / np.linalg.norm(mean))).max() <= 1
