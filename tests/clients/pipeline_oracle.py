"""Hugging Face's own question-answering pipeline, of transformers 4; run by the interpreter that has it.

    python pipeline_oracle.py CHECKPOINT CALLS OUT     # CALLS: JSON, a list of keyword arguments

Writes what each call gives, and the seconds that all took after one to warm up.
"""

import json
import sys
import time
import warnings
from pathlib import Path


def main(checkpoint: str, calls: str, out: str) -> None:
    import torch
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer, pipeline

    warnings.simplefilter("ignore")
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForQuestionAnswering.from_pretrained(checkpoint, dtype=torch.float32)
    answer = pipeline("question-answering", model=model, tokenizer=tokenizer, device="cpu")
    given = json.loads(Path(calls).read_text())
    answer(**given[0])
    began = time.perf_counter()
    results = [answer(**call) for call in given]
    Path(out).write_text(json.dumps({"seconds": time.perf_counter() - began, "results": results}))


if __name__ == "__main__":
    main(*sys.argv[1:])
