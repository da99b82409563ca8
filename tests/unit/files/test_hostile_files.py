"""Files made to harm their reader: it says what is wrong with them, within memory and time, or reads what is there."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable

import pytest

from tests.unit.files.reading import Reader

XLSX = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="xl/workbook.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>',
    "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
    '<sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="worksheets/sheet1.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"/></Relationships>',
}
DOCX = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="word/document.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>',
}
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
LAUGHS = "<!DOCTYPE x [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(10)
)
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">'


def zipped(parts: dict[str, str | bytes], **more: str | bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in {**parts, **more}.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def sheet(cells: str) -> bytes:
    xml = f'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{cells}</sheetData>'
    return zipped({**XLSX, "xl/worksheets/sheet1.xml": f"{xml}</worksheet>"})


def word(body: str, head: str = "") -> bytes:
    return zipped({**DOCX, "word/document.xml": f"{head}<w:document {W}><w:body>{body}</w:body></w:document>"})


def nested(content: bytes, name: str, times: int) -> bytes:
    for _ in range(times):
        content, name = zipped({name: content}), "a.zip"
    return content


def tarred(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def epub(chapter: str) -> bytes:
    container = '<container><rootfiles><rootfile full-path="c.opf"/></rootfiles></container>'
    opf = '<package><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
    opf += '<spine><itemref idref="a"/></spine></package>'
    return zipped({"META-INF/container.xml": container, "c.opf": opf, "a.xhtml": chapter})


def ods(value: str) -> bytes:
    cell = f'<table:table-cell table:number-columns-repeated="16384" {value}/>'
    first = '<table:table-row><table:table-cell office:value-type="float" office:value="2"/></table:table-row>'
    rows = f'{first}<table:table-row table:number-rows-repeated="1048575">{cell}</table:table-row>'
    spaces = 'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    spaces += 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    table = f'<table:table table:name="S">{rows}</table:table>'
    body = f"<office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"
    content = f"<office:document-content {spaces}>{body}</office:document-content>"
    manifest = '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    return zipped({"mimetype": kind, "content.xml": content, "META-INF/manifest.xml": manifest})


def pdf(*objects: str) -> bytes:
    """Objects numbered from 1, with the table of where they are."""
    content, places = b"%PDF-1.4\n", list[int]()
    for n, one in enumerate(objects, 1):
        places.append(len(content))
        content += f"{n} 0 obj\n{one}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<</Root 1 0 R/Size {len(objects) + 1}>>\n"
    return content + f"{end}startxref\n{len(content)}\n%%EOF\n".encode()


CATALOGUE = "<</Type/Catalog/Pages 2 0 R>>"


HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a cell at the end of a sheet": (
        "a.xlsx",
        lambda: sheet('<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
    ),
    "a cell past the end of a sheet": (
        "a.xlsx",
        lambda: sheet('<row r="4294967295"><c r="ZZZZ4294967295"><v>1</v></c></row>'),
    ),
    "an OpenDocument sheet of repeated cells": ("a.ods", lambda: ods('office:value-type="float" office:value="1"')),
    "an OpenDocument sheet of repeated blanks": ("a.ods", lambda: ods("")),
    "end tags that close nothing": ("a.html", lambda: b"<div><table></div></table>" * 40_000 + b"x"),
    "a zip bomb": ("a.zip", lambda: zipped({"a.txt": b"a" * 300_000_000})),
    "a zip file in a zip file in a zip file": ("a.zip", lambda: nested(b"The mill stands.", "a.txt", 20)),
    "many zip files in one": (
        "a.zip",
        lambda: zipped({f"{n}.zip": zipped({f"{m}.txt": b"x" for m in range(100)}) for n in range(100)}),
    ),
    "a message of long parameters": (
        "a.eml",
        lambda: b"From: a\nContent-Type: text/plain; " + b"a=b; " * 200_000 + b"\n\nx",
    ),
    "a message to many quotes": ("a.eml", lambda: b"From: a\nTo: " + b'"a" ' * 250_000 + b"\n\nThe mill stands."),
    "a message of parts": (
        "a.eml",
        lambda: b"From: a\nContent-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nhi\n" * 100_000 + b"--b--",
    ),
    "a gzip bomb": ("a.txt.gz", lambda: gzip.compress(gzip.compress(b"a" * 10_000_000) * 50)),
    "a gzip file of blanks": ("a.txt.gz", lambda: gzip.compress(b" " * 10_000_000) * 20),
    "a workbook that is a bomb": ("a.xlsx", lambda: zipped({**XLSX, "xl/worksheets/sheet1.xml": b"<" * 300_000_000})),
    "entities that multiply, in Word": ("a.docx", lambda: word("<w:p><w:r><w:t>&k;</w:t></w:r></w:p>", LAUGHS + "]>")),
    "entities that multiply, in EPUB": ("a.epub", lambda: epub(LAUGHS + "]><html><body>&k;</body></html>")),
    "entities that multiply, in DocBook": (
        "a.xml",
        lambda: f"{LAUGHS}]><article><para>&k;</para></article>".encode(),
    ),
    "an entity of DocBook that is a file": (
        "a.xml",
        lambda: f"{OUTSIDE}]><article><para>&a; The mill.</para></article>".encode(),
    ),
    "deep DocBook": ("a.xml", lambda: b"<section>" * 100_000 + b"The mill stands."),
    "a DocBook file of many roots": ("a.xml", lambda: b"<para>a</para>" * 100_000),
    "deep groups of RTF": ("a.rtf", lambda: b"{\\rtf1 " + b"{" * 500_000 + b"The mill stands."),
    "RTF of pictures without an end": ("a.rtf", lambda: b"{\\rtf1 " + b"{\\pict\\super" * 100_000),
    "RTF of raised words": ("a.rtf", lambda: b"{\\rtf1 " + b"\\super\\b\\i" * 200_000 + b"}"),
    "a manual page of conditions": ("a.1", lambda: b".TH A 1\n" + b".if n " * 50_000 + b"The mill"),
    "a manual page of strings that grow": (
        "a.1",
        lambda: b".TH A 1\n" + b".ds a \\*a\\*a\\*ab\n" * 20_000 + b"\\*a The mill\n",
    ),
    "dots without an end": ("a.txt", lambda: b". . . " * 800_000),
    "links within one another": ("a.html", lambda: b"<div><a href=x>next</a>" * 9_000),
    "lists of links": ("a.html", lambda: b"<ul><li><a href=x>next</a>" * 4_000),
    "raised within raised": ("a.html", lambda: b"a<sup>b" * 9_000),
    "an entity that is a file": ("a.docx", lambda: word("<w:p><w:r><w:t>&a;</w:t></w:r></w:p>", OUTSIDE + "]>")),
    "paragraphs within one another, in Word": ("a.docx", lambda: word("<w:p>" * 100_000)),
    "tables within one another, in Word": (
        "a.docx",
        lambda: word("<w:tbl><w:tr><w:tc>" * 500 + "</w:tc></w:tr></w:tbl>" * 500),
    ),
    "deep HTML": ("a.html", lambda: b"<div>" * 300_000 + b"The mill stands."),
    "deep lists of HTML": ("a.html", lambda: b"<ul><li>" * 50_000 + b"The mill stands."),
    "deep tables of HTML": ("a.html", lambda: b"<table><tr><td>" * 5_000 + b"The mill stands."),
    "deep marks of HTML": ("a.html", lambda: b"<b><nav>" * 50_000 + b"The mill stands."),
    "a span of a thousand digits": ("a.html", lambda: b"<table><tr><td rowspan=" + b"9" * 5_000 + b">a<td>b</table>"),
    "a table of many spans": (
        "a.html",
        lambda: b"<table>" + b"<tr>" + b"<td colspan=100 rowspan=100>x" * 3_000 + b"<tr><td>y" * 300,
    ),
    "sheets of rules": ("a.html", lambda: b"<style>" + b"b *{display:none}" * 1_999 + b"</style>" + b"<b>x" * 9_000),
    "a sheet that ends nothing": ("a.html", lambda: b"<style>" + b'/*"[{(' * 300_000 + b"</style>x"),
    "a term longer than any": ("a.html", lambda: b"<dl><dt>" + b"a" * 300 + b"<dd>b"),
    "many headings": ("a.html", lambda: b"<h1>a<h2>b<h3>c" * 20_000),
    "deep Markdown": ("a.md", lambda: b"> " * 20_000 + b"x"),
    "deep lists of Markdown": ("a.md", lambda: b"\n".join(b" " * n + b"* a" for n in range(2_000))),
    "brackets of Markdown": ("a.md", lambda: b"[" * 50_000 + b"](" * 50_000),
    "stars of Markdown": ("a.md", lambda: b"*a_ " * 50_000),
    "backticks of Markdown": ("a.md", lambda: b"".join(b"`" * n + b"a" for n in range(700))),
    "deep reStructuredText": ("a.rst", lambda: b"\n".join(b" " * n + b"a\n" for n in range(3_000))),
    "reStructuredText that includes files": (
        "a.rst",
        lambda: b".. include:: /etc/passwd\n\n.. raw:: html\n   :file: /etc/passwd\n\nx\n",
    ),
    "a table of reStructuredText": ("a.rst", lambda: (b"=" * 3 + b" ") * 2_000 + b"\n" + b"a   " * 2_000 + b"\n"),
    "deep JSON": ("a.json", lambda: b"[" * 500_000),
    "deep lines of JSON": ("a.jsonl", lambda: b'{"text": ' + b"[" * 500_000),
    "a number of a million digits": ("a.jsonl", lambda: b'{"id": ' + b"9" * 1_000_000 + b', "text": "x"}'),
    "a lone surrogate": ("a.jsonl", lambda: b'{"id": "\\ud800", "text": "\\udfff mill"}'),
    "a field without an end": ("a.csv", lambda: b'a,b\n"' + b"x," * 3_000_000),
    "very many columns": ("a.csv", lambda: b"a," * 100_000 + b"\n" + b"b," * 100_000),
    "messages within messages": (
        "a.eml",
        lambda: b"Content-Type: message/rfc822\n\n" * 3_000 + b"Subject: x\n\nThe mill stands.",
    ),
    "parts within parts": (
        "a.eml",
        lambda: b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(2_000)),
    ),
    "a header of a megabyte": ("a.eml", lambda: b"Subject: " + b"=?utf-8?q?" * 100_000 + b"\n\nx"),
    "a charset that is none": ("a.eml", lambda: b"Content-Type: text/plain; charset=\xff\x00idna\n\nx"),
    "a charset that is a codec of bytes": ("a.eml", lambda: b"Content-Type: text/plain; charset=rot13\n\nThe mill."),
    "a date that is none": ("a.eml", lambda: b"Date: Thu, 99 Foo 99999999999 99:99:99 +9999999\n\nThe mill stands."),
    "a mailbox of beginnings": ("a.mbox", lambda: b"From a@b Thu Jan 1 00:00:00 1970\n" * 20_000),
    "a PDF whose pages are their own parents": (
        "a.pdf",
        lambda: pdf(CATALOGUE, "<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9>>"),
    ),
    "a PDF of a billion pages": ("a.pdf", lambda: pdf(CATALOGUE, "<</Type/Pages/Kids[]/Count 999999999>>")),
    "a PDF of the same page many times": (
        "a.pdf",
        lambda: pdf(CATALOGUE, f"<</Type/Pages/Kids[{'3 0 R ' * 50_000}]/Count 50000>>", "<</Type/Page/Parent 2 0 R>>"),
    ),
    "Markdown of links without an end": ("a.md", lambda: b"![a](" * 20_000),
    "a PDF of brackets": ("a.pdf", lambda: pdf(CATALOGUE, "[" * 200_000)),
    "a PDF whose content is itself": (
        "a.pdf",
        lambda: pdf(CATALOGUE, "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/Contents 3 0 R>>"),
    ),
    "a PDF whose objects are each other": ("a.pdf", lambda: pdf("2 0 R", "1 0 R")),
    "a PDF whose table of objects is far": ("a.pdf", lambda: b"%PDF-1.7\nstartxref\n99999999999999999999\n%%EOF"),
    "a tar file whose member is larger than it": ("a.tar", lambda: tarred(**{"a.txt": b"x"})[:600]),
    "a tar file with a negative size": (
        "a.tar",
        lambda: tarred(**{"a.txt": b"x"}).replace(b"00000000001\0", b"-0000000001\0", 1),
    ),
    "times of subtitles that are none": ("a.srt", lambda: b"1\n99999999999999:99:99,999 --> x\nThe mill\n\n" * 100),
    "an archive's names": ("a.zip", lambda: zipped({"../" * 50 + "etc/x.txt": b"a", "C:\\x\\y.txt": b"b"})),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_read_or_refused_within_bounds(reader: Reader, what: str) -> None:
    name, make = HOSTILE[what]
    read = reader.read(name, make())
    assert not read.failure, f"{what}: {read.failure}"
    assert read.documents or read.reasons or name.endswith((".mbox", ".jsonl", ".csv", ".srt", ".tar", ".zip"))
    assert "root:x:0" not in str(vars(read)), "nothing outside of the file is read"
