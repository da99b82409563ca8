"""Documents: prose is wrapped, links lead somewhere, the changelog and the history keep their form."""

import re
import runpy
from pathlib import Path

import pytest

from tests.unit.house import ROOT, evening_path, sources

LIST_ITEM = re.compile(r"\s*([*-]|\d+\.)\s")
COLUMNS = 100  # of prose in Markdown
README_LINES = 130
EVENINGS = {"questions": 6_320, "functions and models": 3_500, "files": 3_500}  # lines that tell the way of each
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def markdown() -> list[Path]:
    """All Markdown that people read; the documents of seeds/ are data."""
    return [path for path in sources() if path.suffix == ".md" and path.parent != ROOT / "seeds" / "documents"]


def prose(path: Path) -> list[tuple[int, str]]:
    """(number, line) without code, tables, headings and what can't be wrapped."""
    lines, fenced, listed = list[tuple[int, str]](), False, False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        listed = LIST_ITEM.match(line) is not None or (listed and (not line.strip() or line.startswith(" ")))
        code = fenced or (line.startswith("    ") and not listed)
        if not code and " " in line.strip() and not line.lstrip().startswith(("|", "#")):
            lines.append((number, line))
    return lines


def test_prose_is_wrapped() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{number} has {len(line)} columns, more than {COLUMNS}"
        for path in markdown()
        for number, line in prose(path)
        if len(line) > COLUMNS
    ]
    assert not wrong


def test_a_change_is_told_once_in_one_clause() -> None:
    """A release gathers by theme the dated clauses that stand there."""
    parts = re.split(r"\n\* |^#+ .*$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    entries = [entry for part in parts if (entry := " ".join(part.split()))]
    assert len(entries) == len(set(entries))
    assert not [entry for entry in entries if re.match(r"\d{4}-\d\d-\d\d: ", entry) and len(entry) > 200]


def test_the_pdfs_of_the_tutorial_are_what_their_script_draws(tmp_path: Path) -> None:
    folder = ROOT / "docs" / "examples"
    script = runpy.run_path(str(folder / "make.py"))
    for name in script["FILES"]:
        script["draw"](name, tmp_path)
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), "run python docs/examples/make.py"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_links_between_documents_lead_somewhere() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} links {target}"
        for path in markdown()
        for target in LINK.findall(path.read_text())
        if not (path.parent / target).exists()
    ]
    assert not wrong


def test_llms_txt_names_every_page() -> None:
    linked = set(LINK.findall((ROOT / "llms.txt").read_text()))
    pages = {path.relative_to(ROOT).as_posix() for path in markdown() if path.parent == ROOT / "docs"}
    assert not pages - linked
    assert not [link for link in linked if not (ROOT / link).exists()]


def test_the_picture_is_what_its_script_draws() -> None:
    pictures = ROOT / "docs" / "pictures"
    drawn = runpy.run_path(str(pictures / "overview.py"))["picture"]()
    assert drawn == (pictures / "overview.svg").read_text(), "run python docs/pictures/overview.py"


@pytest.mark.parametrize("house", EVENINGS)
def test_an_evening_path_is_read_in_an_evening(house: str) -> None:
    paths = evening_path(house)
    assert len(paths) > 15
    assert sum(len((ROOT / path).read_text().splitlines()) for path in paths) <= EVENINGS[house]
