"""Hidden text of a page, as its own style sheets say it: which elements never show, and what opens the others.

A rule hides where it holds on any screen and no rule of the page takes it back: `.panel.open` or `.panel:target` beside
`.panel` says that a reader opens it. Selectors are matched step by step: lexbor tries all ways up a deep page.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

MOST_RULES, MOST_SELECTOR = 2_000, 200  # rules of a page that show or hide; characters of a selector
MOST_STEPS = 50_000_000  # comparisons of an element with a part of a selector
MOST_LOOKS = 20_000_000  # at elements that are found so, and at those around them
MOST_AROUND, MOST_WITHIN = 64, 4  # elements around one, and blocks around a rule
OPENERS = ("aria-controls", "data-target", "data-bs-target", "href")  # of a panel by its id or class
SCRIPTS = "script:not([src], [type*=json])"
QUOTED = re.compile(r"""["'`]([^"'`\n]{1,100})["'`]""")
NAME = re.compile(r"[\w-]+")
BARE = re.compile(r"""<!--|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?""", re.DOTALL)
PIECE = re.compile(r"([^{};]*)([{};]|\Z)")
DECLARATION = re.compile(r"\s*(display|visibility)\s*:\s*([\w-]+)[^!]*(!\s*important\s*)?", re.IGNORECASE)
HIDING = ("none", "hidden", "collapse")
ALWAYS = re.compile(r"@layer.*|@supports (?!not).*|@media (?:[\w, ]*, ?)?(?:only )?(?:all|screen)(?: ?,.*)?")
NEVER = re.compile(r"@(?:media (?:only )?print\b|(?:-webkit-)?keyframes).*")
PSEUDO = re.compile(r"(?<!\\):{1,2}[\w-]+(?:\([^()]*\))?")
TOKEN = re.compile(r"[.#:]?(?:\\.|[\w-])+|\[[^\]]*\]")
SPECIFIC = {"#": 0, ".": 1, "[": 1, ":": 1}
BETWEEN, SIBLING = re.compile(r"[\s>+~]+(?!=)"), re.compile(r"[+~](?!=)")
CLOAK = "cloak"  # what hides a page until its script has run


class _Rule(NamedTuple):
    strength: tuple[bool, int, int, int]  # important, and the tokens of the selector: ids, classes, elements
    selector: str
    kind: str  # display or visibility
    hides: bool
    last: frozenset[str]  # tokens of the element itself, without those of its ancestors

    def is_undone_by(self, other: "_Rule") -> bool:
        """Returns whether the other shows, in some state, what this one hides."""
        return self.last <= other.last and sum(self.strength[1:]) < sum(other.strength[1:])


def opened(tree: LexborHTMLParser) -> set[str]:
    """Returns the ids and classes of what a link, a button or a script of the page speaks of."""
    values = [node.attributes.get(name) or "" for name in OPENERS for node in tree.css(f"[{name}]")]
    values = [value for value in values if "/" not in value]  # addresses of other pages
    scripts = [node.text(deep=True) or "" for node in tree.css(SCRIPTS)]
    scripts += [node.attributes.get("onclick") or "" for node in tree.css("[onclick]")]
    return set(NAME.findall(" ".join(itertools.chain(values, *map(QUOTED.findall, scripts)))))


def hide(tree: LexborHTMLParser) -> bool:
    """Gives the attribute `hidden` to what the page's sheets hide; returns False where they ask for too much work."""
    rules = list(itertools.islice(itertools.chain.from_iterable(map(_rules, _sheets(tree))), MOST_RULES + 1))
    shows = [rule for rule in rules if not rule.hides]
    rules = [rule for rule in rules if not (rule.hides and any(map(rule.is_undone_by, shows)))]
    if len(shows) == len(rules):
        return True
    if len(rules) > MOST_RULES:
        return False
    states: dict[tuple[int, str], tuple[LexborNode, bool]] = {}  # of elements, as the strongest rule says
    elements = _Elements(tree)
    for rule in sorted(rules, key=lambda rule: rule.strength):
        states |= {(node.mem_id, rule.kind): (node, rule.hides) for node in elements.of(rule.selector)}
    if elements.are_too_many:
        return False
    for node, hides in states.values():
        if hides and DECLARATION.search(node.attributes.get("style") or "") is None:
            node.attrs["hidden"] = ""
    return True


def _sheets(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css("style"):
        if node.parent is None or node.parent.tag not in ("noscript", "template", "svg"):
            media, sheet = node.attributes.get("media"), node.text(deep=True) or ""
            yield f"@media {media}{{{sheet}}}" if media else sheet


def _rules(sheet: str) -> Iterator[_Rule]:
    """Yields the rules of a sheet that show in some state, or hide in all."""
    above: list[str] = []  # what the blocks around begin with
    for words, mark in PIECE.findall(BARE.sub(_bare, sheet)):
        declaration = DECLARATION.fullmatch(words) if mark != "{" and 0 < len(above) <= MOST_WITHIN else None
        if declaration is not None:
            hides = declaration[2].lower() in HIDING
            around = [" ".join(one.lower().split()) for one in above[:-1]]
            if all(map(ALWAYS.fullmatch, around)) if hides else not any(map(NEVER.fullmatch, around)):
                for selector in (one for one in above[-1].split(",") if len(one) <= MOST_SELECTOR):
                    yield from _rule(selector, declaration, hides)
        if mark == "{":
            above.append(words.strip())
        elif mark == "}" and above:
            above.pop()


def _bare(match: re.Match[str]) -> str:
    """Returns a string that can't be taken for the marks of a sheet; a blank for a comment or another string."""
    return match[0] if NAME.fullmatch(match[0][1:-1]) else " "


def _rule(selector: str, declaration: re.Match[str], hides: bool) -> Iterator[_Rule]:
    tokens = TOKEN.findall(selector)
    kinds = Counter(SPECIFIC.get(token[0], 2) for token in tokens)
    strength = (declaration[3] is not None, kinds[0], kinds[1], kinds[2])
    last = frozenset(TOKEN.findall(BETWEEN.split(selector.strip())[-1]))
    *siblings, plain = SIBLING.split(PSEUDO.sub("", selector))
    is_state = hides and (siblings or plain != selector or CLOAK in selector)
    if plain.strip() and not is_state:
        yield _Rule(strength, plain, declaration[1].lower(), hides, last)


class _Elements:
    """A page's elements, as selectors find them whose steps are within one another (`.a .b > .c`)."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        self._count = len(tree.css("*"))
        self._steps = self._looks = 0

    @property
    def are_too_many(self) -> bool:
        return self._steps > MOST_STEPS or self._looks > MOST_LOOKS

    def of(self, selector: str) -> list[LexborNode]:
        nodes: list[LexborNode] = []
        levels = 0
        for step in selector.replace(">", " > ").split():
            if step == ">":
                levels = 1
                continue
            outer = {node.mem_id for node in nodes}
            nodes = self._matches(step, levels)
            if levels:
                nodes = [node for node in nodes if any(one in outer for one in _around(node, levels))]
            levels = MOST_AROUND
        return nodes

    def _matches(self, step: str, levels: int) -> list[LexborNode]:
        """Returns what one step finds, as long as the page's work is within bounds."""
        self._steps += self._count
        if self.are_too_many:
            return []
        try:
            nodes = self._tree.css(step)
        except SelectolaxError:  # of a browser's own, or damaged
            return []
        self._looks += len(nodes) * max(levels, 1)
        return [] if self.are_too_many else nodes


def _around(node: LexborNode, levels: int) -> Iterator[int]:
    for _ in range(levels):
        if node.parent is None:
            return
        node = node.parent
        yield node.mem_id
