"""Reads reStructuredText as the HTML that docutils writes of it: without files it includes and without raw output."""

from collections.abc import Iterator

from docutils.core import publish_parts

from shardqa.files.composer import Composer
from shardqa.files.formats import html
from shardqa.files.formats.faults import readable
from shardqa.files.source_file import Item, SourceFile

SETTINGS = {
    **dict.fromkeys(("file_insertion_enabled", "raw_enabled", "doctitle_xform", "sectsubtitle_xform"), False),
    **dict.fromkeys(("report_level", "halt_level"), 5),  # nothing is told: roles of Sphinx are not known here
    "_disable_config": True,
    "line_length_limit": 1_000_000,
    "initial_header_level": 1,
    "syntax_highlight": "none",
    "math_output": "LaTeX",
}


def read(source: SourceFile) -> Iterator[Item]:
    composer = Composer()
    text = source.text()
    with readable("reStructuredText"):
        page = publish_parts(text, writer="html5", settings_overrides=SETTINGS)["html_body"]
    title = html.compose(page, composer)
    yield from source.composed(composer, title)
