"""Manual pages: troff with the macros of -man or -mdoc, which the program mandoc turns into HTML.

A page may be hostile: mandoc runs in an empty folder, so that no request names a file, and the kernel bounds its time,
its memory and what it writes.
"""

import re
import subprocess
from collections.abc import Iterator
from tempfile import TemporaryDirectory, TemporaryFile

from shardqa.checks import MAX_DOCUMENT
from shardqa.errors import BadDocument
from shardqa.files.composer import Composer
from shardqa.files.formats import html
from shardqa.files.source_file import MAX_MARKUP, Item, Lost, SourceFile, Textless

CPU_SECONDS = 3  # a page of a megabyte takes a tenth of one
MEMORY = 1024**3  # bytes of addresses
SECONDS = 120.0  # of a clock, on a machine that others use too
COMMAND = (
    f"ulimit -t {CPU_SECONDS}; ulimit -v {MEMORY // 1024}; ulimit -f {MAX_MARKUP // 512}; "
    "command -v mandoc >/dev/null || exit 127; exec mandoc -K utf-8 -T html -W error"
)
MISSING = 127  # exit status of a shell that finds no such program
BROKEN = 5  # mandoc's, from which on it gave no page: of signals too
BEGINS = re.compile(r"""\s*(?:[.']|\\")""")
MACRO = re.compile(r"^[.'](?:TH|Dd|Dt|SH|Sh|so) ", re.MULTILINE)
LOOKED_AT = 20_000  # characters, among which a licence and a page's own macros may stand before its title
DROPPED = re.compile(
    r"mandoc: <stdin>:(\d+):\d+: (?:UNSUPP: unsupported roff request: (?!do\b)"
    r"|ERROR: skipping unknown macro: *\S+(?: .*?[A-Za-z]{2}){2})"  # of words, not of a width or a colour
)
LINK = re.compile(r"""(?:[.']\\".*\n|\s)*\.so (\S+)\s*""")
SYNOPSIS = re.compile(r'<table class="Nm">(.*?)</table>', re.DOTALL)


def is_troff(text: str) -> bool:
    """Returns whether a text begins as a manual page does."""
    return BEGINS.match(text) is not None and MACRO.search(text, 0, LOOKED_AT) is not None


def read(source: SourceFile) -> Iterator[Item]:
    """Reads a manual page, or a plain text whose name ends like a page's (`syslog.1`)."""
    text = source.text(MAX_DOCUMENT)
    if not is_troff(text):
        yield source.document(text)
    elif LINK.fullmatch(text):
        yield Textless(source.label, "links to other pages")
    else:
        page, faults = _as_html(text)
        composer = Composer()
        title = html.compose(SYNOPSIS.sub(r"<p>\1</p>", page), composer)
        if not composer.text:
            raise BadDocument("no text in it: a manual page of other macros than -man and -mdoc; convert it by groff")
        yield from source.composed(composer, title)
        if requests := DROPPED.findall(faults):
            yield Lost(source.label, f"line {requests[0]}: mandoc passed over {len(requests)} of its requests")


def _as_html(text: str) -> tuple[str, str]:
    """Returns mandoc's (HTML, complaints). Raises BadDocument."""
    with TemporaryDirectory() as empty, TemporaryFile() as page, TemporaryFile() as output, TemporaryFile() as faults:
        page.write(text.encode())
        page.seek(0)
        try:
            status = subprocess.run(
                ["/bin/sh", "-c", COMMAND],
                stdin=page,
                stdout=output,
                stderr=faults,
                cwd=empty,
                timeout=SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            raise BadDocument(f"mandoc took more than {SECONDS:g} s for it; try again, or split it") from None
        if status == MISSING:
            raise BadDocument("manual pages need the program mandoc; install it, or convert the page to text by `man`")
        if status < 0 or status >= BROKEN:
            raise BadDocument("mandoc ended over it, out of time or memory; split it")
        output.seek(0)
        faults.seek(0)
        return output.read().decode(), faults.read(MAX_DOCUMENT).decode(errors="replace")
