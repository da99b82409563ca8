"""The package of an Office file (docx, pptx, xlsx): its parts as XML, and how they refer to each other.

A file of the strict kind names the same things otherwise; its names are put right before it is parsed.
"""

import datetime
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from zipfile import ZipFile

from lxml import etree

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer, one_line
from shardqa.files.formats import zipped
from shardqa.files.formats.faults import apart
from shardqa.files.source_file import Item, Lost, SourceFile

SCHEMAS = "http://schemas.openxmlformats.org"
A, C, M = (
    f"{{{SCHEMAS}/{name}}}" for name in ("drawingml/2006/main", "drawingml/2006/chart", "officeDocument/2006/math")
)
DGM = f"{{{SCHEMAS}/drawingml/2006/diagram}}"
R = f"{{{SCHEMAS}/officeDocument/2006/relationships}}"
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # says its Choice a second time
STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
FIRST_DAY, LAST_DAY = datetime.date(1899, 12, 30), 2_958_465  # of numbers that are days
FALSE = frozenset({"0", "false", "off", "none"})


@dataclass(frozen=True, slots=True)
class Relation:
    kind: str  # the last word of its type: "header"
    target: str  # the name of a part; empty for what is outside


class Package:
    """The zip file of an Office document. Raises BadDocument where it is no whole zip file."""

    def __init__(self, content: bytes | ZipFile, recover: bool = False) -> None:
        self._archive = zipped.check(content) if isinstance(content, bytes) else content
        self._recover = recover  # what can be read of a damaged part
        self._names = {name.casefold(): name for name in zipped.files(self._archive)}

    @cached_property
    def main(self) -> str:
        """Returns the name of the part that all others belong to. Raises BadDocument."""
        parts = self.targets("", "officeDocument")
        if not parts:
            raise BadDocument("not a whole file of Office: nothing in it is called its document")
        return parts[0]

    @property
    def title(self) -> str:
        """Returns the title in the file's properties; empty where these can't be read, since they are no text of it."""
        try:
            properties = [self.xml(name) for name in self.targets("", "core-properties")]
        except (etree.LxmlError, BadDocument):
            return ""
        return one_line(next((root.findtext("{*}title") or "" for root in properties if root is not None), ""))

    def bytes(self, name: str) -> bytes | None:
        part = self._names.get(name.casefold())
        return zipped.content(self._archive, part) if part is not None else None

    def xml(self, name: str) -> Any:
        """Returns the root of a part; None where it is missing. Raises XMLSyntaxError, BadDocument."""
        content = self.bytes(name)
        if content is None:
            return None
        options = dict.fromkeys(("no_network", "remove_comments", "remove_pis"), True)
        parser = etree.XMLParser(resolve_entities=False, recover=self._recover, **options)
        root = etree.fromstring(STRICT.sub(rf"{SCHEMAS}/\1/2006/".encode(), content), parser)
        for fallback in list(root.iter(FALLBACK)) if root is not None else ():
            if len(fallback.getparent()) > 1:
                fallback.getparent().remove(fallback)
        return root

    def relations(self, name: str) -> dict[str, Relation]:
        """Returns what a part refers to, by id; the empty name stands for the package itself."""
        folder, base = posixpath.split(name)
        root = self.xml(posixpath.join(folder, "_rels", f"{base}.rels"))
        return {
            entry.get("Id", ""): Relation(
                entry.get("Type", "").rpartition("/")[2],
                ""
                if entry.get("TargetMode") == "External"
                else posixpath.normpath(posixpath.join("/", folder, entry.get("Target", ""))).lstrip("/"),
            )
            for entry in (root if root is not None else ())
        }

    def targets(self, name: str, kind: str) -> list[str]:
        return [relation.target for relation in self.relations(name).values() if relation.kind == kind]

    def graphics(self, composer: Composer, element: Any, relations: dict[str, Relation]) -> None:
        """Adds the charts and diagrams that stand in an element."""
        for chart in element.iter(f"{C}chart"):
            with apart(composer.lost, "a chart in it"):
                _chart(composer, self._related(relations, chart.get(f"{R}id")))
        for diagram in element.iter(f"{DGM}relIds"):
            with apart(composer.lost, "a diagram in it"):
                points = self._related(relations, diagram.get(f"{R}dm")).iterfind(f"{DGM}ptLst/{DGM}pt/{DGM}t")
                words = [one_line(" ".join(point.itertext(f"{A}t"))) for point in points]
                for n, item in enumerate(word for word in words if word):
                    composer.block(f"- {item}", close=n > 0)
        if any(str(node.tag).endswith("/chartex}chart") for node in element.iter()):
            composer.lost.append("a chart in it can't be read: of a kind that is drawn by Office alone")

    def _related(self, relations: dict[str, Relation], id_: str | None) -> Any:
        """Returns the root of a part that another refers to. Raises BadDocument where it is missing."""
        root = self.xml(relations.get(id_ or "", Relation("", "")).target)
        if root is None:
            raise BadDocument("its part is missing")
        return root

    def embedded(self, source: SourceFile, relations: dict[str, Relation]) -> Iterator[Item]:
        """Yields the documents of embedded files; objects of programs are not read."""
        objects = [one for one in relations.values() if one.kind == "oleObject"]
        if objects:
            yield Lost(source.label, f"{len(objects)} embedded objects can't be read; save them as files of their own")
        for relation in relations.values():
            content = self.bytes(relation.target) if relation.kind in ("package", "aFChunk") else None
            if content is not None:
                yield from source.inside(posixpath.basename(relation.target), content)


def is_on(element: Any, attribute: str) -> bool:
    """Returns whether a switch is on; a switch without a value is."""
    return element is not None and element.get(attribute, "1") not in FALSE


def _chart(composer: Composer, root: Any) -> None:
    """Adds a chart as the table that it is drawn from. Raises BadDocument where it holds no values."""
    series = list(root.iter(f"{C}ser"))
    columns: list[tuple[str, dict[int, str]]] = []
    names: dict[int, str] = {}
    for entry in series:
        names |= _points(entry.find(f"{C}cat") if entry.find(f"{C}cat") is not None else entry.find(f"{C}xVal"))
        values = entry.find(f"{C}val") if entry.find(f"{C}val") is not None else entry.find(f"{C}yVal")
        columns.append(
            (one_line("".join(entry.xpath("*[local-name()='tx']//*[local-name()='v']/text()"))), _points(values))
        )
    composer.block(one_line("".join(text for title in root.iter(f"{C}title") for text in title.itertext(f"{A}t"))))
    at = sorted({n for _, values in columns for n in values})
    composer.rows(
        [[names.get(n, str(n + 1)), *(values.get(n, "") for _, values in columns)] for n in at],
        ["", *(name or f"Series {n}" for n, (name, _) in enumerate(columns, 1))],
    )
    if not at:
        raise BadDocument("it holds no values")


def _points(cells: Any) -> dict[int, str]:
    """Returns a chart's cells as it shows them, by number; names of several levels are joined."""
    values: dict[int, str] = {}
    for point in cells.iter(f"{C}pt") if cells is not None else ():
        form = point.get("formatCode") or point.getparent().findtext(f"{C}formatCode") or ""
        n, value = int(point.get("idx", "0")), point.findtext(f"{C}v") or ""
        values[n] = f"{_shown(value, form)} {values.get(n, '')}".strip()
    return values


def _shown(value: str, form: str) -> str:
    try:
        number = float(value)
    except ValueError:
        return value
    if "%" in form:
        return f"{100 * number:.6g}%"
    if "yy" in form and 0 < number < LAST_DAY:
        return (FIRST_DAY + datetime.timedelta(number)).isoformat()
    return f"{number:,.10g}" if "#,##" in form else f"{number:.10g}"
