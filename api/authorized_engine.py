"""The engine as far as the bearer of a request's key may use it; all of it without a key.

What a key's filter hides is not there for its bearer: every count, list and score is of the other documents.
"""

from collections.abc import Callable
from dataclasses import replace

from shardqa import http_schema, keys, schema
from shardqa.api import bearer
from shardqa.api.authorized_documents import AuthorizedDocuments, AuthorizedTasks
from shardqa.engine import Engine
from shardqa.engine.ask import CachedReply
from shardqa.engine.corpus_words import check
from shardqa.question import CorporaChoice, Question
from shardqa.schema import Answer, SearchTiming


class AuthorizedEngine:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.documents, self.tasks = AuthorizedDocuments(engine), AuthorizedTasks(engine.tasks)

    async def _asked(self, question: Question, corpus: CorporaChoice) -> Question:
        """Returns the question for its corpora; they are sought last, so that its own faults are told first.

        Raises NotAllowed, SeveralCorpora.
        """
        names = await self._engine.catalogue.asked(corpus, bearer.may_use, bearer.view())
        return await self._engine.words.expand(replace(question, corpora=tuple(map(bearer.check, names))))

    def _question(self, request: http_schema.Question, corpus: CorporaChoice) -> Question:
        choices = {**dict(request), "corpus": corpus, "filter": bearer.view(request.filter)}
        return self._engine.question(choices.pop("question"), **choices)

    async def ask(self, request: http_schema.Question, on_step: Callable[[schema.Step], None] | None = None) -> Answer:
        question = await self._asked(self._question(request, request.corpus), request.corpus)
        return await self._engine.ask(question, on_step)

    def cached_reply(self, request: http_schema.Question) -> CachedReply | None:
        names = self._engine.catalogue.known_asked(request.corpus, bearer.may_use, bearer.view())
        if names is None:
            return None
        question = self._engine.words.known(self._question(request, list(map(bearer.check, names))))
        return self._engine.asking.cached_reply(question) if question is not None else None

    async def search(self, request: http_schema.Search) -> schema.SearchResult:
        question = self._engine.question(request.question, corpus=request.corpus, filter=bearer.view(request.filter))
        result = await self._engine.search(await self._asked(question, request.corpus), request.limit)
        if bearer.view() is None:
            return result
        return result.model_copy(update={"timing": SearchTiming(terms=0, rank=0, load=0, total=result.timing.total)})

    async def explain(self, request: http_schema.Explain) -> schema.Explanation:
        filter_ = bearer.view(request.filter)
        question = self._engine.question(request.question, corpus=request.corpus, k=request.k, filter=filter_)
        return await self._engine.explain(await self._asked(question, request.corpus))

    async def corpora(self) -> schema.Corpora:
        every = await self._engine.catalogue.corpora(bearer.view())
        return every.model_copy(update={"corpora": [one for one in every.corpora if bearer.may_use(one.name)]})

    async def corpus(self, name: str) -> schema.OneCorpus:
        return await self._engine.catalogue.corpus(bearer.check(name), bearer.view())

    async def words(self, corpus: str) -> http_schema.CorpusWords:
        return await self._engine.words.stored(bearer.check(corpus)) or http_schema.CorpusWords()

    async def store_words(self, corpus: str, words: http_schema.CorpusWords) -> http_schema.StoredWords:
        """Raises BadWords."""
        await self._engine.words.store(keys.check_corpus(bearer.check(corpus)), check(words))
        unmatched = [] if bearer.view() else await self._engine.words.unmatched(corpus, words)
        return http_schema.StoredWords(**words.model_dump(), unmatched=unmatched)

    async def suggestions(self, corpus: str) -> schema.Suggestions:
        return await self._engine.suggesting.of(bearer.check(corpus), bearer.view())

    async def facets(self, corpus: str) -> schema.Facets:
        return await self._engine.catalogue.facets(bearer.check(corpus), bearer.view())

    async def cluster(self) -> schema.ClusterInfo:
        """Returns the nodes; they count the corpora and documents that the key is for."""
        key = bearer.key.get()
        return await self._engine.cluster.nodes(None if key is None else key.corpora, bearer.view())

    async def note_feedback(self, corpus: str, feedback: http_schema.Feedback) -> None:
        await self._engine.feedback.add(bearer.check(corpus), feedback)

    async def note_asked(self, answer: Answer) -> None:
        await self._engine.question_log.add(answer)

    async def asked(self, corpus: str) -> list[http_schema.AskedQuestion]:
        return await self._engine.question_log.latest(bearer.check(corpus))

    async def drop(self, corpus: str) -> schema.Dropping:
        dropping = await self._engine.catalogue.drop(bearer.check(corpus))
        await self._engine.question_log.forget(corpus)
        return dropping
