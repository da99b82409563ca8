"""PDFs of many makers: words and reading order agree with poppler's pdftotext."""

import re
import subprocess
import unicodedata
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import pypdfium2 as pdfium
import pytest

from shardqa.files.formats.pdf import page
from tests.files import packages

DOC = "/usr/share/doc"


@dataclass(frozen=True, slots=True)
class Pdf:
    package: str
    path: str
    maker: str
    most: float = 0.01  # share of pdftotext's words that may be missing, or in another place


PDFS = [
    Pdf("debian-faq", f"{DOC}/debian/FAQ/debian-faq.en.pdf.gz", "dblatex, xdvipdfmx"),
    Pdf("debian-reference-en", "/usr/share/debian-reference/debian-reference.en.pdf", "dblatex, xdvipdfmx, tables"),
    Pdf("developers-reference", "/usr/share/developers-reference/developers-reference.pdf", "sphinx, pdfTeX"),
    Pdf("maint-guide", f"{DOC}/maint-guide/maint-guide.en.pdf", "dblatex"),
    Pdf("debmake-doc", f"{DOC}/debmake-doc/debmake-doc.de.pdf", "dblatex, German"),
    Pdf("debian-policy", f"{DOC}/debian-policy/policy.pdf.gz", "sphinx, XeTeX"),
    Pdf("debian-policy", f"{DOC}/debian-policy/fhs/fhs-3.0.pdf.gz", "FOP 1.1"),
    Pdf("avr-libc", f"{DOC}/avr-libc/avr-libc-user-manual.pdf.gz", "doxygen, pdfTeX"),
    Pdf("gnuplot-doc", f"{DOC}/gnuplot/gnuplot.pdf", "pdfTeX"),
    Pdf("gnucash-docs", f"{DOC}/gnucash-docs/gnucash-guide-de.pdf.gz", "FOP 2.8, German"),
    Pdf("gpsbabel-doc", f"{DOC}/gpsbabel/gpsbabel.pdf.gz", "FOP 2.6"),
    Pdf("krb5-doc", f"{DOC}/krb5-doc/user.pdf.gz", "dvipdfm"),
    Pdf("libatlas-doc", f"{DOC}/libatlas-base-dev/atlas_contrib.pdf.gz", "plain LaTeX"),
    Pdf("libtheora-doc", f"{DOC}/libtheora-dev/Theora.pdf.gz", "LaTeX, tables"),
    Pdf("octave-doc", f"{DOC}/octave/refcard-a4.pdf", "TeX, three columns"),
    Pdf("r-doc-pdf", "/usr/share/R/doc/manual/R-intro.pdf", "texinfo"),
    Pdf("r-cran-zoo", "/usr/lib/R/site-library/zoo/doc/zoo-faq.pdf", "LaTeX, Ghostscript"),
    Pdf("speex-doc", f"{DOC}/speex/manual.pdf.gz", "LyX, Ghostscript 8"),
    Pdf("xorg-docs", f"{DOC}/xorg-docs/Xserver/XACE-Spec.pdf.gz", "FOP 2.5"),
    Pdf("installation-guide-amd64", f"{DOC}/installation-guide-amd64/en/install.en.pdf.gz", "dblatex"),
    Pdf("groff", f"{DOC}/groff-base/examples/mom/mom-pdf.pdf.gz", "groff"),
    Pdf("groff", f"{DOC}/groff-base/examples/mom/sample_docs.pdf.gz", "groff, two columns"),
    # its fonts name no letters for ff: pdftotext reads "di erent"
    Pdf("freecol", f"{DOC}/freecol/FreeCol.pdf.gz", "pdfTeX", most=0.03),
    # formulas, of which pdftotext itself has two readings that differ by 1.4 %
    Pdf("r-cran-vegan", "/usr/lib/R/site-library/vegan/doc/decision-vegan.pdf", "LaTeX, two columns", most=0.03),
]


def our_words(content: bytes) -> list[list[str]]:
    """Returns the words of each page."""
    document = pdfium.PdfDocument(content)
    return [_of_lines(page.lines(document[number])) for number in range(len(document))]


def _of_lines(lines: list[page.TextLine]) -> list[str]:
    return words("".join(line.text[:-1] if line.hyphenated else f"{line.text}\n" for line in lines))


def words(text: str) -> list[str]:
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower().replace("_", "").replace("^", ""))


def pdftotext(file: Path, *options: str) -> str:
    command = ["pdftotext", *options, str(file), "-"]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")


def displaced(ours: list[str], theirs: list[str]) -> int:
    """Words of theirs that do not stand in ours in the same order."""
    matcher = SequenceMatcher(None, theirs, ours, autojunk=False)
    return len(theirs) - sum(block.size for block in matcher.get_matching_blocks())


@pytest.mark.parametrize("pdf", PDFS, ids=lambda pdf: pdf.path.rpartition("/")[2])
def test_words_and_their_order_are_those_of_pdftotext(pdf: Pdf, tmp_path: Path) -> None:
    """The order is that of `-raw`, in which columns follow each other; without it pdftotext mixes some."""
    content = packages.content(pdf.package, pdf.path)
    file = tmp_path / "a.pdf"
    file.write_bytes(content)
    ours = our_words(content)
    theirs = words(pdftotext(file))
    missing = (Counter(theirs) - Counter(word for own in ours for word in own)).total()
    in_order = re.sub(r"(?<=[^\W\d])[-\xad]\n(?=[^\W\d])", "", pdftotext(file, "-raw")).split("\f")
    moved = sum(displaced(own, words(text)) for own, text in zip(ours, in_order, strict=False))
    assert missing <= pdf.most * len(theirs), f"{missing} of {len(theirs)} words are missing"
    assert moved <= pdf.most * len(theirs), f"{moved} of {len(theirs)} words are in another place"
