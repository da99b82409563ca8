"""Makes an explanation of what was ranked and read. Pure functions."""

from collections.abc import Sequence
from dataclasses import asdict

from shardqa.engine.merging import ScoredSpan
from shardqa.schema import FoundPassage, Graph, GraphEdge, GraphNode, ReadSpan, Term
from shardqa.statistics import CorpusStatistics


def terms_of(statistics: CorpusStatistics, passages: Sequence[FoundPassage]) -> list[Term]:
    """The question's terms with their numbers over the whole corpus."""
    idf = {part.term: part.idf for passage in passages if passage.why for part in passage.why.terms}
    return [
        Term(term=term, df=statistics.df.get(term, 0), cf=count, idf=idf.get(term, 0.0))
        for term, count in statistics.cf.items()
    ]


def span_of(own: ScoredSpan) -> ReadSpan:
    span, weights, signals = own.span, asdict(own.scoring.answer), asdict(own.signals)
    bias = weights.pop("bias")
    return ReadSpan(
        answer=span.text,
        document=span.document.id,
        **{name: getattr(span, name) for name in ("start", "end", "span_logit", "null_logit")},
        passage=span.passage.key,
        **signals,
        precedence=own.precedence,
        log_odds={"bias": bias, **{name: weight * signals[name] for name, weight in weights.items()}},
        score=own.score,
    )


def graph_of(question: str, passages: Sequence[FoundPassage], spans: Sequence[ReadSpan]) -> Graph:
    """The graph leads from the question over its terms to passages, their documents and shards, and on to spans."""
    nodes = {"question": GraphNode(id="question", kind="question", label=question)}
    edges = list[GraphEdge]()

    def add(source: str, target: GraphNode, weight: float) -> None:
        nodes.setdefault(target.id, target)
        edges.append(GraphEdge(source=source, target=target.id, weight=weight))

    terms = {part.term: part.idf for passage in passages if passage.why for part in passage.why.terms if part.tf}
    for term, idf in terms.items():
        add("question", GraphNode(id=f"term {term}", kind="term", label=term), idf)
    keys = {passage.key for passage in passages}
    for passage in passages:
        node = GraphNode(id=passage.key, kind="passage", label=f"{passage.document}, {passage.start:,}")
        for part in passage.why.terms if passage.why else ():
            if part.tf:
                add(f"term {part.term}", node, part.body)
        if passage.why and passage.why.bridge and passage.why.bridge.passage in keys:
            add(passage.why.bridge.passage, node, passage.why.bridge.score)
        nodes.setdefault(node.id, node)
        document = GraphNode(
            id=f"document {passage.corpus} {passage.document}", kind="document", label=passage.document
        )
        add(passage.key, document, passage.score)
        shard = GraphNode(id=f"shard {passage.shard}", kind="shard", label=passage.node)
        if not any(edge.source == document.id for edge in edges):
            add(document.id, shard, 1.0)
    for n, span in enumerate(spans):
        add(span.passage, GraphNode(id=f"answer {n}", kind="answer", label=span.answer), span.score)
    return Graph(nodes=list(nodes.values()), edges=edges)
