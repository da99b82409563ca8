"""One object that asks, ranks, takes documents and looks at the shards, by its parts.

An Engine belongs to one asyncio loop; the API has one per process, the CLI one per command. It holds connections,
the epochs of the corpora and the answers of this process; everything else is in Redis.
"""

from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self, Unpack

from shardqa.config import Settings
from shardqa.engine.activity import Activity
from shardqa.engine.api_keys import ApiKeys
from shardqa.engine.ask import Asking
from shardqa.engine.catalogue import Catalogue
from shardqa.engine.cluster_view import ClusterView
from shardqa.engine.connections import Shards
from shardqa.engine.corpus_words import CorpusWords
from shardqa.engine.documents import Documents
from shardqa.engine.epochs import Epochs
from shardqa.engine.files import Files
from shardqa.engine.pair_choice import PairChoice
from shardqa.engine.question_log import FeedbackStreams, QuestionLog
from shardqa.engine.rank import Ranking
from shardqa.engine.reading import Readers
from shardqa.engine.search import Searching
from shardqa.engine.suggestions import Suggesting
from shardqa.engine.task_states import TaskStates
from shardqa.engine.together import Together
from shardqa.question import Choices, Question
from shardqa.schema import Answer, Explanation, SearchResult, Step


class Engine:
    def __init__(self, settings: Settings, shards: Shards) -> None:
        self.settings = settings
        self.shards = shards
        self.epochs = Epochs(shards)
        self.ranking = Ranking(shards, self.epochs)
        self.readers = Readers(settings, shards)
        self.asking = Asking(settings, shards, self.epochs, self.ranking, self.readers)
        self.searching = Searching(settings, shards, self.ranking, self.readers, self.asking)
        self.documents = Documents(settings, shards, self.epochs)
        self.words = CorpusWords(shards, self.documents)
        self.together = Together(shards, self.epochs, self.documents)
        self.files = Files(settings, shards)
        self.catalogue = Catalogue(settings, shards, self.epochs, self.words, self.files)
        self.documents.choose = PairChoice(self.catalogue).choose
        self.suggesting = Suggesting(shards, self.catalogue)
        self.cluster = ClusterView(settings, shards)
        self.activity = Activity(shards)
        self.api_keys = ApiKeys(shards)
        self.tasks = TaskStates(shards)
        self.feedback = FeedbackStreams(shards)
        self.question_log = QuestionLog(shards)

    @classmethod
    async def connect(cls, settings: Settings | None = None) -> Self:
        """Connects by these settings, else by the environment's. Raises ClusterUnavailable when no node answers."""
        settings = settings if settings is not None else Settings()
        engine = cls(settings, await Shards.connect(settings))
        engine.epochs.start()
        return engine

    def question(self, wording: str, **choices: Unpack[Choices]) -> Question:
        """A question that leaves to the settings what is not chosen. Raises as `Question.of`."""
        return Question.of(wording, self.settings, **choices)

    async def ask(
        self, question: Question | str, on_step: Callable[[Step], None] | None = None, **choices: Unpack[Choices]
    ) -> Answer:
        """The answer from the documents of its corpora. Raises as `Question.of`, `Asking.ask` and `Catalogue.asked`."""
        own = await self._question(question, choices)
        return await self.words.pinned(own) or await self.asking.ask(own, on_step)

    async def search(self, question: Question | str, limit: int = 10, **choices: Unpack[Choices]) -> SearchResult:
        """The passages that rank best. Raises as `Question.of`, `Searching.search` and `Catalogue.asked`."""
        return await self.searching.search(await self._question(question, choices), limit)

    async def explain(self, question: Question | str, **choices: Unpack[Choices]) -> Explanation:
        """The answer, and everything it was made of. Raises as `ask`."""
        return await self.searching.explain(await self._question(question, choices))

    async def _question(self, question: Question | str, choices: Choices) -> Question:
        if isinstance(question, Question):
            return question
        own = self.question(question, **choices)  # what is wrong with it by itself is said first
        return await self.words.expand(replace(own, corpora=await self.catalogue.asked(choices.get("corpus"))))

    async def close(self) -> None:
        await self.epochs.stop()
        await self.shards.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
