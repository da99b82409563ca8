"""A document in frames: what one tick writes and the loop indexes at once is bounded, whatever it says."""

import numpy as np

from shardqa.gears_functions.document_hash import Fields
from shardqa.gears_functions.shard import document_parts
from shardqa.gears_functions.shard.document_parts import Parts
from shardqa.gears_functions.splitting import Passage


def test_a_frame_is_bounded_by_the_bytes_of_texts_titles_and_paths() -> None:
    text, path, title = "밭" * 1_000, ("논" * 1_000,), "길" * 100  # 3 bytes each
    passages = [Passage(n, n + 1, text, np.ones(1, np.int32), path) for n in range(9)]
    parts = Parts.of("doc", Fields(title, text, "", ""), "digest", passages)
    most = document_parts.FRAME_BYTES // 6_300
    assert [len(frame) for frame in parts.frames()] == [most, 9 - most]


def test_a_passage_larger_than_a_frame_is_one_by_itself() -> None:
    texts = ["a", "b" * document_parts.FRAME_BYTES, "c"]
    passages = [Passage(n, n + 1, text, np.ones(1, np.int32)) for n, text in enumerate(texts)]
    parts = Parts.of("doc", Fields("", "text", "", ""), "digest", passages)
    assert [list(frame) for frame in parts.frames()] == [[0], [1], [2]]
