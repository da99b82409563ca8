"""Hidden text of a page, by the rules of one class or id in its own style sheets, and what opens the others.

Such a rule hides where no later one shows a class or id of the same element, nor any that holds in some state or on
some screen: `.panel.open` or `.panel:target` beside `.panel` says that a reader opens it. There is no cascade.
"""

import itertools
import math
import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser

MOST_RULES = 2_000  # of a page that show or hide
OPENERS = ("aria-controls", "data-target", "data-bs-target", "href")  # of a panel by its id or class
SCRIPTS = "script:not([src], [type*=json])"
QUOTED = re.compile(r"""["'`]([^"'`\n]{1,100})["'`]""")
NAME = re.compile(r"[\w-]+")
BARE = re.compile(r"""<!--|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?""", re.DOTALL)
PIECE = re.compile(r"([^{};]*)([{};]|\Z)")
DECLARATION = re.compile(r"\s*(?:display|visibility)\s*:\s*([\w-]+).*", re.IGNORECASE | re.DOTALL)
HIDING = ("none", "hidden", "collapse")
ALWAYS = re.compile(r"@layer.*|@supports (?!not).*|@media (?:[\w, ]*, ?)?(?:only )?(?:all|screen)(?: ?,.*)?")
NEVER = re.compile(r"@(?:media (?:only )?print\b|(?:-webkit-)?keyframes).*")
SINGLE = re.compile(r"(?:[A-Za-z]\w*)?([.#](?:\\.|[\w-])+)")
NAMES = re.compile(r"[.#](?:\\.|[\w-])+")
LOADING = "cloak"  # what hides a page until its script has run


def opened(tree: LexborHTMLParser) -> set[str]:
    """Returns the ids and classes of what a link, a button or a script of the page speaks of."""
    values = [node.attributes.get(name) or "" for name in OPENERS for node in tree.css(f"[{name}]")]
    values = [value for value in values if "/" not in value]  # addresses of other pages
    scripts = [node.text(deep=True) or "" for node in tree.css(SCRIPTS)]
    scripts += [node.attributes.get("onclick") or "" for node in tree.css("[onclick]")]
    return set(NAME.findall(" ".join(itertools.chain(values, *map(QUOTED.findall, scripts)))))


def hide(tree: LexborHTMLParser) -> bool:
    """Gives the attribute `hidden` to what the page's sheets hide; returns False where they have too many rules."""
    hides: dict[str, float] = {}  # names by the number of the last rule
    shows: dict[str, float] = {}
    rules = itertools.chain.from_iterable(map(_rules, _sheets(tree)))
    for n, (selector, is_hiding, is_sure) in enumerate(itertools.islice(rules, MOST_RULES + 1)):
        single = SINGLE.fullmatch(selector)
        if is_hiding and single and is_sure and LOADING not in selector:
            hides[single[1].replace("\\", "")] = n
        elif not is_hiding:
            shows |= {name.replace("\\", ""): n if single and is_sure else math.inf for name in NAMES.findall(selector)}
        if n == MOST_RULES:
            return False
    for node in tree.css("[class], [id]") if hides else ():
        names = [f".{name}" for name in (node.attributes.get("class") or "").split()]
        names.append(f"#{node.attributes.get('id')}")
        last = max(hides.get(name, -1) for name in names)
        if last > max(shows.get(name, -1) for name in names) and not DECLARATION.search(
            node.attributes.get("style") or ""
        ):
            node.attrs["hidden"] = ""
    return True


def _sheets(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css("style"):
        if node.parent is None or node.parent.tag not in ("noscript", "template", "svg"):
            media, sheet = node.attributes.get("media"), node.text(deep=True) or ""
            yield f"@media {media}{{{sheet}}}" if media else sheet


def _rules(sheet: str) -> Iterator[tuple[str, bool, bool]]:
    """Yields (selector, whether it hides, whether it holds on every screen) of rules that show or hide."""
    above: list[str] = []  # what the blocks around begin with
    for words, mark in PIECE.findall(BARE.sub(" ", sheet)):
        if mark != "{" and above and (declaration := DECLARATION.fullmatch(words)):
            around = [" ".join(one.lower().split()) for one in above[:-1]]
            if not any(map(NEVER.fullmatch, around)):
                is_sure = all(map(ALWAYS.fullmatch, around))
                yield from ((one.strip(), declaration[1].lower() in HIDING, is_sure) for one in above[-1].split(","))
        if mark == "{":
            above.append(words.strip())
        elif mark == "}" and above:
            above.pop()
