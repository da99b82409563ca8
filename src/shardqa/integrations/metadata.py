"""The metadata that frameworks keep beside a passage. It needs none of them."""

from typing import Any

from shardqa.schema import FoundPassage


def metadata_of(passage: FoundPassage) -> dict[str, Any]:
    """The fields that frameworks keep beside a passage: the document's own metadata, and where it stands."""
    return {
        **passage.metadata,
        "source": passage.document,
        "place": str(passage.place) if passage.place is not None else "",
        **{name: getattr(passage, name) for name in ("title", "start", "end", "written", "score")},
    }
