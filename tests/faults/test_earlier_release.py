"""The data of the release before this one (release.py) is read: documents, functions, and what is written over them."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import ShardqaError
from shardqa.loader import preparation
from shardqa.schema import Document
from tests.faults import documents, release
from tests.faults.release import CORPUS, DOCUMENTS, VERSION, serve_all_slots
from tests.nodes import Node

RELEASES = sorted((Path(__file__).parent / "releases").glob("*.rdb"))


@pytest.fixture(params=RELEASES, ids=lambda path: path.stem)
def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    """A node of this version on the file of an earlier one."""
    node = Node(tmp_path / "node", cluster=True, extra=(("appendonly", "no"),))
    node.folder.mkdir()
    shutil.copy(request.param, node.folder / "dump.rdb")
    node.start()
    serve_all_slots(node)
    yield node
    node.stop()


async def ready(engine: Engine) -> None:
    for _ in range(600):
        try:
            if not (await engine.corpora()).partial:
                return
        except ShardqaError:
            pass
        await asyncio.sleep(0.05)
    pytest.fail("the functions of the file were not replayed")


async def test_what_an_earlier_release_wrote_is_read_answered_replaced_and_deleted(upgraded: Node) -> None:
    engine = await Engine.connect(Settings(redis=f"127.0.0.1:{upgraded.port}", corpus=CORPUS, timeout=30))
    try:
        await ready(engine)  # by functions that came with the file
        await preparation.prepare(engine)
        for name in DOCUMENTS:
            found = await engine.get(CORPUS, name)
            assert found is not None
            assert found.text == release.text(name)
        for name in DOCUMENTS:
            for question in documents.questions(name, VERSION):
                if question.about is not None:
                    assert (await engine.ask(question.text)).answer == question.answer
        await engine.put(Document(id=DOCUMENTS[0], title=DOCUMENTS[0], text=documents.text(DOCUMENTS[0], VERSION + 1)))
        question = documents.questions(DOCUMENTS[0], VERSION + 1)[0]
        assert (await engine.ask(question.text)).answer == question.answer
        for name in DOCUMENTS:
            assert await engine.delete(CORPUS, name)
        with upgraded.client() as client:
            assert client.keys("passage:*") + client.keys("tokens:*") + client.keys("doc:*") == []
    finally:
        await engine.close()
