"""`python -m shardqa.files`: what is read of a file, as people see it."""

from pathlib import Path

import pytest

from shardqa.files.__main__ import main


def test_text_is_printed_with_the_place_it_stands_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "fees.md"
    file.write_text("# Fees\n\n| Port | Fee |\n|---|---|\n| Aldby | 12 crowns |\n\n## Dogs\n\nDogs travel free.\n")
    assert main([str(file)]) == 0
    printed = capsys.readouterr().out
    assert "[Port: Aldby · Fee: 12 crowns] Port Aldby has Fee: 12 crowns." in printed
    assert "[§ Dogs] Dogs" in printed


def test_what_can_not_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cut.pdf").write_bytes(b"%PDF-1.4")
    assert main([str(tmp_path)]) == 4
    assert "cut.pdf: " in capsys.readouterr().err
    assert main([str(tmp_path / "absent")]) == 2
