"""Plain text: a file is a document; but where a .txt begins with a `# Title` line, each such line begins one."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice

from shardqa import checks
from shardqa.files.composer import Composer
from shardqa.files.plain_tables import parts
from shardqa.files.source_file import Item, SourceFile

TITLE_MARK = "# "
TXT_NAME = re.compile(r"\.te?xt(?:\.gz)?\Z", re.IGNORECASE)
PAGES = re.compile(r"(?:\s*\n)?# .*(?:\n(?!#)|\Z)")  # two such lines are the comment that settings begin with


def read(source: SourceFile) -> Iterator[Item]:
    lines = source.lines()
    start = list(_beginning(lines))
    if TXT_NAME.search(source.name) and PAGES.match("\n".join(start)):
        yield from _pages(source, chain(start, lines))
    else:
        text = "".join(f"{line}\n" for line in _bounded(chain(start, lines)))
        paragraphs = text.split("\n\n")
        if all(parts(paragraph) == [paragraph] for paragraph in paragraphs):
            yield source.document(text)
            return
        composer = Composer()
        for paragraph in paragraphs:
            composer.lines(paragraph)
        yield from source.composed(composer)


def _beginning(lines: Iterator[str]) -> Iterator[str]:
    """Yields the lines up to the first that is not blank, and one more."""
    for line in lines:
        yield line
        if line.strip():
            yield from islice(lines, 1)
            return


def _bounded(lines: Iterator[str]) -> Iterator[str]:
    """Yields the lines; stops a document that is too large before it fills the memory."""
    size = 0
    for line in lines:
        size += len(line) + 1
        checks.length(size)
        yield line


def _pages(source: SourceFile, lines: Iterator[str]) -> Iterator[Item]:
    """Yields a document for each `# Title`, named by it below the file; a repeated title gets a number."""
    counts: Counter[str] = Counter()
    title, body = "", list[str]()
    size = 0  # characters of the body, so that one page without end does not fill the memory
    for line in lines:
        size += len(line) + 1
        if line.startswith(TITLE_MARK):
            if title:
                yield _page(source, title, body, counts)
            title, body, size = line.removeprefix(TITLE_MARK).strip(), [], 0
        else:
            checks.length(size, f"the page {title[:80]!r}")
            body.append(line)
    yield _page(source, title, body, counts)


def _page(source: SourceFile, title: str, body: list[str], counts: Counter[str]) -> Item:
    counts[title] += 1
    number = f" ({counts[title]})" if counts[title] > 1 else ""
    return source.document("\n".join(body).strip("\n"), title, f"{source.name}/{title}{number}")
