"""SQuAD's JSON: each paragraph of an article is a document, named as `models.squad` names it in questions."""

from collections.abc import Iterator

from shardqa.answer import Document
from shardqa.errors import BadData
from shardqa.loader.opened import MAX_WHOLE, Item, Opened, Skipped
from shardqa.models import squad


def read(opened: Opened) -> Iterator[Item]:
    for _ in opened.chunks():  # bounds the size before the whole is parsed; also finds a damaged gzip file
        if opened.position > MAX_WHOLE:
            yield Skipped(opened.shown, f"more than {MAX_WHOLE:,} bytes; split it")
            return
    try:
        found = squad.read_squad(opened.path)
    except BadData as error:
        yield Skipped(opened.shown, f"not SQuAD's JSON: {error}")
        return
    for paragraph in found.paragraphs:
        yield of_paragraph(opened, paragraph)


def of_paragraph(opened: Opened, paragraph: squad.Paragraph) -> Item:
    return opened.document(paragraph.text, readable(paragraph.title), paragraph.id)


def readable(title: str) -> str:
    """SQuAD writes an article's title as its address does: Super_Bowl_50."""
    return title.replace("_", " ")


def documents(paragraphs: tuple[squad.Paragraph, ...]) -> list[Document]:
    """The same documents, from paragraphs that were read already."""
    return [
        Document(id=p.id, text=p.text, title=readable(p.title), source=p.title) for p in paragraphs if p.text.strip()
    ]
