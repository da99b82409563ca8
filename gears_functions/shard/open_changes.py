"""Documents that a function is changing, each with its passages that the watch passed over meanwhile."""

from shardqa import keys


class OpenChanges:
    def __init__(self) -> None:
        self._passed_over: dict[tuple[str, str], set[str]] = {}  # (corpus, document) -> keys of passages

    def begin(self, doc: keys.DocKey) -> None:
        self._passed_over[doc.corpus, doc.document] = set()

    def end(self, doc: keys.DocKey) -> set[str]:
        """Ends the change of a document; returns the passages that the watch passed over meanwhile."""
        return self._passed_over.pop((doc.corpus, doc.document))

    def passes_over(self, passage: keys.PassageKey, name: str) -> bool:
        """Returns whether the passage's document is being changed: the watch leaves it to the function."""
        names = self._passed_over.get((passage.corpus, passage.document))
        if names is None:
            return False
        names.add(name)
        return True

    def indexed(self, doc: keys.DocKey) -> None:
        """Notes that the function has put what it wrote into the index: the events of that tell nothing new."""
        self._passed_over[doc.corpus, doc.document].clear()
