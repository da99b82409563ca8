"""The graph that `shardqa-models graph` writes: what leads where, in each format."""

import io
import json
from xml.etree import ElementTree

import networkx as nx
import pytest

from shardqa_toolchain.cli.graph import WRITERS, CorpusPassage, GraphFormat, graph_of

PASSAGES = [
    CorpusPassage("mill", 0, "The mill of Brennick", "The mill was built by Ilse Marquardt."),
    CorpusPassage("mill", 1, "The mill of Brennick", "It burnt down."),
    CorpusPassage("ilse", 0, "Ilse Marquardt", "She was born in Saltmere."),
]


def test_a_name_leads_to_the_document_that_bears_it() -> None:
    edges = {(start, end): of["kind"] for start, end, of in graph_of(PASSAGES).edges(data=True)}
    assert edges["term:mill", "passage:mill:0"] == "in"
    assert edges["passage:mill:0", "document:mill"] == "of"
    assert edges["document:mill", "passage:mill:1"] == "has"
    assert [pair for pair, kind in edges.items() if kind == "bridge"] == [("passage:mill:0", "document:ilse")]


def test_each_format_can_be_read_again() -> None:
    graph = graph_of(PASSAGES)
    again = nx.read_graphml(io.BytesIO(WRITERS[GraphFormat.GRAPHML](graph).encode()))
    assert set(again.edges) == set(graph.edges)
    node_link = json.loads(WRITERS[GraphFormat.JSON](graph))
    assert set(nx.node_link_graph(node_link, edges="edges").nodes) == set(graph.nodes)
    assert WRITERS[GraphFormat.DOT](graph).count(" -> ") == graph.number_of_edges()
    assert len(ElementTree.fromstring(WRITERS[GraphFormat.SVG](graph)).findall("{*}g")) == graph.number_of_nodes()


@pytest.mark.parametrize("format", GraphFormat)
def test_a_corpus_without_documents_is_an_empty_graph(format: GraphFormat) -> None:
    assert WRITERS[format](graph_of([]))
