"""A question is read in stages: the best passages first, and no more once the answer is sure."""

from collections.abc import AsyncIterator

import pytest

from shardqa.cluster.local import LocalCluster
from shardqa.config import Settings
from shardqa.engine import Engine, reading
from shardqa.schema import Answer, Document
from tests.nodes import settings_of

MILL = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist. It ground rye until 1911."
OTHERS = {
    "kiln": "The kiln at Hallow Ford was built long ago by nobody knows whom. It burnt bricks for the mill.",
    "forge": "The forge at Hallow Ford was built of stone from the quarry. The mill stood beside it.",
    "chapel": "The chapel at Hallow Ford was built by monks. From its tower the mill can be seen.",
    "bridge": "The bridge at Hallow Ford was built of oak. Carts crossed it on the way to the mill.",
}
SURE = "When was the mill at Hallow Ford built?"
UNSURE = "Which colour did the miller's cat at Hallow Ford have?"


async def filled(settings: Settings) -> Engine:
    engine = await Engine.connect(settings)
    await engine.documents.put(Document(id="mill", text=MILL))
    for name, text in OTHERS.items():
        await engine.documents.put(Document(id=name, text=text))
    return engine


def read(answer: Answer) -> int:
    """Passages, over all shards."""
    return sum(use.passages for use in answer.shards)


@pytest.fixture
async def in_stages(settings: Settings) -> AsyncIterator[Engine]:
    engine = await filled(settings)
    yield engine
    await engine.close()


@pytest.fixture
async def whole(settings: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.connect(settings.model_copy(update={"sure": 1.0}))
    yield engine
    await engine.close()


async def test_a_sure_answer_takes_one_passage(in_stages: Engine) -> None:
    answer = await in_stages.ask(SURE)
    assert (answer.answer, read(answer)) == ("1742", 1)


async def test_without_an_answer_the_passages_that_rank_next_are_read_too(in_stages: Engine) -> None:
    answer = await in_stages.ask(UNSURE, k=3)
    assert answer.no_answer
    assert read(answer) == 5


async def test_those_that_rank_too_low_are_not(in_stages: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "NEAR_LAG", 0.0)
    assert read(await in_stages.ask(UNSURE, k=3)) == 3


async def test_an_answer_takes_none_that_rank_too_low(
    in_stages: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LAG_ODDS", 1e6)
    async with await Engine.connect(settings.model_copy(update={"sure": 0.999})) as hard_to_please:
        answer = await hard_to_please.ask(SURE)
    assert (answer.answer, read(answer)) == ("1742", 1)


async def test_all_are_read_where_stages_are_off(in_stages: Engine, whole: Engine) -> None:
    assert read(await whole.ask(SURE)) == 5


@pytest.mark.parametrize("question", [SURE, UNSURE])
async def test_what_is_read_in_stages_is_an_answer_of_reading_all_too(
    in_stages: Engine, whole: Engine, question: str
) -> None:
    """It may be surer of it, having read fewer rivals. A stage's spans that are remembered are those of the whole."""
    in_parts, all_read = await in_stages.ask(question), await whole.ask(question)
    best = in_parts.n_best[0]
    place = best.document, best.start, best.end
    (same,) = (other for other in all_read.n_best if (other.document, other.start, other.end) == place)
    assert best == same.model_copy(update={"score": best.score})
    assert best.score >= same.score
    if question == UNSURE:
        assert in_parts.n_best == all_read.n_best


async def test_the_two_ways_keep_their_answers_apart(in_stages: Engine, whole: Engine) -> None:
    await in_stages.ask(SURE)
    assert (await whole.ask(SURE)).cache is None


async def test_the_same_passages_are_read_on_one_shard_as_on_three(
    one_shard: LocalCluster, in_stages: Engine, corpus: str
) -> None:
    async with await filled(settings_of(one_shard, corpus=corpus, timeout=90)) as alone:
        for question in (SURE, UNSURE, "Who built the chapel?", "What was the bridge built of?"):
            on_one, on_three = await alone.ask(question), await in_stages.ask(question)
            assert read(on_one) == read(on_three)
            lists = [[c.model_dump(exclude={"shard"}) for c in answer.n_best] for answer in (on_one, on_three)]
            assert lists[0] == lists[1]
