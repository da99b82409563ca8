"""What a file strikes out is no text of it any more; it is told as lost."""

import io
import zipfile

import pytest

from shardqa.files import formats
from shardqa.files.source_file import Lost, SourceFile
from shardqa.schema import Document

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"


def docx(body: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(
            "_rels/.rels",
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            f'<Relationship Id="r" Type="{RELATION}" Target="word/document.xml"/></Relationships>',
        )
        archive.writestr("word/document.xml", f"<w:document {W}><w:body><w:p>{body}</w:p></w:body></w:document>")
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", b"<p>It costs <del>41 euros</del> 57 euros."),
        ("a.html", b"<p>It costs <span style='text-decoration: line-through'>41 euros</span> 57 euros."),
        ("a.md", b"It costs ~~41 euros~~ 57 euros."),
        *(
            (
                "a.docx",
                docx(
                    f"<w:r><w:t>It costs </w:t></w:r><w:r><w:rPr><w:{strike}/></w:rPr><w:t>41 euros</w:t></w:r>"
                    "<w:r><w:t>57 euros.</w:t></w:r>"
                ),
            )
            for strike in ("strike", "dstrike")
        ),
    ],
    ids=["del", "line-through", "tildes", "strike", "dstrike"],
)
def test_struck_words_are_left_out_and_told(name: str, content: bytes) -> None:
    found, lost = formats.read(SourceFile.of_bytes(content, name, name))
    assert isinstance(found, Document)
    assert found.text.strip() == "It costs 57 euros."
    assert lost == Lost(name, "struck out, and left out: '41 euros'")
