"""A split reader's settings: its lower layers see question and passage apart, the upper ones together.

What the lower layers say of a passage is then the same for every question, so that it can be computed once and kept
(Cao et al. 2020, DeFormer). That holds only if a passage's places do not depend on the question's length: they begin at
a fixed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shardqa.errors import BadModel

SPLIT_LAYERS, PASSAGE_PLACE = "split_layers", "passage_place"
"""Settings in ``config.json``."""

USUAL_PLACE = 16
"""Where a passage begins unless the settings say otherwise: as behind a question of 14 wordpieces, SQuAD's usual."""


@dataclass(frozen=True, slots=True)
class Split:
    """Which layers see question and passage apart."""

    layers: int = 0
    """So many, from the lowest; 0 for a reader that is not split."""
    passage_place: int = USUAL_PLACE
    """The place of a passage's first token."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Split:
        """What a ``config.json`` says; raises BadModel for what can't be."""
        found = cls(config.get(SPLIT_LAYERS, 0), config.get(PASSAGE_PLACE, USUAL_PLACE))
        layers = config["num_hidden_layers"]
        if type(found.layers) is not int or not 0 <= found.layers < layers:
            raise BadModel(f"{SPLIT_LAYERS} is {found.layers!r}, a whole number from 0 to {layers - 1} is needed")
        if type(found.passage_place) is not int or found.passage_place < 0:
            raise BadModel(f"{PASSAGE_PLACE} is {found.passage_place!r}, a whole number from 0 is needed")
        return found

    def settings(self) -> dict[str, Any]:
        """For ``config.json``; nothing where nothing is split."""
        return {SPLIT_LAYERS: self.layers, PASSAGE_PLACE: self.passage_place} if self.layers else {}


TOGETHER = Split()
