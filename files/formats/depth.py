"""Estimates how deep HTML nests, from its tags alone, before a parser builds the tree.

The parser's time grows with the square of the depth: 20,000 elements within one another take it half a second, 300,000
two minutes. Browsers stop at 512.
"""

import re

from shardqa.errors import BadDocument

MAX_DEPTH = 10_000  # elements that are open at once; soup that never closes its <font> stays below
MAX_STEPS = 20_000_000  # of looking for what an end tag closes; real pages take a few for each
NEAR = 64  # elements among which a <p> or <li> finds the one that it closes
TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")


def tags(names: str) -> frozenset[str]:
    """Returns the names in a text with blanks between them."""
    return frozenset(names.split())


VOID = tags("area base br col embed hr img input link meta param source track wbr")
HEADING = re.compile(r"h[1-6]\Z")  # one closes another
CLOSES_ITS_LIKE = tags("h p li dd dt option optgroup tr td th thead tbody tfoot a nobr button")
LISTS = tags("ul ol dl select")  # an item of one does not close an item that the list is in
SCOPES = tags("table td th caption template object marquee applet html svg math foreignobject")


def check(html: str) -> None:
    """Raises BadDocument where more elements are within one another than any page has."""
    stack: list[str] = []
    count: dict[str, int] = {}
    steps = 0
    for end, tag in TAG.findall(html):
        name = HEADING.sub("h", tag.lower())
        if name in VOID:
            continue
        if end or name in CLOSES_ITS_LIKE:
            at, count_of_steps = _found(stack, name, count, len(stack) if end else NEAR)
            steps += count_of_steps
            if at is not None:
                for other in stack[at:]:
                    count[other] -= 1
                del stack[at:]
        if not end:
            stack.append(name)
            count[name] = count.get(name, 0) + 1
        if len(stack) > MAX_DEPTH or steps > MAX_STEPS:
            raise BadDocument(f"more than {MAX_DEPTH:,} elements of it are within one another; that is no page")


def _found(stack: list[str], name: str, count: dict[str, int], most: int) -> tuple[int | None, int]:
    """Returns (the place of the element that this tag closes, elements looked at); a scope's border ends the search."""
    if not count.get(name):
        return None, 0
    for depth in range(1, min(most, len(stack)) + 1):
        other = stack[-depth]
        if other == name:
            return len(stack) - depth, depth
        if other in SCOPES or (most == NEAR and other in LISTS):
            return None, depth
    return None, min(most, len(stack))
