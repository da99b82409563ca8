"""MPNets (Song et al. 2020) as checkpoints to train and to teach: BERT's wordpieces under BERT's numbers.

MPNet cuts text into the wordpieces of BERT's uncased vocabulary, but numbers them otherwise and has special tokens of
other names. Written in the numbers of a reader's own tokenizer, its logits stand at the reader's tokens, which is what
a teacher needs; nothing else of the way through rows, windows and spans has to know.
"""

import json
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from shardqa.errors import BadModel
from shardqa.models.shipped import sha256
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain import cards
from shardqa_toolchain.conversion.checkpoint import CONFIG_FILE, WEIGHTS_FILE, Checkpoint
from shardqa_toolchain.conversion.families import MPNET, RELATIVE
from shardqa_toolchain.folders import written_atomically

# BERT's special tokens and what MPNet calls them; its rows for BERT's own names were never learnt.
SPECIAL = {"[CLS]": "<s>", "[SEP]": "</s>", "[PAD]": "<pad>", "[MASK]": "<mask>"}

# Rows before the first token's in MPNet's table of places: numbers up to the padding's are not used.
RESERVED_PLACES = 2

WORDS = "bert.embeddings.word_embeddings.weight"
PLACES = "bert.embeddings.position_embeddings.weight"


def adopt(source: Path, words: Path, out: Path) -> None:
    """Write the MPNet in ``source`` to ``out`` as a checkpoint with the tokenizer of ``words``.

    It can be trained (`qa.train`) and can teach readers with that tokenizer (`distil.distil`). Raises BadModel for a
    source that is no MPNet or lacks a wordpiece of the tokenizer, SetupError for a full disk.
    """
    start = Checkpoint.load(source, also=(MPNET, RELATIVE))
    if json.loads((source / CONFIG_FILE).read_text(encoding="utf-8")).get("model_type") != MPNET:
        raise BadModel(f"{source} is a BERT already; give it to `shardqa-models train qa --start` as it is")
    rows = rows_of(vocabulary(words), vocabulary(source), source)
    if max(rows) >= len(start.weights[WORDS]):
        raise BadModel(f"{source}: {TOKENIZER_FILE} numbers more wordpieces than {WEIGHTS_FILE} has rows for")
    weights = {name: value for name, value in start.weights.items() if name.startswith("bert.")}
    weights[WORDS] = weights[WORDS][rows]
    weights[PLACES] = weights[PLACES][RESERVED_PLACES:]
    settings = {
        "architectures": ["BertModel"],
        "vocab_size": len(rows),
        "max_position_embeddings": len(weights[PLACES]),
    }
    with written_atomically(out) as folder:
        save_file(weights, folder / WEIGHTS_FILE, {"format": "pt"})
        text = json.dumps({**start.config, **settings}, indent=2)
        (folder / CONFIG_FILE).write_text(text + "\n", encoding="utf-8")
        shutil.copyfile(words / TOKENIZER_FILE, folder / TOKENIZER_FILE)
        step = cards.CardStep("adopt", {"words": sha256(words / TOKENIZER_FILE)})
        cards.derive(source, folder, step, out.name)


def vocabulary(folder: Path) -> dict[str, int]:
    """The wordpieces of a folder's ``tokenizer.json`` and their numbers; raises BadModel where it has none."""
    path = folder / TOKENIZER_FILE
    try:
        pieces = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadModel(f"{path} has no vocabulary of wordpieces ({error}); save the tokenizer again") from None
    if not isinstance(pieces, dict) or sorted(pieces.values()) != list(range(len(pieces))):
        raise BadModel(f"{path} does not number its wordpieces from 0 on; a WordPiece tokenizer is needed")
    return pieces


def rows_of(words: dict[str, int], own: dict[str, int], source: Path) -> NDArray[np.int64]:
    """Returns, for each number of the vocabulary ``words``, the row of the same wordpiece in ``own``, int64 [words]."""
    rows = np.zeros(len(words), dtype=np.int64)
    for piece, number in words.items():
        theirs = SPECIAL.get(piece, piece)
        if theirs not in own:
            raise BadModel(
                f"{source / TOKENIZER_FILE} lacks the wordpiece {theirs!r}; it must have all of the reader's"
            )
        rows[number] = own[theirs]
    return rows
