"""Do people get answers from documents in twelve languages, by default and by the pair of many languages?

    bench/run languages [--pair READER ENCODER]

languages/LANG.json have three documents and ten questions each, written for this and learnt from by nobody: six in the
language (near the text, aloud, keywords, other words), two that nothing answers, and two in English (`across`). An
answer is right if it is one of those listed, or has it among at most WORDS more words.
"""

import argparse
import asyncio
import json
from collections import defaultdict
from pathlib import Path

from common import ROOT, settings_of, temporary_cluster, wait_until_encoded

from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.loader.push import push_pair
from shardqa.models import metrics
from shardqa.schema import Answer, Document

SETS = sorted((ROOT / "bench" / "languages").glob("*.json"))
WORDS = 25


def is_right(answer: Answer, accepted: list[str]) -> bool:
    """Chinese and Japanese have no blanks: there a listed answer may stand anywhere in as many letters more."""
    given = metrics.normalise(answer.answer or "")
    for one in map(metrics.normalise, accepted):
        if f" {one} " in f" {given} " and len(given.split()) <= len(one.split()) + WORDS:
            return True
        if not one.isascii() and " " not in given and one in given and len(given) <= len(one) + 2 * WORDS:
            return True
    return False


async def _put(cluster: LocalCluster, pair: list[Path]) -> None:
    async with await Engine.connect(settings_of(cluster)) as engine:
        if pair:
            await push_pair(engine, *pair)
        for file in SETS:
            for one in json.loads(file.read_text("utf-8"))["documents"]:
                await engine.documents.put(Document(id=one["id"], text=one["text"], corpus=file.stem))


async def _ask(cluster: LocalCluster) -> None:
    outcomes = defaultdict[str, list[bool]](list)
    async with await Engine.connect(settings_of(cluster)) as engine:
        for file in SETS:
            for one in json.loads(file.read_text("utf-8"))["questions"]:
                answer = await engine.ask(one["question"], corpus=file.stem)
                right = is_right(answer, one["answers"]) if one["answers"] else answer.no_answer
                for name in (file.stem, one["kind"]):
                    outcomes[name].append(right)
                shown = [file.stem, one["kind"], right, one["question"], answer.answer, round(answer.score, 2)]
                print(json.dumps(shown, ensure_ascii=False))
    for name, values in outcomes.items():
        print(f"{name}: {sum(values)} of {len(values)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pair", nargs=2, type=Path, default=[], metavar=("READER", "ENCODER"))
    options = parser.parse_args()
    with temporary_cluster(1, vectors=True) as cluster:
        asyncio.run(_put(cluster, options.pair))
        for file in SETS:
            wait_until_encoded(cluster, file.stem)
        asyncio.run(_ask(cluster))


if __name__ == "__main__":
    main()
