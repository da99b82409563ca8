"""Facts about a model, as ``card.json`` beside it: where it comes from, how it was made, what it scores.

A card travels with its model: each step that makes one model of another (`derive`) writes down what it did and how the
check of its result came out. A model is addressed by its content; the card is no part of that, so that a score may be
added later.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from shardqa.errors import BadModel
from shardqa.models.shipped import CARD_FILE, sha256

NETWORK_FILES = ("model.onnx", "model.safetensors")  # one of these makes a folder a model
MODEL_FILES = (*NETWORK_FILES, "tokenizer.json", "config.json", "scoring.json")
"""The files whose content is a model's address."""

UNKNOWN = "unknown"  # what a card says of an origin or licence that nobody wrote down
Json = dict[str, Any]  # a JSON object


@dataclass(frozen=True, slots=True)
class CardStep:
    """One thing that was done to make the model."""

    name: str  # such as "train qa", "distil", "export", "quantize"
    settings: Json = field(default_factory=dict)
    verdict: Json | None = None
    """What the check of the result against its source found; None where there is no such check."""


@dataclass(frozen=True, slots=True)
class Score:
    """A figure of the model on a set."""

    set: str
    metric: str
    value: float
    setting: str = ""  # under which conditions, such as "right paragraph given, 2,000 questions"


@dataclass(frozen=True, slots=True)
class Figure:
    """A size or a latency."""

    what: str
    value: float
    unit: str
    setting: str = ""  # under which conditions, such as "1 x 128 tokens, one thread, AMD EPYC"


@dataclass(frozen=True, slots=True)
class Card:
    """A model's card."""

    name: str
    origin: str = UNKNOWN
    licence: str = UNKNOWN
    data: tuple[str, ...] = ()  # the data sets that it learnt from, with their licences
    recipe: Json = field(default_factory=dict)  # how to make it again
    steps: tuple[CardStep, ...] = ()  # oldest first
    scores: tuple[Score, ...] = ()
    sizes: tuple[Figure, ...] = ()
    latencies: tuple[Figure, ...] = ()

    @classmethod
    def load(cls, folder: Path) -> Card:
        """Read ``card.json`` of a folder; raises BadModel when it is missing or not of this form."""
        path = folder / CARD_FILE
        try:
            content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
        except (OSError, ValueError) as error:
            raise BadModel(f"{path} can't be read: {error}; write it again or take it away") from None
        return _card(str(path), content)

    @classmethod
    def find(cls, folder: Path) -> Card | None:
        """The card of a folder, None where there is none; raises BadModel as `load` does."""
        return cls.load(folder) if (folder / CARD_FILE).exists() else None

    def save(self, folder: Path) -> None:
        """Write ``card.json`` into a folder, whole or not at all; raises OSError."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        temporary = folder / f".{CARD_FILE}.unfinished"
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(folder / CARD_FILE)
        finally:
            temporary.unlink(missing_ok=True)

    def with_step(self, step: CardStep) -> Card:
        """The card with one more step, the newest."""
        return replace(self, steps=(*self.steps, step))

    def with_size(self, what: str, value: float, unit: str) -> Card:
        """The card with a size; one of the same thing gives way."""
        new = Figure(what, float(value), unit)
        kept = (one for one in self.sizes if one.what != what)
        return replace(self, sizes=(*kept, new))


def derive(source: Path, out: Path, step: CardStep, name: str | None = None) -> Card:
    """Write into ``out`` the card of a model made from the one in ``source`` by ``step``, and return it.

    It is named as the folder is, unless given. A source may be a network's file alone, which has no card.

    Origin, licence, data, recipe and steps carry on; scores, sizes and latencies do not: they were the source's. The
    step's settings also get the source's address. A source without a card gives one whose origin says "unknown".
    Raises BadModel when the source holds no model or its card can't be read, OSError.
    """
    content = sha256(source) if source.is_file() else address(source)
    former = Card.find(source) if source.is_dir() else None
    origin = former or Card(source.name, f"{UNKNOWN}: made from {source.name}, which has no card")
    own_step = replace(step, settings={"source": content, **step.settings})
    card = replace(origin, name=name or out.name, scores=(), sizes=(), latencies=()).with_step(own_step)
    card.save(out)
    return card


def address(folder: Path) -> str:
    """The model's address: SHA-256 (hex) over the sorted lines "<name> <SHA-256 of the file>" of its MODEL_FILES.

    Raises BadModel when the folder holds no network or a file of it can't be read.
    """
    names = sorted(name for name in MODEL_FILES if (folder / name).is_file())
    if not set(names) & set(NETWORK_FILES):
        raise BadModel(f"{folder} holds no model: none of {', '.join(NETWORK_FILES)} is there; name a model's folder")
    try:
        lines = [f"{name} {sha256(folder / name)}\n" for name in names]
    except OSError as error:
        raise BadModel(f"{folder} can't be read: {error}") from None
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def _card(place: str, loaded: object) -> Card:
    fields = _object(place, loaded, Card)
    lists = {"steps": CardStep, "scores": Score, "sizes": Figure, "latencies": Figure}
    for name, kind in lists.items():
        fields[name] = tuple(
            kind(**_object(f"{place}, {name}[{number}]", entry, kind)) for number, entry in enumerate(fields[name])
        )
    for number, entry in enumerate(fields["data"]):
        _of_kind(f"{place}, data[{number}]", entry, "str")
    return Card(**{**fields, "data": tuple(fields["data"])})


def _object(place: str, loaded: object, kind: type[Card] | type[CardStep] | type[Score] | type[Figure]) -> Json:
    """The fields of a JSON object, each there and of its kind, and no others."""
    if not isinstance(loaded, dict):
        raise BadModel(f"{place} is {type(loaded).__name__}, an object is needed; correct the card")
    kinds = {one.name: str(one.type) for one in fields(kind)}
    if set(loaded) != set(kinds):
        wrong = sorted(set(loaded) ^ set(kinds))[0]
        raise BadModel(f"{place}: {wrong!r} is {'unknown' if wrong in loaded else 'missing'}; correct the card")
    for name, kind_name in kinds.items():
        _of_kind(f"{place}, {name}", loaded[name], kind_name)
    return dict(loaded)


_JSON_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "float": (int, float),
    "Json": (dict,),
    "Json | None": (dict, type(None)),
}


def _of_kind(place: str, value: object, kind_name: str) -> None:
    kinds = _JSON_KINDS.get(kind_name, (list,))
    if not isinstance(value, kinds) or isinstance(value, bool) or (isinstance(value, float) and math.isinf(value)):
        raise BadModel(
            f"{place} is {value!r}, {' or '.join(kind.__name__ for kind in kinds)} is needed; correct the card"
        )
