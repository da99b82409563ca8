"""The shipped encoder is what the toolchain makes of its package."""

from pathlib import Path

import pytest

from shardqa.models import shipped
from shardqa_toolchain.conversion import embedding


def test_the_shipped_encoder_is_made_again_byte_by_byte(tmp_path: Path) -> None:
    pytest.importorskip(embedding.PACKAGE, reason="its 84 MB are fetched by hand: models/all-minilm-l6-v2-int8")
    embedding.write_encoder(embedding.packaged(), tmp_path / "encoder")
    of_shipped = (shipped.checked_folder(shipped.encoder_folder()) / shipped.CHECKSUMS_FILE).read_bytes()
    assert (tmp_path / "encoder" / shipped.CHECKSUMS_FILE).read_bytes() == of_shipped
