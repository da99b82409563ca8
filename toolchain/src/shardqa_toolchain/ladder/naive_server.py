"""The naive way: three networks of transformers, one for each task, in one web process.

python -m shardqa_toolchain.ladder.naive_server READER CLASSIFIER TAGGER    # POST {"question", "passage"}
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

import torch
import transformers
import uvicorn
from fastapi import FastAPI


def main() -> None:
    """Answers until it is ended; its port is a free one, which is printed."""
    torch.set_num_threads(1)
    tokenizer: Any = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{sys.argv[1]}/tokenizer.json")  # type: ignore[no-untyped-call]
    kinds = (
        transformers.AutoModelForQuestionAnswering,
        transformers.AutoModelForSequenceClassification,
        transformers.AutoModelForTokenClassification,
    )
    networks: list[Any] = [
        kind.from_pretrained(folder, dtype=torch.float32).eval()
        for kind, folder in zip(kinds, sys.argv[1:4], strict=True)
    ]
    app = FastAPI()

    def answer(event: dict[str, str]) -> dict[str, Any]:
        tokens = tokenizer(event["question"], event["passage"], return_tensors="pt", return_token_type_ids=True)
        with torch.inference_mode():
            span, answerable, evidence = (network(**tokens) for network in networks)
        first, last = int(span.start_logits.argmax()), int(span.end_logits.argmax())
        text = tokenizer.decode(tokens["input_ids"][0, first : last + 1])
        shares = evidence.logits.softmax(-1)[0, :, 1].tolist()
        return {"answer": text, "answerable": answerable.logits.softmax(-1)[0].tolist(), "evidence": shares}

    app.post("/")(answer)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        print(json.dumps({"port": listening.getsockname()[1]}), flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listening])


if __name__ == "__main__":
    main()
