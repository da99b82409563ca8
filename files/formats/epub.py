"""EPUB: the chapters in the order of the spine, each read as HTML; the package's own few XML files name them."""

import posixpath
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from urllib.parse import unquote
from zipfile import ZipFile

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer, one_line
from shardqa.files.encodings import decoded
from shardqa.files.formats import html, zipped
from shardqa.files.formats.faults import apart
from shardqa.files.source_file import MAX_BINARY, MAX_MARKUP, Item, SourceFile

CONTAINER = "META-INF/container.xml"
ENCRYPTION = "META-INF/encryption.xml"
PAGES = ("application/xhtml+xml", "text/html")


def read(source: SourceFile) -> Iterator[Item]:
    archive = zipped.check(source.read_all(MAX_BINARY))
    package = _package(archive)
    root = _xml(archive, package)
    composer = Composer()
    for name in _spine(root, posixpath.dirname(package)):
        composer.top()
        with apart(composer.lost, f"chapter {name}"):
            html.compose(decoded(zipped.content(archive, name))[:MAX_MARKUP], composer)
    if ENCRYPTION in archive.namelist() and not composer.text:
        raise BadDocument("it is encrypted (DRM)")
    title = root.find(".//{*}metadata/{http://purl.org/dc/elements/1.1/}title")
    yield from source.composed(composer, one_line(title.text or "") if title is not None else "")


def _package(archive: ZipFile) -> str:
    element = _xml(archive, CONTAINER).find(".//{*}rootfile")
    path = element.get("full-path") if element is not None else None
    if not path:
        raise BadDocument(f"not an EPUB: its {CONTAINER} names no package")
    return path


def _xml(archive: ZipFile, name: str) -> ET.Element:
    """Parses a part. The parser never fetches external entities, and expat bounds the growth of internal ones."""
    try:
        return ET.fromstring(zipped.content(archive, name))
    except ET.ParseError as error:
        raise BadDocument(f"not an EPUB: {name} is no XML ({error})") from None


def _spine(root: ET.Element, folder: str) -> Iterator[str]:
    pages = {
        item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or "")))
        for item in root.iterfind(".//{*}manifest/{*}item")
        if item.get("media-type") in PAGES
    }
    names: set[str] = set()
    for entry in root.iterfind(".//{*}spine/{*}itemref"):
        name = pages.get(entry.get("idref"))
        if name is not None and name not in names:
            names.add(name)
            yield name
