"""A process that has not asked for a while, or never: its first question is answered from what is kept."""

from time import monotonic

import pytest

from shardqa.cluster.local import LocalCluster
from shardqa.config import Settings
from shardqa.engine import Engine, epochs
from shardqa.errors import SeveralCorpora
from shardqa.schema import Document
from tests.cluster.shards_client import Shards
from tests.nodes import settings_of, wait_until

MILL = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist. It ground rye until 1911."
QUESTION = "When was the mill at Hallow Ford built?"


@pytest.fixture(autouse=True)
async def mill(engine: Engine) -> None:
    await engine.documents.put(Document(id="mill", text=MILL))


async def test_after_a_minute_without_questions_the_process_still_answers_from_its_memory(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.ask(QUESTION)
    later = monotonic() + 2 * epochs.KNOWN_SECONDS
    monkeypatch.setattr(epochs, "monotonic", lambda: later)
    assert (await engine.ask(QUESTION)).cache == "process"


async def test_a_process_that_has_just_started_answers_from_redis(engine: Engine, settings: Settings) -> None:
    await engine.ask(QUESTION)
    async with await Engine.connect(settings) as other:
        assert (await other.ask(QUESTION)).cache == "redis"


async def test_a_document_that_changed_while_nobody_listened_is_answered_anew(
    engine: Engine,
) -> None:
    assert (await engine.ask(QUESTION)).answer == "1742"
    await engine.epochs.stop()
    engine.epochs.following = False
    await engine.documents.put(Document(id="mill", text=MILL.replace("1742", "1688")))
    assert (await engine.ask(QUESTION)).answer == "1688"
    assert (await engine.ask(QUESTION)).cache == "process"


async def test_times_of_a_kept_answer_are_of_this_request(engine: Engine, settings: Settings) -> None:
    first = await engine.ask(QUESTION)
    assert first.timing.read > 0
    assert first.shards[0].us
    kept = await engine.ask(QUESTION)
    assert (kept.timing.rank, kept.timing.read) == (0, 0)
    assert [(use.cached, use.us) for use in kept.shards] == [(True, {})] * len(first.shards)


async def test_times_of_an_answer_that_a_shard_kept_are_of_this_request(
    engine: Engine, settings: Settings, shards: Shards
) -> None:
    await engine.ask(QUESTION)
    wait_until(lambda: list(shards.client.scan_iter(f"answer:{settings.corpus}:*")), "the shard's answer is stored")
    for final in shards.client.scan_iter(f"ask:{settings.corpus}:*"):
        shards.client.unlink(final)
    async with await Engine.connect(settings) as other:
        answer = await other.ask(QUESTION)
    assert answer.cache is None
    assert [(use.cached, use.us) for use in answer.shards] == [(True, {})]


async def test_whose_a_question_without_a_corpus_is_costs_no_command_until_a_corpus_changes(
    cluster: LocalCluster, corpus: str, shards: Shards
) -> None:
    def triggers() -> int:
        found = [shards.client.info("commandstats", target_nodes=node) for node in shards.nodes()]
        return sum(one["cmdstat_RG.TRIGGER"]["calls"] for one in found)

    async with await Engine.connect(settings_of(cluster, timeout=90)) as other:

        async def commands() -> int:
            before = triggers()
            assert await other.catalogue.asked(None, lambda name: name.startswith(corpus)) == (corpus,)
            return triggers() - before

        assert 0 in [await commands() for _ in range(20)]  # once the subscription stands, and the mill was heard of
        await other.documents.put(Document(id="mill", text=MILL, corpus=f"{corpus}-b"))
        with pytest.raises(SeveralCorpora):
            await commands()
