"""The lines drawn on a page, as far as they run along it or down: what tables are ruled with."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

import pypdfium2 as pdfium
from pypdfium2 import raw

NEAR = 3.0  # points between rules that meet, or are one
MAX_RULES = 600  # of a page, joined; a drawing has more
THIN = 3.0  # points; a box as thin as that is a line
LEAST = 8.0  # points; shorter lines are strokes of a drawing
DRAWN = 50  # paths of a page that may draw letters
MAX_OBJECTS = 20_000  # of a page that is looked at for lines: one with more is a map or a plot
MAX_SEGMENTS = 400  # of one path


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: from `start` to `end` along its own direction, at `at` of the other one; in points."""

    is_vertical: bool
    at: float
    start: float
    end: float


def rules(page: pdfium.PdfPage, is_turned: bool = False) -> list[Rule]:
    """Returns the rules of a page, mirrored if `is_turned`; none of a page on its side: only its words are turned."""
    count = raw.FPDFPage_CountObjects(page.raw)
    if count > MAX_OBJECTS or page.get_rotation():
        return []
    lines: list[Rule] = []
    for n in range(count):
        item = raw.FPDFPage_GetObject(page.raw, n)
        if raw.FPDFPageObj_GetType(item) == raw.FPDF_PAGEOBJ_PATH:
            lines += _of_path(item)
    return [Rule(one.is_vertical, *_mirrored(one)) for one in lines] if is_turned else lines


def _mirrored(rule: Rule) -> tuple[float, float, float]:
    return (-rule.at, rule.start, rule.end) if rule.is_vertical else (rule.at, -rule.end, -rule.start)


def _of_path(path: raw.FPDF_PAGEOBJECT) -> Iterator[Rule]:
    bounds = [ctypes.c_float() for _ in range(4)]
    if not raw.FPDFPageObj_GetBounds(path, *map(ctypes.byref, bounds)):
        return
    left, bottom, right, top = (edge.value for edge in bounds)
    segments = raw.FPDFPath_CountSegments(path)
    if right - left < THIN or top - bottom < THIN:
        yield from _between(left, bottom, right, top)
    elif segments <= MAX_SEGMENTS and segments > 1:
        yield from _of_segments(path, segments)


def _of_segments(path: raw.FPDF_PAGEOBJECT, count: int) -> Iterator[Rule]:
    matrix = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(path, matrix):
        return
    x, y = ctypes.c_float(), ctypes.c_float()
    first = last = (0.0, 0.0)
    for n in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, n)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = (matrix.a * x.value + matrix.c * y.value + matrix.e, matrix.b * x.value + matrix.d * y.value + matrix.f)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            first = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield from _between(*last, *point)
        if raw.FPDFPathSegment_GetClose(segment):
            yield from _between(*point, *first)
        last = point


def _between(x: float, y: float, other_x: float, other_y: float) -> Iterator[Rule]:
    left, right, bottom, top = min(x, other_x), max(x, other_x), min(y, other_y), max(y, other_y)
    if right - left < THIN and top - bottom >= LEAST:
        yield Rule(True, (left + right) / 2, bottom, top)
    elif top - bottom < THIN and right - left >= LEAST:
        yield Rule(False, (bottom + top) / 2, left, right)


def joined(rules: list[Rule]) -> list[Rule]:
    """Joins rules that continue each other, as cells have them; returns none of a drawing, which has too many."""
    groups: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: (rule.is_vertical, round(rule.at / NEAR), rule.start)):
        last = groups[-1] if groups else None
        if (
            last is not None
            and last.is_vertical == rule.is_vertical
            and abs(last.at - rule.at) < NEAR
            and rule.start < last.end + NEAR
        ):
            groups[-1] = Rule(last.is_vertical, last.at, last.start, max(last.end, rule.end))
        else:
            groups.append(rule)
    return groups if len(groups) <= MAX_RULES else []


def has_picture(page: pdfium.PdfPage) -> bool:
    """Returns whether a page's drawings may hold text; a page with a frame or a few lines counts as blank."""
    kinds = [
        raw.FPDFPageObj_GetType(raw.FPDFPage_GetObject(page.raw, n)) for n in range(raw.FPDFPage_CountObjects(page.raw))
    ]
    return raw.FPDF_PAGEOBJ_IMAGE in kinds or raw.FPDF_PAGEOBJ_FORM in kinds or len(kinds) > DRAWN
