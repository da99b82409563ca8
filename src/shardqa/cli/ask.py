"""`shardqa ask`: one question, its answer in its sentence."""

import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from shardqa.answer_forms import FormChoice
from shardqa.answer_lines import AnswerWhen, verdict
from shardqa.cli.connection import filter_of, with_engine
from shardqa.cli.options import CorpusOption, FilterOption, JsonOption, KOption, SourceOption, Target, on_cluster
from shardqa.cli.output import NOTHING, PARTLY, out, print_json, say
from shardqa.schema import Answer, Candidate, Part

if TYPE_CHECKING:  # imported where they are used
    from shardqa.engine import Engine

SENTENCE_END = re.compile(r"(?<=[.!?؟।۔。！？])[\"'”’)\]]*\s+|\n{2,}")
MARKS = ("»", "«")  # around the answer where there is no colour


@on_cluster
def ask(
    target: Target,
    question: Annotated[str, typer.Argument(help="A question in plain words; - reads one a line from stdin.")],
    corpus: CorpusOption = None,
    k: KOption = None,
    n_best: Annotated[int, typer.Option("--n-best", help="Candidates to show.")] = 3,
    min_score: Annotated[
        float | None, typer.Option("--min-score", help="Least score of an answer.", show_default=False)
    ] = None,
    answer_when: Annotated[
        AnswerWhen | None, typer.Option("--when", help="When to answer: how sure it must be.", show_default=False)
    ] = None,
    form: Annotated[FormChoice, typer.Option("--form", help="What to answer: a span, sentences or a list.")] = "auto",
    filter_: FilterOption = None,
    source: SourceOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute it even when it is cached.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a question; prints the answer in its sentence, its document, score and times. Exits with 1 without an answer.

    Example: shardqa ask "How deep is Lake Ysolde?" --corpus seeds
    """
    settings = target.settings(corpus=corpus)
    documents = filter_of(filter_, source)
    lines = [one.strip() for one in sys.stdin] if question == "-" else [question]
    texts = [one for one in lines if one] or [""]
    codes = set[int]()

    async def answered(engine: "Engine") -> None:
        for n, text in enumerate(texts):
            answer = await engine.ask(
                text,
                k=k,
                n_best=n_best,
                min_score=min_score,
                answer_when=answer_when,
                form=form,
                fresh=fresh,
                filter=documents,
            )
            if as_json:
                print_json(answer.model_dump(mode="json"))
            else:
                out.print(end="\n" * bool(n))
                show(answer, names_corpus="corpus" not in settings.model_fields_set)
            for warning in answer.warnings if as_json else ():
                say(f"warning: {warning}")
            codes.add(PARTLY if answer.partial else NOTHING if answer.no_answer else 0)

    with_engine(settings, answered)
    if max(codes):
        raise typer.Exit(max(codes))


def show(answer: Answer, names_corpus: bool = False) -> None:
    _line("question", Text(answer.question))
    if names_corpus:
        _line("corpus", Text(answer.corpus))
    if answer.corrected:
        _line("read as", Text(", ".join(f'{word} for "{slip}"' for slip, word in answer.corrected.items())))
    if answer.answer is not None and answer.absent:
        _line("beware", Text(f"no passage mentions {' or '.join(answer.absent)}", style="yellow"))
    if answer.answer is None or answer.start is None or answer.passage is None or answer.passage_start is None:
        _show_unsure(answer)
    elif answer.form != "span":
        for n, part in enumerate(answer.parts):
            _line("" if n else "answer", Text(_one_line(part.quote), style="bold green"))
            _line("in", Text(_where(part, answer)))
    else:
        start = answer.start - answer.passage_start
        _line("answer", Text(answer.answer, style="bold green"))
        if answer.place is not None and answer.place.cells:
            _line("row", Text(" | ".join(": ".join(filter(None, cell)) for cell in answer.place.cells)))
        else:
            _line("in", sentence(answer.passage, start, start + len(answer.answer)))
        _line("document", Text(_where(answer, answer)))
        for more in further(answer):
            _line("because", Text(more))
    _line("score", Text(_score(answer)))
    for candidate in filter(lambda one: one.possible, answer.n_best):
        _line("also", _candidate(candidate, answer))
    _line("time", Text(times(answer)))
    for warning in answer.warnings:
        _line("warning", Text(warning, style="yellow"))
    if answer.partial:
        _line("partial", Text(f"without the documents of {', '.join(answer.failed)}", style="bold red"))


def _named(part: Part | Answer | Candidate, answer: Answer) -> str:
    """Returns the document's name, with its corpus where several were asked."""
    corpus = part.document_corpus if isinstance(part, Answer) else part.corpus
    return f"{corpus}: {part.document}" if "," in answer.corpus else str(part.document)


def _where(part: Part | Answer, answer: Answer) -> str:
    place = f", {part.place}" if part.place is not None else ""
    is_row = part.place is not None and part.place.cells
    characters = "" if is_row else f", characters {part.start} to {part.end}"
    return f"{_named(part, answer)}{place} ({part.title}){characters}"


def _show_unsure(answer: Answer) -> None:
    """Shows that no answer is sure, and the best sentences, which may hold it."""
    _line("answer", Text(verdict(answer.absent, answer.parts), style="bold yellow"))
    for part in answer.parts:
        where = f", {part.place}" if part.place is not None else ""
        _line("perhaps", Text(f"{_one_line(part.quote)} ({part.score:.3f}, {_named(part, answer)}{where})"))


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def further(answer: Answer) -> list[str]:
    """Returns the evidence besides the answer's own sentence."""
    assert answer.start is not None, "only an answer has evidence"
    return [_one_line(one.quote) for one in answer.parts if not one.start <= answer.start < one.end]


def _score(answer: Answer) -> str:
    if answer.pinned:
        return "none: somebody has pinned this place to the question"
    return f"{answer.score:.3f}" if answer.answer is not None else f"{answer.score:.3f}, below {answer.needed:g}"


def _line(name: str, value: Text) -> None:
    out.print(Text.assemble((f"{name:<10}", "dim"), value))


def _candidate(candidate: Candidate, answer: Answer) -> Text:
    where = f", {candidate.place}" if candidate.place is not None else ""
    return Text(f"{candidate.answer} ({candidate.score:.3f}, {_named(candidate, answer)}{where})")


def times(answer: Answer) -> str:
    if answer.cached:
        return f"{answer.timing.total:.1f} ms (from the cache of {answer.cache})"
    phases = answer.timing
    return f"{phases.total:.1f} ms (terms {phases.terms:.1f}, rank {phases.rank:.1f}, read {phases.read:.1f})"


def sentence(passage: str, start: int, end: int) -> Text:
    """Returns the sentence around the answer, with the answer highlighted."""
    first, last = 0, len(passage)
    for match in SENTENCE_END.finditer(passage):
        if match.end() <= start:
            first = match.end()
        elif match.start() >= end:
            last = match.start()
            break
    before, answer, after = (
        re.sub(r"\s+", " ", part) for part in (passage[first:start], passage[start:end], passage[end:last])
    )
    if out.is_terminal:
        return Text.assemble(before, (answer, "bold reverse green"), after)
    return Text(f"{before}{MARKS[0]}{answer}{MARKS[1]}{after}")
