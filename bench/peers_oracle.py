"""The peers' readers, run by the interpreter that has them: `python peers_oracle.py CHECKPOINT QUESTIONS OUT`.

QUESTIONS is JSON, a list of {"question", "passages": [text, ...]}; OUT gets, by peer, the seconds of each question and
its best answer. The peers take turns, question by question, after one to warm up.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
Peer = Callable[[str, list[str]], str]


def pipeline(checkpoint: str) -> Peer:
    """Hugging Face's: one call with all contexts, the best of their answers."""
    theirs: Any = import_module("transformers")
    tokenizer = theirs.AutoTokenizer.from_pretrained(checkpoint)
    model = theirs.AutoModelForQuestionAnswering.from_pretrained(checkpoint)
    answer = theirs.pipeline("question-answering", model=model, tokenizer=tokenizer, device="cpu")

    def ask(question: str, passages: list[str]) -> str:
        found = answer(question=[question] * len(passages), context=passages)
        return str(max(found, key=lambda one: one["score"])["answer"])

    return ask


def haystack(checkpoint: str) -> Peer:
    """Haystack 2's ExtractiveReader."""
    document: Any = import_module("haystack").Document
    readers: Any = import_module("haystack.components.readers")
    reader = readers.ExtractiveReader(model=checkpoint, top_k=5, no_answer=False)
    reader.warm_up()

    def ask(question: str, passages: list[str]) -> str:
        found = reader.run(query=question, documents=[document(content=text) for text in passages])
        return str(found["answers"][0].data)

    return ask


def main(checkpoint: str, questions: str, out: str) -> None:
    warnings.simplefilter("ignore")
    peers = {"transformers' pipeline": pipeline(checkpoint), "Haystack's ExtractiveReader": haystack(checkpoint)}
    results: dict[str, list[Any]] = {name: [] for name in peers}
    tasks = json.loads(Path(questions).read_text())
    for number, one in enumerate([tasks[0], *tasks]):
        for name, ask in peers.items():
            began = time.perf_counter()
            best = ask(one["question"], one["passages"])
            if number:
                results[name].append((time.perf_counter() - began, best))
    Path(out).write_text(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
