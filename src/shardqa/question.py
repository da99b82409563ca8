"""A question as the engine asks it: checked, normalised, and with every choice made. It is built once, where a user's
words come in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias, TypedDict, Unpack

from shardqa import analysis, checks, filters, keys, languages, spelling
from shardqa.analysis import Query
from shardqa.answer_forms import FormChoice, asks_for_several
from shardqa.answer_lines import AnswerWhen
from shardqa.checks import MAX_K, MAX_N_BEST
from shardqa.config import Settings
from shardqa.errors import BadLimit
from shardqa.filters import DocumentFilter

MAX_CORPORA = 32  # of one question: each is ranked on every shard
EVERY = "*"  # in place of a corpus: all that the asker may ask

CorporaChoice: TypeAlias = str | list[str] | None


def corpora_of(choice: str | Sequence[str]) -> tuple[str, ...]:
    """The corpora of a question, each once; `a,b` names two. Raises BadCorpusName, BadLimit."""
    names = set(choice.split(",") if isinstance(choice, str) else choice)
    checks.between("corpora", len(names), 1, MAX_CORPORA)
    return (EVERY,) if names == {EVERY} else tuple(sorted(map(keys.check_corpus, names)))


class Choices(TypedDict, total=False):
    """The choices that a user has beside his words; None leaves one to the settings."""

    corpus: CorporaChoice  # one, several (in a text with commas), or EVERY
    k: int | None
    n_best: int | None
    min_score: float | None
    answer_when: AnswerWhen | None
    form: FormChoice | None
    fresh: bool
    filter: DocumentFilter | None


@dataclass(frozen=True, slots=True)
class Question:
    wording: str  # as the user wrote it
    text: str  # as it is ranked and read
    corpora: tuple[str, ...]  # in order
    k: int  # passages that are read
    n_best: int  # candidates of the reply
    min_score: float | None  # in place of the line that `answer_when` names
    answer_when: AnswerWhen
    form: FormChoice
    filter: str  # canonical, see shardqa.filters; empty lets every document through
    view: str  # the part of the filter that hides documents
    sure: float  # score of a span from which no further passage is read
    fresh: bool  # passes by all caches of answers, and what is remembered of terms

    @property
    def told(self) -> str:
        """As the user wrote it, whose capitals tell names where it is English; as it is read where it has synonyms."""
        if checks.question(self.wording) != self.text:
            return self.text
        return self.wording.lower() if languages.other_than_english(self.wording) else self.wording

    @property
    def query(self) -> Query:
        return analysis.query(self.text)

    def corrected(self, words: Mapping[str, str]) -> Self:
        """The question with these words in place of those."""
        wording, text = (spelling.corrected(one, words) for one in (self.wording, self.text))
        return replace(self, wording=wording, text=text)

    @property
    def among(self) -> str:
        """Names the corpora where they are several, as keys do."""
        return self.asked_of if len(self.corpora) > 1 else ""

    @property
    def asked_of(self) -> str:
        """The corpora as one text, which `corpora_of` reads."""
        return ",".join(self.corpora)

    @classmethod
    def of(cls, wording: str, settings: Settings, **choices: Unpack[Choices]) -> Self:
        """Raises EmptyQuestion, QuestionTooLong, BadQuestion, BadFilter, BadCorpusName, BadLimit."""
        corpus, k, n_best = choices.get("corpus"), choices.get("k"), choices.get("n_best")
        corpora = corpora_of(settings.corpus if corpus is None else corpus)
        k = checks.between("k", settings.k if k is None else k, 1, MAX_K)
        n_best = checks.between("n_best", settings.n_best if n_best is None else n_best, 1, MAX_N_BEST)
        min_score = choices.get("min_score")
        if min_score is not None and not 0 <= min_score <= 1:
            raise BadLimit(f"min_score={min_score} is outside 0 to 1; it is a probability")
        text = checks.question(wording)
        form = choices.get("form") or "auto"
        canonical = filters.canonical(choices.get("filter"))
        return cls(
            wording=wording,
            text=text,
            corpora=corpora,
            k=k,
            n_best=n_best,
            min_score=min_score,
            answer_when=choices.get("answer_when") or settings.answer_when,
            form=form,
            sure=settings.sure if form == "span" or (form == "auto" and not asks_for_several(text)) else 1.0,
            filter=canonical,
            view=filters.view_of(canonical),
            fresh=choices.get("fresh", False),
        )
