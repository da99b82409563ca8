"""`shardqa models candidates`, `calibrate`, `measure`: from logits to probabilities, and how good a reader is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from shardqa.commands.connection import JsonOption
from shardqa.commands.models import candidates as sampling
from shardqa.commands.output import print_json, print_table, say
from shardqa.errors import BadData
from shardqa.models import calibrate as fitting
from shardqa.models import measure as reading
from shardqa.models import refusal, shipped
from shardqa.models.scoring import SCORING_FILE, Scoring

ReaderArgument = Annotated[Path, typer.Argument(help="Folder of an ONNX reader.")]
ThreadsOption = Annotated[int, typer.Option("--threads", help="Threads of the network.", min=1)]


def candidates(
    reader: ReaderArgument,
    out: Annotated[Path, typer.Option("--out", help="File to write, JSON lines.")],
    squad: Annotated[
        list[Path] | None, typer.Option("--squad", help="SQuAD files; the first has the documents.")
    ] = None,
    seeds: Annotated[Path | None, typer.Option("--seeds", help="A folder like seeds/ instead.")] = None,
    held_out: Annotated[
        float | None,
        typer.Option("--held-out", help="Ask only about this share of the articles, as training's held_out."),
    ] = None,
    paragraphs: Annotated[int, typer.Option("--paragraphs", help="Documents to take.", min=1)] = 3000,
    limit: Annotated[int, typer.Option("--limit", help="Questions of each kind.", min=1)] = 1000,
    k: Annotated[int, typer.Option("--k", help="Passages read per question.", min=1, max=100)] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Of what is drawn.")] = 0,
    threads: ThreadsOption = 1,
) -> None:
    """Write what the reader finds for many questions, ranked and read as the shards do: the input of calibrate.

    Example: shardqa models candidates my-reader-int8 --squad train-v2.0.json.gz --held-out 0.02 --out found.jsonl
    """
    if bool(squad) == bool(seeds):
        raise BadData("give either --squad or --seeds")
    sample = sampling.seeds(seeds) if seeds else sampling.articles(squad or [], paragraphs, limit, held_out, seed)
    passages = sampling.write(sample, reader, out, k, threads)
    say(f"{len(sample.questions)} questions over {passages} passages; wrote {out}")
    say(f"next: shardqa models calibrate {reader} --candidates {out}")


def calibrate(
    reader: ReaderArgument,
    found: Annotated[Path, typer.Option("--candidates", help="What 'shardqa models candidates' wrote.")],
    test: Annotated[list[Path] | None, typer.Option("--test", help="More such files, only to report on.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit the reader's scores to probabilities, choose the line below which nothing is answered, write scoring.json.

    Example: shardqa models calibrate my-reader-int8 --candidates found.jsonl
    """
    asked = fitting.read_candidates(found)
    scoring = fitting.fit(asked)
    scoring.save(reader)
    shipped.write_checksums(reader)
    results = {str(path): fitting.outcome(scoring, fitting.read_candidates(path)) for path in [found, *(test or [])]}
    if as_json:
        print_json({"scoring": asdict(scoring), "outcomes": {path: asdict(one) for path, one in results.items()}})
        return
    say(f"wrote {reader / SCORING_FILE}: {scoring}")
    print_table(
        ("file", "answered right %", "refused %", "calibration error %"),
        [
            (path, f"{one.answered_right:.1f}", f"{one.refused:.1f}", f"{one.calibration_error:.1f}")
            for path, one in results.items()
        ],
    )


def measure(
    reader: ReaderArgument,
    questions: Annotated[Path, typer.Argument(help="SQuAD file, .json or .json.gz.")],
    limit: Annotated[
        int | None, typer.Option("--limit", help="Questions drawn at random; all unless given.", min=1)
    ] = None,
    threads: ThreadsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Measure a reader given the right paragraph: EM and F1 of the answerable, and with refusals as SQuAD 2.0 does.

    Example: shardqa models measure my-reader-int8 dev-v2.0.json.gz --limit 500
    """
    reads = list(reading.read_all(reader, questions, limit, threads))
    answerable = [one for one in reads if one.question.answers]
    forced = reading.scores(answerable) if answerable else None
    refused = refusal.refusals(reads, Scoring.load(reader)) if (reader / SCORING_FILE).exists() else None
    if as_json:
        print_json({"forced": forced and asdict(forced), "with_refusals": refused and asdict(refused)})
        return
    rows: list[tuple[str, ...]] = []
    if forced:
        rows.append(("always answered", str(forced.questions), f"{forced.exact_match:.2f}", f"{forced.f1:.2f}", "", ""))
    if refused:
        error = f"{refused.calibration_error:.3f}"
        scores = (f"{refused.exact_match:.2f}", f"{refused.f1:.2f}", f"{refused.refused:.1f}", error)
        rows.append((f"below {refused.threshold} refused", str(refused.questions), *scores))
    print_table(("", "questions", "EM", "F1", "refused %", "calibration error"), rows)
