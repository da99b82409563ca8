"""`shardqa-models eval`: how well documents are found and questions answered, end to end, by SQuAD's own rules."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

import numpy as np
import typer
from rich.progress import track

from shardqa.cli.connection import with_engine
from shardqa.cli.faults import WrongSetting
from shardqa.cli.options import CorpusOption, JsonOption, Target, on_cluster
from shardqa.cli.output import NOTHING, err, print_json, print_table, say
from shardqa.engine import Engine
from shardqa.errors import BadData, ClusterUnavailable, UnknownCorpus
from shardqa.files.formats.squad import readable
from shardqa.files.source_file import Item
from shardqa.loader.ingest import ingest
from shardqa.loader.tasks import run_all
from shardqa.models import metrics
from shardqa.retry import retry
from shardqa.schema import Document
from shardqa_toolchain import intervals, squad
from shardqa_toolchain.intervals import Interval
from shardqa_toolchain.squad import QuestionSet, SquadQuestion

CONCURRENCY = 4  # questions in flight: two cores are busy with two, two more keep the batches filled
RANK_LIMIT = 100  # passages asked for, so that 20 documents stay when several passages are of one document
RIGHT_F1 = 0.8  # overlap from which an answer counts as right
SLICES = 6  # first words of questions that are told apart
FAILOVER_SECONDS = 60.0  # seconds for a shard that is busy or fails over

app = typer.Typer(help="Measure retrieval and answers on a file of questions.", no_args_is_help=True)
Result = TypeVar("Result")

FileArgument = Annotated[
    Path | None,
    typer.Argument(help="SQuAD's JSON (its paragraphs are ingested) or questions.jsonl; .gz too.", show_default=False),
]
FeedbackOption = Annotated[
    bool, typer.Option("--from-feedback", help="Questions from what readers said (/v1/feedback), not from a file.")
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, help="Ask this many, evenly spread over the file.", show_default=False)
]
ConcurrencyOption = Annotated[int, typer.Option("--concurrency", min=1, max=64, help="Questions in flight.")]


def read_questions(file: Path) -> QuestionSet:
    try:
        data = squad.read(file)
    except OSError as error:
        raise BadData(f"{file} can't be read: {error.strerror}; name a file of questions") from None
    if not data.questions:
        raise BadData(f"{file} holds no questions")
    return data


def spread(questions: Sequence[SquadQuestion], limit: int | None) -> list[SquadQuestion]:
    """Returns all questions, or `limit` of them from all over the file: its first articles alone would not do."""
    if limit is None or limit >= len(questions):
        return list(questions)
    return [questions[i * len(questions) // limit] for i in range(limit)]


@dataclass(frozen=True, slots=True)
class Retrieval:
    file: str
    corpus: str
    questions: int
    recall_at_1: float  # percent
    recall_at_5: float
    recall_at_20: float
    mrr: float
    seconds: float


@dataclass(frozen=True, slots=True)
class AnswerShares:
    """Shares in percent. `forced` takes the best candidate also where the answer is "no answer", as SQuAD 1.1 does."""

    file: str
    corpus: str
    questions: int
    answerable: int
    em_forced: float | None  # over the answerable
    f1_forced: float | None
    em: float  # over all; no answer is right exactly where the documents don't say
    f1: float
    right: float | None  # answerable with EM or F1 >= 0.8
    answered: float | None  # answerable that got any answer
    refused: float | None  # unanswerable that got none
    k: int
    seconds: float
    f1_over: str | None = None  # F1 above the other reader's, with its interval
    auc: float | None = None  # chance that a best candidate which is right scores above one which is wrong
    slices: dict[str, str] | None = None  # questions and F1 by the question's first word, the most frequent ones


@app.command("retrieval")
@on_cluster
def eval_retrieval(
    target: Target,
    file: FileArgument = None,
    corpus: CorpusOption = None,
    limit: LimitOption = None,
    concurrency: ConcurrencyOption = CONCURRENCY,
    from_feedback: FeedbackOption = False,
    trec: Annotated[
        Path | None, typer.Option("--trec", metavar="FOLDER", help="Write run.txt and qrels.txt for trec_eval.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Recall@1, @5, @20 and MRR of the document that each question is about.

    With --trec, the ranked documents and the right ones as TREC's files, which trec_eval and ir_measures read.

    Example: shardqa-models eval retrieval dev-v1.1.json.gz
    """
    data = _questions(target, file, corpus, from_feedback)
    questions = spread([q for q in data.questions if q.document is not None], limit)
    settings = target.settings(corpus=corpus or corpus_of(file, data), timeout=60.0)

    async def work(engine: Engine) -> Retrieval:
        await prepare(engine, data, settings.corpus)
        start = monotonic()

        async def rank(question: SquadQuestion) -> dict[str, float]:
            """The documents in their order, each with the score of its best passage."""
            scores = dict[str, float]()
            for passage in (await engine.ranking.rank(engine.question(question.text), RANK_LIMIT)).passages:
                scores.setdefault(passage.document, passage.score)
            return scores

        lists = await ask_each(questions, rank, concurrency, "ranking")
        if trec is not None:
            write_trec(trec, questions, lists)
        ranks = [
            list(scores).index(question.document) + 1 if question.document in scores else None
            for question, scores in zip(questions, lists, strict=True)
        ]
        return Retrieval(
            file=str(file or "feedback"),
            corpus=settings.corpus,
            questions=len(ranks),
            recall_at_1=round(100 * metrics.recall_at(1, ranks), 2),
            recall_at_5=round(100 * metrics.recall_at(5, ranks), 2),
            recall_at_20=round(100 * metrics.recall_at(20, ranks), 2),
            mrr=round(metrics.mean_reciprocal_rank(ranks), 4),
            seconds=round(monotonic() - start, 1),
        )

    _print(asdict(with_engine(settings, work)), as_json)


@app.command("ask")
@on_cluster
def eval_ask(
    target: Target,
    file: FileArgument = None,
    corpus: CorpusOption = None,
    limit: LimitOption = None,
    from_feedback: FeedbackOption = False,
    k: Annotated[int, typer.Option("--k", help="Passages to read.")] = 5,
    concurrency: ConcurrencyOption = CONCURRENCY,
    wrong: Annotated[
        Path | None, typer.Option("--wrong", help="Write questions answered wrongly as JSON lines.")
    ] = None,
    outcomes_file: Annotated[
        Path | None, typer.Option("--outcomes", help="Write every question's answer as JSON lines.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="The outcomes of another reader: how much better is this one?")
    ] = None,
    min_f1: Annotated[
        float | None, typer.Option("--min-f1", min=0, max=100, help="Exit with 1 where F1 over all questions is below.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """EM and F1 of the answers, and the shares answered and refused; `auc` tells how well scores part right from wrong.

    With --against, the difference of F1 over all questions has its 95 % interval (paired bootstrap).

    Example: shardqa-models eval ask dev-v1.1.json.gz --limit 1000 --k 5
    """
    data = _questions(target, file, corpus, from_feedback)
    questions = spread(data.questions, limit)
    settings = target.settings(corpus=corpus or corpus_of(file, data), timeout=60.0, cache_megabytes=0)

    async def work(engine: Engine) -> AnswerShares:
        await prepare(engine, data, settings.corpus)
        start = monotonic()

        async def answer(question: SquadQuestion) -> QuestionOutcome:
            reply = await engine.ask(question.text, k=k, n_best=1, form="span", fresh=True)
            return QuestionOutcome(
                question, reply.answer or "", reply.n_best[0].answer if reply.n_best else "", reply.score
            )

        outcomes = await ask_each(questions, answer, concurrency, "asking")
        if wrong is not None:
            _write(wrong, [one for one in outcomes if not one.is_right])
        if outcomes_file is not None:
            _write(outcomes_file, outcomes)
        seconds = round(monotonic() - start, 1)
        others = _read(against) if against else None
        return summed(outcomes, str(file or "feedback"), settings.corpus, k, seconds, others)

    shares = with_engine(settings, work)
    _print(asdict(shares), as_json)
    if min_f1 is not None and shares.f1 < min_f1:
        say(f"F1 is {shares.f1:g}, below the {min_f1:g} that is wanted")
        raise typer.Exit(NOTHING)


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    question: SquadQuestion
    answer: str  # empty: no answer
    best: str  # best candidate, whatever its score; empty when there was none
    score: float

    @property
    def is_right(self) -> bool:
        return metrics.f1(self.answer, self.question.answers) >= RIGHT_F1  # an exact match has F1 1


def summed(
    outcomes: Sequence[QuestionOutcome],
    file: str,
    corpus: str,
    k: int,
    seconds: float,
    others: dict[str, str] | None = None,
) -> AnswerShares:
    """Returns the table's row: EM and F1 by SQuAD's rules, the best over the accepted answers, means over questions.

    ``others`` are another reader's answers by question.
    """
    answerable = [o for o in outcomes if o.question.answers]
    unanswerable = [o for o in outcomes if not o.question.answers]
    return AnswerShares(
        file=file,
        corpus=corpus,
        questions=len(outcomes),
        answerable=len(answerable),
        em_forced=_percent([metrics.exact_match(o.best, o.question.answers) for o in answerable]),
        f1_forced=_percent([metrics.f1(o.best, o.question.answers) for o in answerable]),
        em=_percent([metrics.exact_match(o.answer, o.question.answers) for o in outcomes]) or 0.0,
        f1=_percent([metrics.f1(o.answer, o.question.answers) for o in outcomes]) or 0.0,
        right=_percent([float(o.is_right) for o in answerable]),
        answered=_percent([float(bool(o.answer)) for o in answerable]),
        refused=_percent([float(not o.answer) for o in unanswerable]),
        k=k,
        seconds=seconds,
        f1_over=None if others is None else str(_over(outcomes, others)),
        auc=_auc(outcomes),
        slices=_slices(outcomes),
    )


def _auc(outcomes: Sequence[QuestionOutcome]) -> float | None:
    """Returns the area under the curve of ROC of the scores, ties half; None where all are right, or none is."""
    right = np.array([metrics.f1(one.best, one.question.answers) >= RIGHT_F1 for one in outcomes], dtype=np.bool_)
    score = np.array([one.score for one in outcomes])
    above, below = score[right][:, None], score[~right][None, :]
    if not above.size or not below.size:
        return None
    return round(float(np.mean((above > below) + 0.5 * (above == below))), 4)


def _slices(outcomes: Sequence[QuestionOutcome]) -> dict[str, str]:
    """Returns how many questions begin with each of the SLICES most frequent words, and their F1."""
    by_word: dict[str, list[float]] = {}
    for one in outcomes:
        word = next(iter(one.question.text.lower().split()), "")
        by_word.setdefault(word, []).append(metrics.f1(one.answer, one.question.answers))
    most = sorted(by_word.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:SLICES]
    return {word: f"{len(values)}: {_percent(values)}" for word, values in most}


def _over(outcomes: Sequence[QuestionOutcome], others: dict[str, str]) -> Interval:
    """Returns by how much these answers are better than another reader's; raises BadData for other questions."""
    if {one.question.id for one in outcomes} - set(others):
        raise BadData("the other outcomes are of other questions; write them with the same file and --limit")
    before, after = (
        np.array(
            [(metrics.f1(answer, one.question.answers), 1.0) for one, answer in zip(outcomes, answers, strict=True)]
        )
        for answers in ([others[one.question.id] for one in outcomes], [one.answer for one in outcomes])
    )
    return intervals.compared(before, after, lambda sums: np.asarray(100 * sums[..., 0] / sums[..., 1]))


def _percent(values: list[float]) -> float | None:
    return round(100 * sum(values) / len(values), 2) if values else None


async def prepare(engine: Engine, data: QuestionSet, corpus: str) -> None:
    """Ingests a file's paragraphs unless the corpus has them already. Raises UnknownCorpus where there are none."""
    corpora = await engine.catalogue.corpora()
    if corpora.partial:
        raise ClusterUnavailable(
            f"the documents of {', '.join(corpora.failed)} can't be asked now; see 'shardqa status', and evaluate later"
        )
    counts = {info.name: info.documents for info in corpora.corpora}
    documents = [
        Document(id=one.id, text=one.text, title=readable(one.title), source=one.title)
        for one in data.paragraphs
        if one.text.strip()
    ]
    if not documents:
        if corpus not in counts:
            raise UnknownCorpus(f"the file has questions only and there is no corpus {corpus!r}")
        return
    if counts.get(corpus) != len({document.id for document in documents}):
        say(f"ingesting {len(documents)} paragraphs into the corpus {corpus}")
        summary = await ingest(engine, _Listed(documents), corpus)
        say(f"ingested in {summary.seconds:.1f} s ({summary.mb_per_minute:.1f} MB/min)")


class _Listed:
    """Documents in memory as a source for `ingest`."""

    def __init__(self, documents: list[Document]) -> None:
        self._documents = documents
        self.total = len(documents)

    def done(self) -> int:
        return self.total

    def __iter__(self) -> Iterator[Item]:
        return iter(self._documents)


async def ask_each(
    questions: Sequence[SquadQuestion], ask: Callable[[SquadQuestion], Awaitable[Result]], concurrency: int, what: str
) -> list[Result]:
    """Returns the results of `ask` for every question, in order, `concurrency` at a time; the first fault ends it."""
    results: list[Any] = [None] * len(questions)
    left = iter(list(enumerate(questions)))
    bar = iter(track(range(len(questions)), what, console=err, disable=not err.is_terminal, transient=True))

    async def take() -> None:
        for i, question in left:
            results[i] = await retry(partial(ask, question), FAILOVER_SECONDS)
            next(bar, None)

    await run_all(take() for _ in range(concurrency))
    return results


def _questions(target: Target, file: Path | None, corpus: str | None, from_feedback: bool) -> QuestionSet:
    """Returns the questions of a file, or of users' feedback. Raises WrongSetting unless one is named, BadData."""
    if (file is None) != from_feedback:
        raise WrongSetting("name a file of questions, or --from-feedback: one of the two")
    if file is not None:
        return read_questions(file)
    settings = target.settings(corpus=corpus)
    verdicts = with_engine(settings, lambda engine: engine.feedback.latest(settings.corpus))
    if not verdicts:
        raise BadData(
            f"nobody said what is right of the corpus {settings.corpus!r}; the page's thumbs "
            "say it, where SHARDQA_HTTP_OPENINGS names feedback"
        )
    return QuestionSet(
        (),
        tuple(
            SquadQuestion(str(number), one.question, tuple(one.answers), one.document)
            for number, one in enumerate(verdicts, 1)
        ),
    )


def corpus_of(file: Path | None, data: QuestionSet) -> str | None:
    """Returns the name of a corpus for a file with paragraphs; None, the default one, for questions alone."""
    if file is None:
        return None
    name = re.sub(r"[^a-z0-9._-]+", "-", file.name.lower().removesuffix(".gz").removesuffix(".json"))
    return f"eval-{name}"[:64] if data.paragraphs else None


def _print(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        texts = {name: ", ".join(map(" ".join, one.items())) for name, one in result.items() if isinstance(one, dict)}
        print_table(["measure", "value"], list({**result, **texts}.items()))


def _write(path: Path, outcomes: Sequence[QuestionOutcome]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for o in outcomes:
            row = {**asdict(o.question), "answered": o.answer, "best": o.best, "score": round(o.score, 4)}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _read(path: Path) -> dict[str, str]:
    """Reads answers by question. Raises BadData."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {str(row["id"]): str(row["answered"]) for row in rows}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadData(f"{path} can't be read: {error!r}; write it with 'shardqa-models eval ask --outcomes'") from None


def write_trec(folder: Path, questions: Sequence[SquadQuestion], lists: Sequence[dict[str, float]]) -> None:
    """Writes the ranked documents of each question as run.txt, and those that answer as qrels.txt.

    Blanks part the columns of both files, so ids are percent-encoded where they have some.
    """
    run, right = list[str](), list[str]()
    for question, scores in zip(questions, lists, strict=True):
        right.append(f"{_column(question.id)} 0 {_column(question.document or '')} 1")
        ranks = enumerate(scores.items(), 1)
        run += [f"{_column(question.id)} Q0 {_column(id_)} {n} {score:.6f} shardqa" for n, (id_, score) in ranks]
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("run.txt", run), ("qrels.txt", right)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _column(text: str) -> str:
    return re.sub(r"[\s%]", lambda found: quote(found.group()), text)
