"""SQuAD's JSON: each paragraph of an article is a document, named as `models.squad` names it in questions.

A list of objects with a `text` each is taken as well, as lines of JSON are.
"""

import json
from collections.abc import Iterator

from shardqa.errors import BadData, BadDocument
from shardqa.loader.encodings import decoded
from shardqa.loader.formats import jsonl
from shardqa.loader.source_file import MAX_WHOLE, Item, SourceFile
from shardqa.models import squad
from shardqa.schema import Document


def read(source: SourceFile) -> Iterator[Item]:
    try:
        root = json.loads(decoded(source.read_all(MAX_WHOLE, text=True)))
    except (ValueError, RecursionError) as error:
        raise BadDocument(f"not JSON: {str(error)[:120]}") from None
    if isinstance(root, list) and any(isinstance(entry, dict) and "text" in entry for entry in root):
        for number, entry in enumerate(root, 1):
            source.advance((number - 1) / len(root))
            yield jsonl.of_entry(source, number, entry, "entry")
        return
    try:
        found = squad.of_squad(source.label, root)
    except BadData as error:
        raise BadDocument(f"not SQuAD's JSON: {error}") from None
    for n, paragraph in enumerate(found.paragraphs):
        source.advance(n / len(found.paragraphs))
        yield of_paragraph(source, paragraph)


def of_paragraph(source: SourceFile, paragraph: squad.Paragraph) -> Item:
    return source.document(paragraph.text, readable(paragraph.title), paragraph.id)


def readable(title: str) -> str:
    """SQuAD writes an article's title as its address does: Super_Bowl_50."""
    return title.replace("_", " ")


def documents(paragraphs: tuple[squad.Paragraph, ...]) -> list[Document]:
    """Makes documents of paragraphs that were read already."""
    return [
        Document(id=p.id, text=p.text, title=readable(p.title), source=p.title) for p in paragraphs if p.text.strip()
    ]
