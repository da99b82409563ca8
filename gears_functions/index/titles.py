"""Titles of a shard's documents, by the words that they are named with: what bridges lead to (shardqa/bridges.py).

A document's title is its first passage's. It is found by its content words, stemmed as texts are; one with a note in
brackets at its end, "Ed Wood (film)", also without, and "Ilse Marquardt, Engineer" by what stands before the comma.
Rebuilt with the index from the `passage:` keys. Owned by an Index; one thread.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache

from shardqa import bridges
from shardqa.analysis import Analysed, analyse

NOTE = re.compile(r"\s*\([^()]*\)\s*\Z")
REST = re.compile(r"(?:[,:;]|\s[-–—|])\s.*\Z", re.DOTALL)
_of_head = lru_cache(64)(analyse)  # rows of a file share what stands before the comma
HEAD = 2  # words that what stands before a comma must have: Paris, Texas is not Paris


class Titles:
    def __init__(self) -> None:
        self._of: dict[str, tuple[str, ...]] = {}  # document id -> forms of its title
        self._documents: dict[str, dict[str, None]] = {}  # form -> ids that bear it
        self._first_words: Counter[str] = Counter()  # of all forms: most words of a text begin none

    def __len__(self) -> int:
        """Returns how many documents can be named."""
        return len(self._of)

    def put(self, document: str, title: str, terms: Analysed) -> None:
        self.remove(document)
        forms = _forms(title, terms)
        if not forms:
            return
        self._of[document] = forms
        for form in forms:
            self._documents.setdefault(form, {})[document] = None
            self._first_words[form.partition(" ")[0]] += 1

    def remove(self, document: str) -> None:
        for form in self._of.pop(document, ()):
            bearers = self._documents[form]
            del bearers[document]
            if not bearers:
                del self._documents[form]
            first = form.partition(" ")[0]
            self._first_words[first] -= 1
            if not self._first_words[first]:
                del self._first_words[first]

    def named_in(self, words: Sequence[str]) -> set[str]:
        """Returns the titles that stand in a text, given by its words."""
        titles = set[str]()
        for start, word in enumerate(words):
            if word in self._first_words:
                stretch = words[start : start + bridges.LONGEST]
                forms = (" ".join(stretch[:end]) for end in range(1, len(stretch) + 1))
                titles.update(form for form in forms if form in self._documents)
        return titles

    def among(self, documents: Collection[str]) -> int:
        """Returns how many of these documents can be named."""
        return sum(one in self._of for one in documents)

    def count(self, title: str, among: Collection[str] | None) -> int:
        """Returns how many documents bear a title, of all (None) or of some."""
        bearers = self.bearers(title)
        return len(bearers) if among is None else sum(one in among for one in bearers)

    def bearers(self, title: str) -> Collection[str]:
        """Returns the ids of the documents that bear a title."""
        return self._documents.get(title, {})


def _forms(title: str, terms: Analysed) -> tuple[str, ...]:
    """Returns the ways in which a text may write a title, as stemmed words."""
    plain = NOTE.sub("", title)
    head = REST.sub("", plain)
    ways = [terms.content] if plain == title else [terms.content, analyse(plain).content]
    if head != plain and len(words := _of_head(head).content) >= HEAD:
        ways.append(words)
    return tuple(dict.fromkeys(" ".join(words) for words in ways if 0 < len(words) <= bridges.LONGEST))
