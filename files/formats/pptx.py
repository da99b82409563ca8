"""PowerPoint's pptx: the words of each slide from top to bottom, tables and charts as sentences, notes, comments."""

from collections.abc import Iterator
from typing import Any

from lxml import etree

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer
from shardqa.files.exponents import lowered, raised
from shardqa.files.formats.equation import equation
from shardqa.files.formats.faults import apart, readable
from shardqa.files.formats.ooxml import SCHEMAS, A, M, Package, R, Relation
from shardqa.files.source_file import MAX_BINARY, Item, SourceFile

P = f"{{{SCHEMAS}/presentationml/2006/main}}"
MATH = f"{M}oMath"
PIECES = (f"{A}r", f"{A}br", f"{A}fld")
SHAPES = tuple(f"{P}{name}" for name in ("sp", "grpSp", "graphicFrame", "cxnSp", "pic"))
TITLES = ("title", "ctrTitle")
FEET = ("ftr", "dt", "hdr")  # said on each slide


def read(source: SourceFile) -> Iterator[Item]:
    composer = Composer()
    items: list[Item] = []
    with readable("a pptx"):
        package = Package(source.read_all(MAX_BINARY))
        feet: set[str] = set()
        slides = package.relations(package.main)
        for number, entry in enumerate(package.xml(package.main).iterfind(f"{P}sldIdLst/{P}sldId"), 1):
            name = slides.get(entry.get(f"{R}id", ""), Relation("", "")).target
            composer.top()
            composer.at(slide=number)
            with apart(composer.lost, f"slide {number}"):
                _slide(composer, package, name, feet)
                items += package.embedded(source, package.relations(name))
        title = package.title
    yield from source.composed(composer, "" if title == "PowerPoint Presentation" else title)
    yield from items


def _slide(composer: Composer, package: Package, name: str, feet: set[str]) -> None:
    root = package.xml(name)
    if root is None:
        raise BadDocument("its part is missing")
    relations = package.relations(name)
    layout = next((package.xml(target) for target in package.targets(name, "slideLayout")), None)
    composer.struck += [run.findtext(f"{A}t") or "" for run in root.iter(f"{A}r") if _is_struck(run)]
    shapes = list(_shapes(root.find(f"{P}cSld/{P}spTree"), layout))
    title = next((shape for shape in shapes if _place(shape)[0] in TITLES and _words(shape)), None)
    if title is not None:
        composer.heading(_words(title), 1)
    for shape in shapes:
        with apart(composer.lost, "a shape of a slide"):
            table, words = shape.find(f".//{A}tbl"), _words(shape)
            if table is not None:
                composer.table(_table(table))
            elif shape is not title and not (_place(shape)[0] in FEET and words in feet):
                feet.add(words)
                composer.block(words)
            package.graphics(composer, shape, relations)
    for notes in package.targets(name, "notesSlide"):
        with apart(composer.lost, "a slide's notes"):
            page = package.xml(notes)
            for shape in page.iter(f"{P}sp") if page is not None else ():
                if _place(shape)[0] == "body":
                    composer.block(_words(shape))
    for target in package.targets(name, "comments"):
        with apart(composer.lost, "a slide's comments"):
            for comment in package.xml(target).iter():
                if etree.QName(comment).localname in ("cm", "reply"):
                    own = comment.xpath("*[local-name()='text' or local-name()='txBody']")
                    composer.block(" ".join(" ".join(one.itertext()) for one in own).strip())


def _words(shape: Any) -> str:
    """Returns the lines of a shape, with marks at raised and lowered words."""
    lines = [_line(paragraph) for paragraph in shape.iterfind(f".//{P}txBody/{A}p")]
    return "\n".join(line for line in lines if line.strip())


def _line(paragraph: Any) -> str:
    text = ""
    for piece in paragraph:
        if piece.tag not in PIECES:
            text += "".join(equation(one) for one in piece.iter(MATH))
            continue
        words = "\n" if piece.tag == PIECES[1] else piece.findtext(f"{A}t") or ""
        properties = piece.find(f"{A}rPr")
        baseline = properties.get("baseline", "0") if properties is not None else "0"
        if piece.tag == PIECES[2] and piece.get("type") == "slidenum":
            words = ""
        if _is_struck(piece):
            continue
        if baseline.strip("0%"):
            words = (lowered if baseline.startswith("-") else raised)(text[-1:], words)
        text += words
    return text


def _is_struck(run: Any) -> bool:
    properties = run.find(f"{A}rPr")
    return properties is not None and properties.get("strike", "noStrike") != "noStrike"


def _table(table: Any) -> list[list[str]]:
    """Returns the words of the cells; a merged cell's stand in each place that it takes."""
    rows: list[list[str]] = []
    for line in table.iterfind(f"{A}tr"):
        row: list[str] = []
        for cell in line.iterfind(f"{A}tc"):
            if cell.get("vMerge") in ("1", "true") and rows and len(row) < len(rows[-1]):
                row.append(rows[-1][len(row)])
            elif cell.get("hMerge") in ("1", "true") and row:
                row.append(row[-1])
            else:
                row.append("\n".join(_line(paragraph) for paragraph in cell.iterfind(f"{A}txBody/{A}p")))
        rows.append(row)
    return rows


def _shapes(tree: Any, layout: Any) -> Iterator[Any]:
    """Yields the visible shapes, those of groups one by one, from top to bottom, then from left to right."""
    shapes = [
        shape
        for shape in tree.xpath("* | *[local-name()='AlternateContent']/*/*")
        if shape.tag in SHAPES
        and shape.xpath("string(*[1]/p:cNvPr/@hidden)", namespaces={"p": P[1:-1]}) not in ("1", "true")
    ]
    for shape in sorted(shapes, key=lambda shape: _corner(shape, layout)):
        if shape.tag == SHAPES[1]:
            yield from _shapes(shape, layout)
        else:
            yield shape


def _corner(shape: Any, layout: Any) -> tuple[int, int]:
    """Returns (top, left) of a shape, from the layout where the slide does not say."""
    own = shape.find(f"*/{A}xfrm/{A}off") if shape.find(f"{P}xfrm/{A}off") is None else shape.find(f"{P}xfrm/{A}off")
    if own is None and layout is not None and (place := _place(shape)) != ("", ""):
        same = [
            one for one in layout.iter(f"{P}sp") if place[1] == _place(one)[1] or place[0] == _place(one)[0] in TITLES
        ]
        own = same[0].find(f"*/{A}xfrm/{A}off") if same else None
    return (int(own.get("y", "0")), int(own.get("x", "0"))) if own is not None else (0, 0)


def _place(shape: Any) -> tuple[str, str]:
    """Returns (kind, number) of the layout's place that a shape fills; empty texts for a shape of its own."""
    holder = shape.find(f"*/{P}nvPr/{P}ph")
    return (holder.get("type", "obj"), holder.get("idx", "0")) if holder is not None else ("", "")
