"""Plain text: a file is a document, unless it begins with a `# Title` line; then each such line begins one."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from shardqa import checks
from shardqa.loader.source_file import Item, SourceFile

PAGE = "# "


def read(source: SourceFile) -> Iterator[Item]:
    lines = source.lines()
    start = list(_to_first_words(lines))
    if start and start[-1].startswith(PAGE):
        yield from _pages(source, chain(start[-1:], lines))
    else:
        yield source.document("".join(f"{line}\n" for line in _bounded(chain(start, lines))))


def _to_first_words(lines: Iterator[str]) -> Iterator[str]:
    """Yields the lines up to and with the first that is not blank."""
    for line in lines:
        yield line
        if line.strip():
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
        if line.startswith(PAGE):
            if title:
                yield _page(source, title, body, counts)
            title, body, size = line.removeprefix(PAGE).strip(), [], 0
        else:
            checks.length(size, f"the page {title[:80]!r}")
            body.append(line)
    yield _page(source, title, body, counts)


def _page(source: SourceFile, title: str, body: list[str], counts: Counter[str]) -> Item:
    counts[title] += 1
    number = f" ({counts[title]})" if counts[title] > 1 else ""
    return source.document("\n".join(body).strip("\n"), title, f"{source.name}/{title}{number}")
