"""Sums up what a run of ingest did, for people and as JSON."""

from dataclasses import dataclass, field

from shardqa.files.source_file import Lost, Recognized, Skipped, Textless
from shardqa.schema import Document, Ingested

REASONS_KEPT = 1000  # skipped documents told one by one; beyond, they are only counted


@dataclass(slots=True)
class Summary:
    documents: int = 0  # written
    unchanged: int = 0  # there already with the same text
    skipped: int = 0
    removed: int = 0  # documents whose files have gone
    lost: int = 0  # parts of documents that could not be read; the rest of them was taken
    textless: dict[str, int] = field(default_factory=dict)  # files that hold no text to lose, by kind: {"pictures": 12}
    passages: int = 0
    characters: int = 0  # of documents written and unchanged
    bytes: int = 0  # UTF-8 bytes of the same
    bytes_written: int = 0  # of documents written alone
    stored: int = 0  # bytes of the source whose documents are all in: never more than was read
    seconds: float = 0.0
    reasons: list[Skipped] = field(default_factory=list)  # the first REASONS_KEPT skipped
    warnings: list[str] = field(default_factory=list)
    losses: list[Lost] = field(default_factory=list)  # the first REASONS_KEPT lost

    def note(self, item: Skipped | Lost | Textless | Recognized) -> None:
        if isinstance(item, Skipped):
            self.skipped += 1
            self.reasons += [item] if len(self.reasons) < REASONS_KEPT else []
        elif isinstance(item, Lost):
            self.lost += 1
            self.losses += [item] if len(self.losses) < REASONS_KEPT else []
        elif isinstance(item, Textless):
            self.textless[item.kind] = self.textless.get(item.kind, 0) + 1

    def count(self, document: Document, outcome: Ingested, late: bool = False) -> None:
        """Counts a document's outcome; `late`: an earlier try of this run has put it there."""
        size = bytes_of(document)
        if outcome.changed or late:
            self.documents += 1
            self.bytes_written += size
        else:
            self.unchanged += 1
        self.passages += outcome.passages
        self.characters += outcome.characters
        self.bytes += size

    @property
    def mb_per_minute(self) -> float:
        """Returns the text written, in 10^6 bytes per minute; documents that were only compared don't count."""
        return self.bytes_written / 1e6 / (self.seconds / 60) if self.seconds else 0.0


def bytes_of(document: Document) -> int:
    return len(document.text.encode(errors="surrogatepass"))  # lone surrogates are the engine's to refuse
