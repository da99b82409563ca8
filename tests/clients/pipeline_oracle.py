"""Hugging Face's own question-answering pipeline, of transformers 4; run by the interpreter that has it.

    python pipeline_oracle.py CHECKPOINT CALLS OUT     # CALLS: JSON, a list of keyword arguments

Writes what each call gives, and the seconds that all took after one to warm up.
"""

import json
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any


def main(checkpoint: str, calls: str, out: str) -> None:
    import torch

    theirs: Any = import_module("transformers")  # of another version than ours, which type checkers see
    warnings.simplefilter("ignore")
    tokenizer = theirs.AutoTokenizer.from_pretrained(checkpoint)
    model = theirs.AutoModelForQuestionAnswering.from_pretrained(checkpoint, dtype=torch.float32)
    answer = theirs.pipeline("question-answering", model=model, tokenizer=tokenizer, device="cpu")
    given = json.loads(Path(calls).read_text())
    answer(**given[0])
    began = time.perf_counter()
    results = [answer(**call) for call in given]
    Path(out).write_text(json.dumps({"seconds": time.perf_counter() - began, "results": results}))


if __name__ == "__main__":
    main(*sys.argv[1:])
