"""Runs the integrations in real frameworks, over a running API; test_frameworks.py has an interpreter for it."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from haystack import Document, Pipeline
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from langchain_tests.integration_tests import RetrieversIntegrationTests
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from openai import OpenAI

import shardqa
from shardqa.integrations.haystack import ShardqaDocumentStore, ShardqaExtractiveReader
from shardqa.integrations.langchain import ShardqaRetriever
from shardqa.integrations.llama_index import ShardqaCorpusReader, ShardqaNodeRetriever

URL, CORPUS = os.environ["API_URL"], os.environ["API_CORPUS"]
MILL = "Ada Holm built the mill in 1871."


@pytest.fixture(scope="module", autouse=True)
def documents() -> None:
    with shardqa.Client(URL) as client:
        client.add(MILL, "mill", CORPUS, title="The mill", metadata={"kind": "building"})
        client.add("The weir was raised by Tom Reed.", "weir", CORPUS, metadata={"kind": "river"})
        client.add("The inn was built in 1902.", "inn", CORPUS)


def test_langchain_retrieves_passages_with_their_place() -> None:
    retriever = ShardqaRetriever(url=URL, corpus=CORPUS, k=1)
    (found,) = retriever.invoke("Who built the mill?")
    assert (found.page_content, found.metadata["source"], found.metadata["kind"]) == (MILL, "mill", "building")
    (same,) = asyncio.run(retriever.ainvoke("Who built the mill?"))
    assert same == found


class TestLangChainsStandard(RetrieversIntegrationTests):  # type: ignore[misc]
    retriever_constructor = ShardqaRetriever
    retriever_query_example = "mill, weir, inn"

    @property
    def retriever_constructor_params(self) -> dict[str, str]:
        return {"url": URL, "corpus": CORPUS}


def test_llama_index_reads_documents_and_retrieves_passages() -> None:
    assert sorted(one.id_ for one in ShardqaCorpusReader(URL).load_data(CORPUS)) == ["inn", "mill", "weir"]
    best = ShardqaNodeRetriever(URL, corpus=CORPUS).retrieve("Who built the mill?")[0]
    assert (best.node.get_content(), best.node.metadata["source"]) == (MILL, "mill")
    node = best.node
    assert (node.start_char_idx, node.end_char_idx, node.ref_doc_id) == (0, len(MILL), "mill")
    assert {"place", "start", "end"} <= node.metadata.keys()


def test_haystack_reads_documents_in_a_pipeline() -> None:
    pipeline = Pipeline()
    pipeline.add_component("reader", ShardqaExtractiveReader(top_k=3))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["shardqa.integrations.*"])
    asked = {"reader": {"query": "Who built the mill?", "documents": [Document(content=MILL)]}}
    best = again.run(asked)["reader"]["answers"][0]
    assert best.data == "Ada Holm"
    assert MILL[best.document_offset.start : best.document_offset.end] == "Ada Holm"
    assert asyncio.run(again.run_async(asked))["reader"]["answers"][0].data == "Ada Holm"
    nothing = ShardqaExtractiveReader().run("What does the ferry cost?", [Document(content=MILL)])["answers"][0]
    assert nothing.data is None


def test_haystack_keeps_documents_in_a_corpus() -> None:
    store = ShardqaDocumentStore(URL, f"{CORPUS}-haystack")
    some = [Document(id="a", content="The ferry is old.", meta={"year": 1990}), Document(id="b", content="A boat.")]
    assert store.write_documents(some) == 2
    assert store.count_documents() == 2
    with pytest.raises(DuplicateDocumentError):
        store.write_documents(some)
    assert store.write_documents(some, DuplicatePolicy.SKIP) == 0
    assert store.write_documents(some, DuplicatePolicy.OVERWRITE) == 2
    recent = {"field": "meta.year", "operator": ">=", "value": 1980}
    (found,) = store.filter_documents(recent)
    assert (found.id, found.content, found.meta) == ("a", "The ferry is old.", {"year": 1990})
    boats = {"operator": "OR", "conditions": [{"field": "content", "operator": "==", "value": "A boat."}]}
    assert [one.id for one in store.filter_documents(boats)] == ["b"]
    assert sorted(one.id for one in store.filter_documents()) == ["a", "b"]
    store.delete_documents(["a", "b", "none"])
    assert store.count_documents() == 0
    assert ShardqaDocumentStore.from_dict(store.to_dict()).corpus == store.corpus


def test_openais_client_chats_with_a_corpus() -> None:
    with OpenAI(base_url=f"{URL}/v1", api_key="none") as client:
        assert CORPUS in [one.id for one in client.models.list()]
        question = {"role": "user", "content": "Who built the mill?"}
        message = client.chat.completions.create(model=CORPUS, messages=[question]).choices[0].message
        assert (message.content, message.annotations[0].url_citation.title) == (MILL, "The mill")
        chunks = client.chat.completions.create(model=CORPUS, messages=[question], stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == MILL


def test_mcp_asks_searches_lists_and_fetches() -> None:
    async def talk() -> None:
        program = StdioServerParameters(
            command=sys.executable, args=["-m", "shardqa", "mcp", "--corpus", CORPUS], env=dict(os.environ)
        )
        async with Client(stdio_client(program)) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == {"ask", "search", "list_corpora", "list_documents", "fetch"}
            assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
            answer = await client.call_tool("ask", {"question": "Who built the mill?"})
            assert answer.structured_content is not None
            assert answer.structured_content["answer"] == "Ada Holm"
            found = await client.call_tool("search", {"question": "mill", "limit": 1})
            assert found.structured_content["passages"][0]["document"] == "mill"
            listed = await client.call_tool("list_documents", {})
            assert len(listed.structured_content["documents"]) == 3
            corpora = await client.call_tool("list_corpora", {})
            assert CORPUS in {one["name"] for one in corpora.structured_content["corpora"]}
            assert (await client.call_tool("fetch", {"id": "mill"})).structured_content["text"] == MILL
            resources = (await client.list_resources()).resources
            assert f"shardqa://{CORPUS}/mill" in {str(one.uri) for one in resources}
            (read,) = (await client.read_resource(f"shardqa://{CORPUS}/mill")).contents
            assert read.text == MILL
            missing = await client.call_tool("fetch", {"id": "none"})
            assert missing.is_error
            assert "no document 'none'" in missing.content[0].text
            assert "list_documents" in missing.content[0].text

    asyncio.run(talk())


def test_mcp_over_http() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def talk() -> None:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            answer = await client.call_tool("ask", {"question": "Who built the mill?"})
            assert answer.structured_content["answer"] == "Ada Holm"

    command = [sys.executable, "-m", "shardqa", "mcp", "--corpus", CORPUS, "--http", str(port)]
    with subprocess.Popen(command) as server:
        try:
            while server.poll() is None:
                with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            asyncio.run(talk())
        finally:
            server.terminate()
