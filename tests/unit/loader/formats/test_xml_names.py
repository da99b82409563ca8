"""Names of elements as files spell them."""

from shardqa.loader import formats
from shardqa.loader.source_file import SourceFile
from shardqa.schema import Document


def test_an_element_whose_prefix_nobody_declared_is_read() -> None:
    content = b"<article><x:para>The mill is old.</x:para></article>"
    (document,) = formats.read(SourceFile.of_bytes(content, "mill.xml", "mill.xml"))
    assert isinstance(document, Document)
    assert "The mill is old." in document.text
