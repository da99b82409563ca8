"""Our smallest server taken up part by part, with what is resident noted after each: where each megabyte is.

python -m shardqa_toolchain.ladder.account FOLDER    # a line of JSON: MB by part
"""

import importlib
import json
import os
import sys
from pathlib import Path

PARTS = (
    ("numpy", ("numpy",)),
    ("tokenizers", ("tokenizers",)),
    ("onnxruntime", ("onnxruntime",)),
    ("shardqa's code", ("shardqa_toolchain.packaging.serving",)),
    ("Python's HTTP", ("http.server",)),
)


def main() -> None:
    """Measures and prints."""
    sizes = {"Python": resident()}

    def note(part: str) -> None:
        sizes[part] = resident() - sum(sizes.values())

    for part, modules in PARTS:
        for module in modules:
            importlib.import_module(module)
        note(part)
    from shardqa.machine import release_freed
    from shardqa.models.reader import join
    from shardqa.models.tokenizer import Tokenizer
    from shardqa_toolchain.packaging.server import small_session

    folder = Path(sys.argv[1])
    tokenizer = Tokenizer.load(folder)
    release_freed()
    note("vocabulary")
    session = small_session(folder)
    release_freed()
    note("session")
    session.read([join(tokenizer.question("Who?"), tokenizer.passage("The reed beds " * 40).ids)])
    note("weights that a row touches, and its own memory")
    print(json.dumps({part: round(size, 1) for part, size in sizes.items()}), flush=True)


def resident() -> float:
    """MB of this process that lie in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


if __name__ == "__main__":
    main()
