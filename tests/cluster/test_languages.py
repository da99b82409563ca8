"""A corpus in other languages is read by a pair of models of their own, with another tokenizer."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from shardqa import keys
from shardqa.engine import Engine
from shardqa.errors import BadData, BadModel
from shardqa.loader import push
from shardqa.models import shipped
from shardqa.schema import Document

GERMAN = "Wann wurde die Mühle von Brennick gebaut und von wem?"


@pytest.fixture
def pair(tmp_path: Path) -> list[Path]:
    """Stands for one of many languages: the shipped networks with a tokenizer that keeps accents."""
    folders = [Path(shutil.copytree(one, tmp_path / one.name)) for one in (shipped.folder(), shipped.encoder_folder())]
    for folder in folders:
        file = folder / "tokenizer.json"
        settings = json.loads(file.read_text())
        settings["normalizer"]["strip_accents"] = False
        file.write_text(json.dumps(settings))
        shipped.write_checksums(folder)
    return folders


async def tokens(engine: Engine, corpus: str = "many") -> bytes:
    reply: bytes = await engine.shards.by_key(keys.tokens(corpus, "mill", 0), "AI.TENSORGET", "BLOB")
    return reply


async def test_a_corpus_is_read_by_the_pair_from_when_it_is_told_to_until_it_is_told_not(
    engine: Engine, pair: list[Path]
) -> None:
    await push.push_pair(engine, *pair)
    text = "The Mühle of Brennick was built in 1820 by Ada Holm."
    await engine.documents.put(Document(id="mill", corpus="many", text=text))
    english = await tokens(engine)
    for is_on, model in ((True, keys.MANY_READER), (False, shipped.NAME)):
        await engine.catalogue.switch("many", "languages", is_on)
        answer = await engine.ask(GERMAN, corpus="many", min_score=0.0)
        assert (answer.model, bool(answer.warnings), answer.no_answer) == (model, not is_on, not is_on)
        for _ in range(400):
            if (await tokens(engine) == english) is not is_on:
                break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError("the document was not cut anew")


async def test_a_document_on_its_way_in_is_cut_by_the_pair_that_its_corpus_gets_meanwhile(
    engine: Engine, pair: list[Path]
) -> None:
    await push.push_pair(engine, *pair)
    await engine.catalogue.switch("meanwhile", "dense", False)  # its vectors would keep the shard from those of others
    text = "The Mühle of Brennick was built in 1820 by Ada Holm.\n\n" * 10_000
    put = asyncio.create_task(engine.documents.put(Document(id="mill", corpus="meanwhile", text=text)))
    await asyncio.sleep(0.3)
    await engine.catalogue.switch("meanwhile", "languages", True)
    await put
    after = await tokens(engine, "meanwhile")
    await engine.documents.put(Document(id="mill", corpus="meanwhile", text=text + "."))
    assert after == await tokens(engine, "meanwhile")


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("The mill of Brennick grinds rye.", shipped.NAME),
        ("Die Mühle von Brennick mahlt nur Roggen.", keys.MANY_READER),
    ],
    ids=["English", "German"],
)
async def test_a_new_corpus_gets_the_pair_of_its_language(
    engine: Engine, pair: list[Path], text: str, model: str
) -> None:
    await push.push_pair(engine, *pair)
    await engine.documents.put(Document(id="mill", corpus=f"new-{model}", text=text))
    answer = await engine.ask("What does the mill of Brennick grind?", corpus=f"new-{model}")
    known = (await engine.catalogue.corpus(f"new-{model}")).corpus
    assert answer.model == model
    assert known is not None
    assert known.languages == (model == keys.MANY_READER)


@pytest.mark.parametrize(
    ("document", "question", "words"),
    [
        ("Die Sauna ist von 13 bis 21 Uhr geöffnet.", "Wie lange ist die Sauna geöffnet?", "13 bis 21 Uhr"),
        ("図書館の閉館時間は午後八時です。", "図書館は何時に閉まりますか?", "午後八時"),
    ],
    ids=["German", "Japanese"],
)
async def test_the_pair_of_the_repository_answers_in_other_languages(
    engine: Engine, document: str, question: str, words: str
) -> None:
    folder = Path(__file__).parents[2] / "languages"
    await push.push_pair(engine, folder / "reader-m1-int8", folder / "encoder-m1-int8")
    await engine.documents.put(Document(id="a", corpus="written", text=document))
    answer = await engine.ask(question, corpus="written")
    assert (answer.model, answer.answer) == (keys.MANY_READER, words)


async def test_the_pair_of_the_repository_shows_the_sentence_that_answers_alone(engine: Engine) -> None:
    folder = Path(__file__).parents[2] / "languages"
    await push.push_pair(engine, folder / "reader-m1-int8", folder / "encoder-m1-int8")
    why = "Im Winter bleibt der hintere Eingang zu, weil dort Dachlawinen abgehen."
    text = f"Die Sauna ist von 13 bis 21 Uhr geöffnet. {why} Handtücher gibt es am Empfang. Kinder zahlen die Hälfte."
    await engine.documents.put(Document(id="a", corpus="reasons", text=text))
    assert (await engine.ask("Warum ist der hintere Eingang im Winter zu?", corpus="reasons")).answer == why


async def test_without_a_pair_no_corpus_can_be_told_to_be_read_by_it(engine: Engine) -> None:
    await push.drop(engine, keys.MANY_READER)
    with pytest.raises(BadData, match="models push READER"):
        await engine.catalogue.switch("many", "languages", True)


async def test_a_pair_of_two_tokenizers_is_refused(engine: Engine, pair: list[Path]) -> None:
    with pytest.raises(BadModel, match="cut passages with"):
        await push.push_pair(engine, pair[0], shipped.encoder_folder())
