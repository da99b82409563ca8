"""Passages' vectors by the shipped encoder, kept in a file by the texts' digests, so that no run encodes one twice."""

import json
from pathlib import Path

from shardqa.models import shipped
from shardqa.models.embedding import StoredVectors, text_digest
from shardqa.statistics import QuestionVector
from shardqa_toolchain.cli.candidates import Encoder

SAVED_EVERY = 2_000  # passages between two savings


class KeptVectors:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._encoder = Encoder(shipped.encoder_folder(), 1)
        self._known: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}

    def question(self, text: str) -> QuestionVector:
        return self._encoder.question(text)

    def passage(self, title: str, text: str) -> StoredVectors:
        digest = text_digest(title, text).hex()
        if digest not in self._known:
            self._known[digest] = self._encoder.passage(title, text).packed().hex()
            if len(self._known) % SAVED_EVERY == 0:
                self.save()
        stored = StoredVectors.unpack(bytes.fromhex(self._known[digest]))
        assert stored is not None
        return stored

    def save(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self._known))
