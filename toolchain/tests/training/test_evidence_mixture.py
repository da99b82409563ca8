"""Questions with evidence in a mixture: parts, pieces, negatives, pages of questions; what measures is never learnt."""

import gzip
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.errors import BadData
from shardqa.models import shipped
from shardqa_toolchain import evidence_lines
from shardqa_toolchain.evidence_lines import EvidenceRecord
from shardqa_toolchain.training import evidence_mixture, mixture
from shardqa_toolchain.training.evidence_mixture import LONGEST, cut
from shardqa_toolchain.training.mixture import Mixture, MixtureSource

PAGES = """# Gout

Q: What is (are) Gout ?
A: What is gout? Gout is a kind of arthritis. It hurts. It comes at night. It goes. It may come back.

Q: What causes Gout ?
A: Uric acid builds up.

# Rickets

Q: What causes Rickets ?
A: Vitamin D is lacking.
"""


@pytest.fixture
def villages(tmp_path: Path) -> str:
    """A file of twelve questions with evidence, every fourth of the split dev."""
    path, hill = tmp_path / "set.jsonl.gz", "Village {} lies on a hill."
    records = [
        EvidenceRecord(
            f"v{number}",
            f"How many bells has village {number}?",
            f"village {number}",
            f"{hill.format(number)} Its church has {number} bells.",
            ((0, len(hill.format(number))),),
            split="dev" if number % 4 == 0 else "train",
        )
        for number in range(12)
    ]
    evidence_lines.write(path, records)
    return str(path)


def mixed(tmp_path: Path, *sources: MixtureSource) -> tuple[dict[str, Any], list[EvidenceRecord], Path]:
    out = tmp_path / "out"
    manifest = mixture.mix(Mixture(tokenizer=str(shipped.folder()), sources=sources), out)
    file = out / mixture.EVIDENCE_FILE
    return manifest, evidence_lines.read(file) if file.exists() else [], out / mixture.HELD_OUT


def test_the_dev_part_is_held_out(villages: str, tmp_path: Path) -> None:
    _, learnt, held_out = mixed(tmp_path, MixtureSource(villages, copies=2))
    assert len(learnt) == 18
    assert not [one for one in learnt if one.split == "dev"]
    assert {one.id for one in evidence_lines.read(held_out / "set.jsonl.gz")} == {"v0", "v4", "v8"}


def test_nothing_is_learnt_from_a_set_that_only_measures(villages: str, tmp_path: Path) -> None:
    source = MixtureSource(villages, measured=True, share=0.5)
    manifest, learnt, held_out = mixed(tmp_path, source)
    assert (learnt, manifest["taken"]) == ([], {"set.jsonl.gz": {"learnt": 0, "held_out": 6}})
    assert len(evidence_lines.read(held_out / "set.jsonl.gz")) == 6


def test_a_negative_is_another_passage_without_the_evidence(villages: str, tmp_path: Path) -> None:
    manifest, learnt, _ = mixed(tmp_path, MixtureSource(villages, negatives=1.0))
    none = [one for one in learnt if one.id.endswith("#no")]
    assert manifest["negatives"] == len(none) > 0
    assert not [one for one in none if one.spans or one.question.split()[-1].rstrip("?") in one.context.split()]


def test_a_pages_question_is_asked_of_the_page_and_of_the_rest_of_it(tmp_path: Path) -> None:
    path = tmp_path / "pages.txt.gz"
    path.write_bytes(gzip.compress(PAGES.encode()))
    gout, no_gout, *_, rickets = evidence_mixture.read(path)
    assert gout.question == "What is Gout?"
    shown = [gout.context[start:end] for start, end in gout.spans]
    assert shown == ["Gout is a kind of arthritis.", "It hurts.", "It comes at night.", "It goes."]
    assert [gout.context[start:end] for start, end in gout.soft] == ["It may come back."]
    assert (no_gout.context, no_gout.spans) == ("Uric acid builds up.", ())
    assert rickets.title == "Rickets"


def test_a_text_without_questions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pages.txt").write_text("# Gout\n\nIt hurts.\n")
    with pytest.raises(BadData, match="has no question"):
        evidence_mixture.read(tmp_path / "pages.txt")


@given(st.integers(0, 200), st.integers(0, 60), st.integers(1, 60), st.integers(0, 99))
def test_a_piece_is_short_and_holds_evidence_where_there_is_some(
    count: int, first: int, longest: int, seed: int
) -> None:
    sentences = [f"Sentence {number} has words, {'and more ' * (number % 7)}then ends." for number in range(count + 1)]
    text = " ".join(sentences)
    start = text.index(sentences[min(first, count)])
    whole = EvidenceRecord("a", "Why?", "", text, ((start, min(len(text), start + longest * 40)),), ((0, 3),))
    piece = cut(whole, Random(seed))
    assert len(piece.context) <= LONGEST
    assert piece.context in text
    assert piece.spans
    for begins, ends in (*piece.spans, *piece.soft):
        assert 0 <= begins < ends <= len(piece.context)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "line 1: list found"),
        ('{"id": "a", "question": "b"}', 'line 1: "context" is None, a string is needed'),
        ('{"id": "a", "question": "b", "context": "c", "spans": [[0, 2]]}', r'"spans" holds \[0, 2\]'),
        ('{"id": "a", "question": "b", "context": "c", "soft": 3}', '"soft" holds 3'),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, line: str, fault: str) -> None:
    (tmp_path / "set.jsonl").write_text(f"{line}\n")
    with pytest.raises(BadData, match=fault):
        evidence_lines.read(tmp_path / "set.jsonl")


def test_the_shipped_reader_learns_nothing_from_sets_without_a_licence() -> None:
    recipe = Path(__file__).parents[2] / "recipes" / "mixtures" / "reader-v4.toml"
    learnt = {Path(one.file).name.split(".")[0] for one in Mixture.read(recipe).sources if not one.measured}
    unlicensed = {"climate_fever", "climretrieve", "fever_eraser", "lfqa_roles", "nli4ct", "obliqa", "techsum"}
    assert not learnt & unlicensed
