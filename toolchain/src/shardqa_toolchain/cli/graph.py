"""`shardqa-models graph`: what of a corpus leads where, as a networkx graph for Gephi, Graphviz and notebooks."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from enum import StrEnum
from html import escape
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from shardqa import bridges, keys
from shardqa.analysis import analyse
from shardqa.cli.connection import with_engine
from shardqa.cli.options import CorpusOption, JsonOption, Target, on_cluster
from shardqa.engine import Engine
from shardqa.gears_functions.index.titles import Titles
from shardqa_toolchain.cli.needs import need

if TYPE_CHECKING:
    from networkx import DiGraph

DRAWN = 300  # nodes of a picture, those of the most links: no eye follows more
SIDE = 1_000  # of a picture, pixels
COLOURS = {"term": "#b58900", "passage": "#268bd2", "document": "#dc322f"}


class GraphFormat(StrEnum):
    GRAPHML = "graphml"
    DOT = "dot"
    SVG = "svg"
    JSON = "json"


class CorpusPassage(NamedTuple):
    document: str
    n: int
    title: str
    text: str


@on_cluster
def graph(
    target: Target,
    corpus: CorpusOption = None,
    format_: Annotated[
        GraphFormat, typer.Option("--format", help="svg draws the 300 nodes of the most links.")
    ] = GraphFormat.GRAPHML,
    as_json: JsonOption = False,
) -> None:
    """Print what leads where in a corpus: terms, passages, documents, bridges by titles.

    A term leads to the passages that hold it, a passage to its document, a document to its passages. JSON is
    networkx' node-link form.

    Example: shardqa-models graph --corpus seeds --format graphml > seeds.graphml
    """
    need("networkx", extra="graph")
    settings = target.settings(corpus=corpus)

    async def work(engine: Engine) -> list[CorpusPassage]:
        return [one async for one in _passages(engine, settings.corpus)]

    drawn = graph_of(with_engine(settings, work))
    typer.echo(WRITERS[GraphFormat.JSON if as_json else format_](drawn))


async def _passages(engine: Engine, corpus: str) -> AsyncIterator[CorpusPassage]:
    async for document in engine.catalogue.every_document(corpus):
        wanted = [keys.passage(corpus, document.id, n) for n in range(document.passages)]
        for n, text in enumerate(await asyncio.gather(*(engine.shards.by_key(key, "HGET", "text") for key in wanted))):
            if text is not None:  # it may be gone meanwhile
                yield CorpusPassage(document.id, n, document.title, text.decode())


def node_id(kind: str, *parts: object) -> str:
    return ":".join(map(str, (kind, *parts)))


def graph_of(passages: Iterable[CorpusPassage]) -> "DiGraph[str]":
    import networkx as nx

    graph: DiGraph[str] = nx.DiGraph()
    words_of, titles, frequency = dict[str, list[str]](), Titles(), Counter[str]()
    for passage in passages:
        document, node = node_id("document", passage.document), node_id("passage", passage.document, passage.n)
        if passage.n == 0:
            titles.put(passage.document, passage.title, analyse(passage.title))
        graph.add_node(document, kind="document", label=passage.title or passage.document)
        graph.add_node(node, kind="passage", label=passage.text)
        graph.add_edge(node, document, kind="of", weight=1.0)
        graph.add_edge(document, node, kind="has", weight=1.0)
        words_of[node] = analyse(passage.text).content
        frequency.update(words_of[node])
    for node, words in words_of.items():
        for word, times in Counter(words).items():
            graph.add_node(f"term:{word}", kind="term", label=word)
            graph.add_edge(f"term:{word}", node, kind="in", weight=times / frequency[word])
    for node, words in words_of.items():
        named = bridges.NamedTitles({one: titles.count(one, None) for one in titles.named_in(words)}, frequency)
        for title in filter(lambda one: named.is_name(one, len(words_of)), named.titles):
            for document in titles.bearers(title):
                if not graph.has_edge(node, f"document:{document}"):
                    graph.add_edge(node, f"document:{document}", kind="bridge", weight=1.0)
    return graph


def _graphml(graph: "DiGraph[str]") -> str:
    import networkx as nx

    return "\n".join(nx.generate_graphml(graph))


def _json(graph: "DiGraph[str]") -> str:
    import networkx as nx

    return json.dumps(nx.node_link_data(graph, edges="edges"), ensure_ascii=False)


def _dot(graph: "DiGraph[str]") -> str:
    def quoted(of: dict[str, Any]) -> str:
        return ", ".join(f"{name}={json.dumps(str(value), ensure_ascii=False)}" for name, value in of.items())

    nodes = [f"  {json.dumps(node, ensure_ascii=False)} [{quoted(of)}];" for node, of in graph.nodes(data=True)]
    edges = [
        f"  {json.dumps(start, ensure_ascii=False)} -> {json.dumps(end, ensure_ascii=False)} [{quoted(of)}];"
        for start, end, of in graph.edges(data=True)
    ]
    return "\n".join(["digraph corpus {", *nodes, *edges, "}"])


def _svg(graph: "DiGraph[str]") -> str:
    import networkx as nx

    links: dict[str, int] = dict(graph.degree())
    graph = graph.subgraph(sorted(links, key=lambda node: (-links[node], node))[:DRAWN])
    places = {
        node: (SIDE / 2 * (1 + 0.95 * x), SIDE / 2 * (1 + 0.95 * y))
        for node, (x, y) in nx.spring_layout(graph, seed=1).items()
    }
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}" font-family="sans-serif">']
    for (start, end), kind in nx.get_edge_attributes(graph, "kind").items():
        (x, y), (x2, y2) = places[start], places[end]
        colour = "#dc322f" if kind == "bridge" else "#93a1a1"
        lines.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" opacity="0.5"/>')
    top = max(links.values(), default=1)
    for node, of in graph.nodes(data=True):
        x, y = places[node]
        radius, name = 2 + 12 * (links[node] / top) ** 0.5, escape(of["label"][:200])
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{COLOURS[of["kind"]]}"/>'
        text = "" if of["kind"] == "passage" else f'<text x="{x:.1f}" y="{y:.1f}" font-size="9">{name[:40]}</text>'
        lines.append(f"<g><title>{name}</title>{circle}{text}</g>")
    return "\n".join([*lines, "</svg>"])


WRITERS: dict[GraphFormat, Callable[["DiGraph[str]"], str]] = {
    GraphFormat.GRAPHML: _graphml,
    GraphFormat.DOT: _dot,
    GraphFormat.SVG: _svg,
    GraphFormat.JSON: _json,
}
