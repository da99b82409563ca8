"""Cards of models: read strictly, carried on from model to model, and no part of a model's address."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.errors import BadModel
from shardqa.models.shipped import write_checksums
from shardqa_toolchain.cards import UNKNOWN, Card, CardStep, Figure, Score, address, derive

FULL = Card(
    "small",
    "all-MiniLM-L6-v2",
    "Apache-2.0",
    ("SQuAD 1.1 (CC BY-SA 4.0)",),
    {"start": "base"},
    (CardStep("train qa", {"passes": 2}), CardStep("quantize", {}, {"passed": True})),
    (Score("SQuAD 1.1 dev", "F1", 82.5),),
    (Figure("model.onnx", 23.7, "MB"),),
    (Figure("p50", 9.1, "ms", "1 x 128 tokens"),),
)

text = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.floats(allow_nan=False, allow_infinity=False)
objects = st.dictionaries(text, st.none() | st.booleans() | numbers | text | st.lists(text))
cards = st.builds(
    Card,
    text,
    text,
    text,
    st.lists(text).map(tuple),
    objects,
    st.lists(st.builds(CardStep, text, objects, st.none() | objects)).map(tuple),
    st.lists(st.builds(Score, text, text, numbers, text)).map(tuple),
    st.lists(st.builds(Figure, text, numbers, text, text)).map(tuple),
)


def model(folder: Path, content: bytes = b"weights") -> Path:
    folder.mkdir()
    (folder / "model.onnx").write_bytes(content)
    (folder / "config.json").write_text("{}")
    return folder


def written(folder: Path, **changes: Any) -> Path:
    """A folder whose card is FULL's with some fields changed, or taken away with ``...``."""
    FULL.save(folder)
    found = {**json.loads((folder / "card.json").read_text()), **changes}
    (folder / "card.json").write_text(json.dumps({name: one for name, one in found.items() if one is not ...}))
    return folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"licence": ...}, "'licence' is missing"),
        ({"author": "me"}, "'author' is unknown"),
        ({"name": 3}, "name is 3, str is needed"),
        ({"recipe": []}, r"recipe is \[\], dict is needed"),
        ({"data": "SQuAD"}, "data is 'SQuAD', list is needed"),
        ({"data": [1]}, r"data\[0\] is 1, str is needed"),
        ({"steps": [7]}, r"steps\[0\] is int, an object is needed"),
        ({"steps": [{"name": "prune", "settings": {}}]}, r"steps\[0\]: 'verdict' is missing"),
        ({"steps": [{"name": "prune", "settings": {}, "verdict": "good"}]}, "verdict is 'good', dict or NoneType"),
        ({"scores": [{"set": "dev", "metric": "F1", "value": True, "setting": ""}]}, "value is True, int or float"),
    ],
)
def test_a_card_of_another_form_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadModel, match=message):
        Card.load(written(tmp_path, **changes))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b'{"name": NaN}'])
def test_a_file_that_is_no_card_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "card.json").write_bytes(content)
    with pytest.raises(BadModel, match=r"card\.json"):
        Card.load(tmp_path)


def test_a_folder_without_a_card_has_none(tmp_path: Path) -> None:
    assert Card.find(tmp_path) is None
    with pytest.raises(BadModel, match="can't be read"):
        Card.load(tmp_path)


@given(cards)
def test_a_card_comes_back_as_it_was_saved(tmp_path_factory: pytest.TempPathFactory, card: Card) -> None:
    folder = tmp_path_factory.mktemp("card")
    card.save(folder)
    assert Card.load(folder) == card


def test_a_card_that_can_not_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    FULL.save(tmp_path)
    with pytest.raises(ValueError, match="JSON compliant"):
        FULL.with_size("model.onnx", float("nan"), "MB").save(tmp_path)
    assert Card.load(tmp_path) == FULL
    assert [path.name for path in tmp_path.iterdir()] == ["card.json"]


def test_a_size_measured_again_takes_the_place_of_the_old_one() -> None:
    assert FULL.with_size("model.onnx", 20, "MB").sizes == (Figure("model.onnx", 20.0, "MB"),)


def test_a_derived_card_keeps_the_history_and_drops_what_was_measured(tmp_path: Path) -> None:
    source, out = model(tmp_path / "source"), model(tmp_path / "smaller", b"others")
    FULL.save(source)
    card = derive(source, out, CardStep("quantize", {"form": "dynamic"}, {"passed": True}))
    assert Card.load(out) == card
    assert (card.name, card.origin, card.data) == ("smaller", FULL.origin, FULL.data)
    assert card.steps[:-1] == FULL.steps
    assert card.steps[-1].settings == {"source": address(source), "form": "dynamic"}
    assert not card.scores + card.sizes + card.latencies


def test_a_model_derived_from_one_without_a_card_says_that_its_origin_is_unknown(tmp_path: Path) -> None:
    card = derive(model(tmp_path / "found"), model(tmp_path / "out"), CardStep("export"))
    assert card.origin == "unknown: made from found, which has no card"
    assert card.licence == UNKNOWN


def test_an_address_changes_with_each_file_that_makes_the_model(tmp_path: Path) -> None:
    folder = model(tmp_path / "one")
    seen = {address(folder)}
    for name in ("model.onnx", "tokenizer.json", "config.json", "scoring.json"):
        (folder / name).write_text(f"other {name}")
        seen.add(address(folder))
    assert len(seen) == 5


def test_an_address_is_of_content_not_of_card_notes_or_place(tmp_path: Path) -> None:
    one, other = model(tmp_path / "one"), model(tmp_path / "other")
    FULL.save(other)
    write_checksums(other)
    (other / "README.md").write_text("notes")
    assert address(one) == address(other)


def test_a_folder_without_a_network_has_no_address(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=r"none of model\.onnx, model\.safetensors is there"):
        address(tmp_path)


def test_checksums_do_not_bind_the_card(tmp_path: Path) -> None:
    folder = model(tmp_path / "one")
    FULL.save(folder)
    write_checksums(folder)
    assert set(json.loads((folder / "checksums.json").read_text())) == {"model.onnx", "config.json"}
