"""Annotations, which lie over a page: values of a form, which join the lines that name them, notes and files."""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pypdfium2 as pdfium
from pypdfium2 import raw

from shardqa.files.composer import one_line
from shardqa.files.formats.pdf.page import TextLine, Word, clean, overlap

NOT_SEEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
WITHOUT_WORDS = (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_WIDGET)
BOXES = (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON)
TEXTS = (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX)
PASSWORD = 1 << 13  # flag of a field
MAX_ANNOTATIONS = 10_000  # of a page
BESIDE = 60.0  # points between a box to tick and its words
ABOVE = 2.0  # of a line's height: as far above its field a label may stand


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    value: str
    is_box: bool
    left: float
    right: float
    bottom: float
    top: float


@dataclass(slots=True)
class Annotations:
    fields: list[Field]
    notes: list[str]
    files: list[tuple[str, bytes]]


def found(document: pdfium.PdfDocument, page: pdfium.PdfPage) -> Annotations:
    """Returns the annotations of a page. Raises PdfiumError."""
    over = Annotations([], [], [])
    for n in range(min(raw.FPDFPage_GetAnnotCount(page.raw), MAX_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, n)
        if not annotation:
            continue
        try:
            if raw.FPDFAnnot_GetFlags(annotation) & NOT_SEEN:
                continue
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            if kind == raw.FPDF_ANNOT_WIDGET and document.formenv is not None:
                over.fields += _field(document.formenv.raw, annotation)
            elif kind == raw.FPDF_ANNOT_FILEATTACHMENT:
                over.files += attached(pdfium.PdfAttachment(raw.FPDFAnnot_GetFileAttachment(annotation), document))
            if kind not in WITHOUT_WORDS and (words := _text(annotation, b"Contents").strip()):
                author = one_line(_text(annotation, b"T")) if kind != raw.FPDF_ANNOT_FREETEXT else ""
                over.notes.append(f"Note of {author}: {words}" if author else words)
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    return over


def attached(file: pdfium.PdfAttachment) -> Iterator[tuple[str, bytes]]:
    if file.raw:
        yield clean(file.get_name()), bytes(file.get_data())


def _field(form: raw.FPDF_FORMHANDLE, annotation: raw.FPDF_ANNOTATION) -> Iterator[Field]:
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in BOXES:
        value = "☒" if raw.FPDFAnnot_IsChecked(form, annotation) else "☐"
    elif kind in TEXTS and not raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & PASSWORD:
        value = one_line(_read(lambda *into: raw.FPDFAnnot_GetFormFieldValue(form, annotation, *into)))
    else:
        return
    box = raw.FS_RECTF()
    if value and raw.FPDFAnnot_GetRect(annotation, box):
        own = _read(lambda *into: raw.FPDFAnnot_GetFormFieldAlternateName(form, annotation, *into))
        name = own or _read(lambda *into: raw.FPDFAnnot_GetFormFieldName(form, annotation, *into)).rpartition(".")[2]
        yield Field(one_line(name), value, kind in BOXES, box.left, box.right, box.bottom, box.top)


def _text(annotation: raw.FPDF_ANNOTATION, key: bytes) -> str:
    return _read(lambda *into: raw.FPDFAnnot_GetStringValue(annotation, key, *into))


def _read(call: Callable[..., int]) -> str:
    """Reads a text by a function of pdfium, which writes UTF-16 and returns its length in bytes."""
    length = call(None, 0)
    buffer = ctypes.create_string_buffer(length + 2)
    call(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), length)
    text = buffer.raw[:length].decode("utf-16-le", "replace").rstrip("\x00").replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join(clean(line) for line in text.split("\n"))


# ---- values to lines


def fill(lines: list[TextLine], fields: list[Field]) -> None:
    """Puts each value behind the words left of it or above it, which name it; a ticked box before its words."""
    for field in sorted(fields, key=lambda field: (-field.top, field.left)):
        row = [line for line in lines if overlap(line, field)]
        after = [
            (line, n) for line in row for n, word in enumerate(line.words) if 0 <= word.left - field.right + 2 < BESIDE
        ]
        if field.is_box and after:
            line, n = min(after, key=lambda at: at[0].words[at[1]].left)
            at = line.words[n]
            line.words.insert(n, Word(field.value, at.left - 0.2, at.left - 0.1, at.bottom, at.top))
        elif (before := _label(row, field) or _label(_above(lines, field), field, above=True)) is not None:
            line, n = before
            at = line.words[n]
            at.text += ":" if at.text[-1:].isalnum() else ""
            line.words.insert(n + 1, Word(field.value, at.right + 0.1, at.right + 0.2, at.bottom, at.top))
        else:
            words = f"{field.name}: {field.value}" if field.name else field.value
            place = next((n for n, line in enumerate(lines) if line.top < field.bottom), len(lines))
            lines.insert(place, TextLine([Word(words, field.left, field.right, field.bottom, field.top)]))


def _above(lines: list[TextLine], field: Field) -> list[TextLine]:
    return [line for line in lines if -1 <= line.bottom - field.top + 2 < ABOVE * line.height]


def _label(lines: list[TextLine], field: Field, above: bool = False) -> tuple[TextLine, int] | None:
    """Returns (the line, the number in it of the last word that names the field)."""
    words = [
        (line, n)
        for line in lines
        for n, word in enumerate(line.words)
        if (field.left - 5 < word.left < field.right if above else word.left < field.left)
    ]
    return max(words, key=lambda at: at[0].words[at[1]].left) if words else None
