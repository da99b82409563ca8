"""`shardqa-models candidates`, `calibrate`, `measure`: from logits to probabilities, and how good a reader is."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from shardqa.answer_lines import AnswerWhen
from shardqa.cli.options import JsonOption
from shardqa.cli.output import print_json, print_table, say
from shardqa.models import shipped
from shardqa.models.scoring import SCORING_FILE, Scoring

if TYPE_CHECKING:
    from shardqa_toolchain import calibrate as fitting

ReaderArgument = Annotated[Path, typer.Argument(help="Folder of an ONNX reader.")]
ThreadsOption = Annotated[int, typer.Option("--threads", help="Threads of the network.", min=1)]


def candidates(
    reader: ReaderArgument,
    out: Annotated[Path, typer.Option("--out", help="File to write, JSON lines.")],
    squad: Annotated[list[Path], typer.Option("--squad", help="SQuAD files; the first has the documents.")],
    held_out: Annotated[
        float | None,
        typer.Option("--held-out", help="Ask only about this share of the articles, as training's held_out."),
    ] = None,
    paragraphs: Annotated[int, typer.Option("--paragraphs", help="Documents to take.", min=1)] = 3000,
    limit: Annotated[int, typer.Option("--limit", help="Questions of each kind.", min=1)] = 1000,
    k: Annotated[int, typer.Option("--k", help="Passages read per question.", min=1, max=100)] = 5,
    encoder: Annotated[
        Path | None, typer.Option("--encoder", help="Folder of the encoder whose vectors rank, too.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random choice.")] = 0,
    threads: ThreadsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Write the reader's candidates for many questions, found as the shards find them: the input of calibrate.

    Example: shardqa-models candidates my-reader-int8 --squad train-v2.0.json.gz --held-out 0.02 --out found.jsonl
    """
    from shardqa_toolchain.cli import candidates as sampling

    sample = sampling.articles(squad, paragraphs, limit, held_out, seed)
    passages = sampling.write([sample], reader, out, k, threads, encoder)
    questions = len(sample.questions)
    if as_json:
        print_json({"questions": questions, "passages": passages, "out": str(out)})
        return
    say(f"{questions} questions over {passages} passages; wrote {out}")
    say(f"next: shardqa-models calibrate {reader} --candidates {out}")


def calibrate(
    reader: ReaderArgument,
    files: Annotated[list[Path], typer.Option("--candidates", help="What 'shardqa-models candidates' wrote.")],
    test: Annotated[
        list[Path] | None, typer.Option("--test", help="More such files; the report covers them, the fit does not.")
    ] = None,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Leave the span's model and the order of candidates as they are.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Fit the reader's scores to probabilities, choose the lines below which nothing is answered, write scoring.json.

    Several domains: the report has each one left out of the fit, then inside it.

    Example: shardqa-models calibrate my-reader-int8 --candidates found.jsonl
    """
    from shardqa_toolchain import calibrate as fitting

    questions = [question for path in files for question in fitting.read_candidates(path)]
    tests = [question for path in test or [] for question in fitting.read_candidates(path)]
    own = Scoring.load(reader) if keep_order or (reader / SCORING_FILE).exists() else None
    base = own if keep_order else None
    scoring = fitting.fit(questions, base)
    if own is not None:
        scoring = replace(scoring, evidence=own.evidence, sentences=own.sentences, sentences_below=own.sentences_below)
    sentences = [question for path in files for question in fitting.read_sentences(path, scoring.evidence)]
    if any(one.found for one in sentences):
        scoring = fitting.fit_sentences(sentences, scoring)
    results = {
        "left out": list(fitting.left_out(questions, base=base)),
        "sentences, left out": list(fitting.left_out(sentences, base=scoring)),
        **{when: list(fitting.outcomes(scoring, [*questions, *tests], when)) for when in get_args(AnswerWhen)},
    }
    scoring.save(reader)
    shipped.write_checksums(reader)
    if as_json:
        outcomes = {name: [asdict(one) for one in domains] for name, domains in results.items()}
        print_json({"scoring": scoring.record(), "outcomes": outcomes})
        return
    say(f"wrote {reader / SCORING_FILE}: {scoring}")
    print_table(
        ("fit", "domain", "right %", "given right %", "kept %", "refused %", "tricks %", "twins %", "AUROC", "error"),
        [(name, *_row(one)) for name, domains in results.items() for one in domains],
    )
    say("calibration, left out: mean score against share right (share of the questions), in bins of a tenth")
    print_table(
        ("fit", "domain", "bins"),
        [
            (name, one.domain, " ".join(f"{mean:.2f}/{right:.2f} ({share:.0%})" for mean, right, share in one.bins))
            for name in ("left out", "sentences, left out")
            for one in results[name]
        ],
    )


def calibrate_evidence(
    reader: ReaderArgument,
    files: Annotated[
        list[Path], typer.Argument(help="JSON lines with marked sentences; rows of the split train count.")
    ],
    test: Annotated[
        list[Path] | None, typer.Option("--test", help="More such files; the report covers all their rows.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="Rows of each file, evenly spread.", min=1)] = 500,
    threads: ThreadsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Fit how likely a sentence is evidence; write it into scoring.json.

    The report has the word F1 on each file by a fit without it.

    Example: shardqa-models calibrate-evidence my-reader-int8 news.jsonl.gz tables.jsonl.gz
    """
    from shardqa_toolchain import evidence_calibration
    from shardqa_toolchain.cli import marked
    from shardqa_toolchain.cli.marked_texts import MarkedTexts
    from shardqa_toolchain.evidence_lines import TRAIN

    texts = MarkedTexts(reader, threads)
    learnt = {file.name: marked.rows(texts, file, TRAIN, limit) for file in files}
    tests = {file.name: marked.rows(texts, file, None, limit) for file in test or []}
    scoring = replace(texts.scoring, evidence=evidence_calibration.fit(learnt))
    outcomes = list(evidence_calibration.left_out(learnt, tests))
    scoring.save(reader)
    shipped.write_checksums(reader)
    if as_json:
        print_json({"evidence": asdict(scoring.evidence), "outcomes": [asdict(one) for one in outcomes]})
        return
    say(f"wrote {reader / SCORING_FILE}: {scoring.evidence}")
    print_table(
        ("file", "rows", "word F1, left out"),
        [(one.file, str(one.rows), f"{one.f1:.1f}") for one in outcomes],
    )


def _row(outcome: fitting.ScoringOutcome) -> tuple[str, ...]:
    others = ("" if one is None else f"{one:.1f}" for one in (outcome.tricks_refused, outcome.twins_refused))
    auroc = "" if outcome.auroc is None else f"{outcome.auroc:.3f}"
    shares = (f"{share:.1f}" for share in (outcome.right, outcome.given_right, outcome.kept, outcome.refused))
    return (outcome.domain, *shares, *others, auroc, f"{outcome.calibration_error:.3f}")


def measure(
    reader: ReaderArgument,
    questions: Annotated[Path, typer.Argument(help="SQuAD file, or evidence lines (.jsonl); .gz too.")],
    limit: Annotated[
        int | None, typer.Option("--limit", help="Questions drawn at random; all unless given.", min=1)
    ] = None,
    threads: ThreadsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Measure a reader given the right paragraph: EM and F1 of the answerable, and with refusals as SQuAD 2.0 does.

    Of evidence lines: precision, recall and F1 of the words in sentences that answer, and the AUROC of relevance.

    Example: shardqa-models measure my-reader-int8 dev-v2.0.json.gz --limit 500
    """
    from shardqa_toolchain import measure as reading
    from shardqa_toolchain import no_answer_metrics
    from shardqa_toolchain.evidence_lines import is_lines

    if is_lines(questions):
        _measure_evidence(reader, questions, limit, threads, as_json)
        return
    reads = list(reading.read_all(reader, questions, limit, threads))
    answerable = [one for one in reads if one.question.answers]
    always = reading.scores(answerable) if answerable else None
    refusing = (
        no_answer_metrics.no_answer_metrics(reads, Scoring.load(reader)) if (reader / SCORING_FILE).exists() else None
    )
    if as_json:
        print_json({"forced": always and asdict(always), "with_refusals": refusing and asdict(refusing)})
        return
    rows: list[tuple[str, ...]] = []
    if always:
        rows.append(("always answered", str(always.questions), f"{always.exact_match:.2f}", f"{always.f1:.2f}", "", ""))
    if refusing:
        error = f"{refusing.calibration_error:.3f}"
        scores = (f"{refusing.exact_match:.2f}", f"{refusing.f1:.2f}", f"{refusing.refused:.1f}", error)
        rows.append((f"below {refusing.threshold} refused", str(refusing.questions), *scores))
    print_table(("", "questions", "EM", "F1", "refused %", "calibration error"), rows)


def _measure_evidence(reader: Path, questions: Path, limit: int | None, threads: int, as_json: bool) -> None:
    from shardqa_toolchain import measure_evidence

    scores = measure_evidence.measure(reader, questions, limit, threads)
    if as_json:
        print_json(asdict(scores))
        return
    auroc = "" if scores.relevance_auroc is None else f"{scores.relevance_auroc:.3f}"
    words = scores.words
    shares = (f"{share:.1f}" for share in (words.precision, words.recall, words.f1))
    print_table(("questions", "precision", "recall", "word F1", "AUROC"), [(str(words.rows), *shares, auroc)])
    if scores.too_long:
        say(f"{scores.too_long} questions are too long for the reader and were left out")
