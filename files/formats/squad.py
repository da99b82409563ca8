"""JSON: each paragraph of SQuAD's is a document, named `<title>/<its number>`; other JSON is one.

A list of objects with a `text` each is taken as lines of JSON are, and messages of a chat as such.
"""

import json
from collections.abc import Iterator
from typing import Any

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer
from shardqa.files.encodings import decoded
from shardqa.files.formats import chats, jsonl, values
from shardqa.files.source_file import MAX_WHOLE, Item, SourceFile


def read(source: SourceFile) -> Iterator[Item]:
    try:
        root = json.loads(decoded(source.read_all(MAX_WHOLE, text=True)))
    except (ValueError, RecursionError) as error:
        raise BadDocument(f"not JSON: {str(error)[:120]}") from None
    if found := chats.messages(root, {}):
        yield from chats.compose(source, found)
        return
    if isinstance(root, list) and any(isinstance(entry, dict) and "text" in entry for entry in root):
        for number, entry in enumerate(root, 1):
            source.advance((number - 1) / len(root))
            yield jsonl.of_entry(source, number, entry, "entry")
        return
    articles = _articles(root)
    if articles is None:
        composer = Composer()
        values.add(composer, root)
        yield from source.composed(composer)
        return
    for count, (title, texts) in enumerate(articles):
        source.advance(count / len(articles))
        for number, text in enumerate(texts):
            yield source.document(text, readable(title), f"{title}/{number}")


def _articles(root: Any) -> list[tuple[str, list[str]]] | None:
    """Returns (title, texts) of each article; None for JSON that is not SQuAD's."""
    try:
        articles = [(one["title"], [each["context"] for each in one["paragraphs"]]) for one in root["data"]]
    except (LookupError, TypeError):
        return None
    return articles if all(isinstance(text, str) for title, texts in articles for text in (title, *texts)) else None


def readable(title: str) -> str:
    """Returns an article's title with blanks: SQuAD writes `Super_Bowl_50`."""
    return title.replace("_", " ")
