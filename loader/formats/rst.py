"""Reads reStructuredText by docutils, without its power to include files and run raw output."""

from collections.abc import Iterator

from docutils import nodes
from docutils.core import publish_doctree
from docutils.utils import SystemMessage

from shardqa.loader.composer import Composer, one_line
from shardqa.loader.formats.faults import readable
from shardqa.loader.raised import lowered, raised
from shardqa.loader.source_file import Item, SourceFile

SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,  # nothing is told: roles and directives of Sphinx are not known here
    "halt_level": 5,
    "_disable_config": True,
    "doctitle_xform": False,
    "sectsubtitle_xform": False,
    "line_length_limit": 1_000_000,
}
PROSE = (nodes.paragraph, nodes.literal_block, nodes.line_block, nodes.term, nodes.attribution, nodes.rubric)

TOLD = (nodes.title, nodes.table, *PROSE)


def read(source: SourceFile) -> Iterator[Item]:
    composer = Composer()
    text = source.text()
    with readable("reStructuredText", SystemMessage):
        title = _add(composer, publish_doctree(text, settings_overrides=SETTINGS))
    yield source.composed(composer, title)


def _add(composer: Composer, tree: nodes.document) -> str:
    first = ""
    for kind, mark in ((nodes.superscript, raised), (nodes.subscript, lowered)):
        for node in list(tree.findall(kind)):
            before = node.previous_sibling()
            node.replace_self(nodes.Text(mark(before.astext()[-1:] if before is not None else "", node.astext())))
    for node in tree.findall(lambda n: isinstance(n, TOLD)):
        if _is_inside(node, nodes.table, nodes.system_message, nodes.comment, nodes.footnote_reference):
            continue
        lists = sum(isinstance(above, nodes.definition_list) for above in _above(node))
        composer.after_entries(lists + 1)
        if isinstance(node, nodes.term):
            composer.entry(node.astext(), lists)
        elif isinstance(node, nodes.title):
            depth = sum(isinstance(above, nodes.section) for above in _above(node))
            composer.heading(node.astext(), depth)
            first = first or one_line(node.astext())
        elif isinstance(node, nodes.table):
            _table(composer, node)
        else:
            item = isinstance(node.parent, nodes.list_item) and node.parent.children[0] is node
            composer.block(f"- {node.astext()}" if item else node.astext(), close=item and _follows(node.parent))
    return first


def _above(node: nodes.Node) -> Iterator[nodes.Node]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _is_inside(node: nodes.Node, *kinds: type[nodes.Node]) -> bool:
    return any(isinstance(above, kinds) for above in _above(node))


def _follows(item: nodes.Node) -> bool:
    return bool(item.parent.index(item) > 0)


def _table(composer: Composer, table: nodes.table) -> None:
    rows = [[one_line(cell.astext()) for cell in row.children] for row in table.findall(nodes.row)]
    has_header = next(table.findall(nodes.thead), None) is not None or (len(rows) > 1 and all(rows[0]))
    composer.rows(rows[1:] if has_header else rows, rows[0] if has_header and rows else None)
