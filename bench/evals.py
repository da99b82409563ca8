"""Recall of documents and scores of answers, end to end through real clusters of 1 and 3 shards.

SQuAD 1.1 dev: recall over all 10,570 questions, which must not depend on the number of shards; EM and F1 over 1,000.
Then the questions of seeds/, with those that the documents don't answer. Skips SQuAD where it is absent.
"""

import json
import subprocess
import sys
from typing import Any

from common import ROOT, SHARED, settings_of, temporary_cluster, wait_until_encoded

from shardqa import machine
from shardqa.cluster.local import LocalCluster

SQUAD = SHARED / "data" / "squad" / "dev-v1.1.json.gz"
SEEDS = ROOT / "seeds"


def call(cluster: LocalCluster, *words: str) -> Any:
    program = "shardqa_toolchain" if words[0] == "eval" else "shardqa"
    command = [sys.executable, "-m", program, *words, "--json", "--redis", settings_of(cluster).redis]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def squad(cluster: LocalCluster, shards: int, file: str) -> None:
    found = call(cluster, "eval", "retrieval", file)
    recalls = "  ".join(f"@{n} {found[f'recall_at_{n}']:.2f}" for n in (1, 5, 20))
    print(f"  recall, {shards} shards, {found['questions']} questions: {recalls}  MRR {found['mrr']:.4f}", flush=True)
    if shards == 1:
        return
    answered = call(cluster, "eval", "ask", file, "--limit", "1000", "--k", "5")
    forced, free = (f"EM {answered[f'em{kind}']} F1 {answered[f'f1{kind}']}" for kind in ("_forced", ""))
    refused = 100 - answered["answered"]
    print(f"  answers, {answered['questions']} questions, k=5: {forced} when each is answered", flush=True)
    print(f"  the same with {refused:.1f} % refused as the model sees fit: {free}", flush=True)


def seeds(cluster: LocalCluster) -> None:
    call(cluster, "ingest", str(SEEDS / "documents"), "--corpus", "seeds")
    wait_until_encoded(cluster, "seeds")
    found = call(cluster, "eval", "ask", str(SEEDS / "questions.jsonl"), "--corpus", "seeds")
    print(
        f"  seeds, {found['questions']} questions: {found['right']} % of {found['answerable']} answerable ones right, "
        f"{found['refused']} % of the others refused",
        flush=True,
    )


def main() -> None:
    print(
        f"end to end, {machine.label()} (wanted: recall 76.8 92.2 96.9, EM 60 F1 72, seeds 85 % right and 80 % refused)"
    )
    for shards in (1, 3):
        with temporary_cluster(shards=shards, vectors=True) as cluster:
            if SQUAD.is_file():
                squad(cluster, shards, str(SQUAD))
            else:
                print(f"  skipped: {SQUAD} is not here")
            if shards == 3:
                seeds(cluster)


if __name__ == "__main__":
    main()
