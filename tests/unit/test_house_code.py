"""Code: no file grows past what one reads at a sitting, nothing is there for nobody, each room keeps to a budget."""

import ast
import re
from collections import Counter
from pathlib import Path

import vulture

from shardqa.cli.verbs import VERBS
from tests.unit.house import ROOT, nodes, sources

MAX_LINES = 600
SUFFIXES = {".py", ".c", ".h", ".js", ".css"}
COLUMNS = 100  # of a comment in C
C_COLUMNS = 120  # of its lines, and of the page's
# Lines that each house may have, without its tests: only lowered, once a release. "questions" is what no other names.
BUDGETS = {"functions and models": 26_900, "files": 8_900, "questions": 32_650}
HOUSES = {"functions and models": ("module", "worker"), "files": ("files",)}
ASIDE = {"bench", "docs", "tests", "toolchain", "tools"}

# Names that nothing here calls, by who does.
CALLED_BY_OTHERS = {
    "tests": "MAX_PASSAGE",
    "Python": "__dir__ __getattr__ __init_subclass__ JsonLines data_received do_GET do_POST log_message",
    "users of the clients": "ask_many",
    "users of shardqa.ai": "model_scan script_delete script_scan",
    "uvicorn": "create_app timeout_keep_alive_handler",
    "mcp": "list_resources",
    "frameworks": "ShardqaCorpusReader ShardqaNodeRetriever "
    "ShardqaRetriever _aget_relevant_documents _get_relevant_documents _retrieve load_data count_documents "
    "delete_documents filter_documents from_dict to_dict write_documents",
    "the table of formats": "read_mbox read_tar read_zip",
    "redis-py": "_connection_arguments",
    "click": "format_help",
    "rich": "on_broken_pipe",
    "torch": "forward",
    "pydantic": "settings_customise_sources",
    "notebooks": "_repr_html_",
    "scripts for RedisGears": "avg continueFailed continueRun OpsFromString ScriptRun TensorGet TensorSet",
}
DECORATED = ["@app.*", "@mcp.tool", "@router.*", "@*.command", "@*.callback", "@*validator*", "@*serializer*"]


def test_no_function_class_or_constant_is_there_for_nobody() -> None:
    by_name = {name for names in CALLED_BY_OTHERS.values() for name in names.split()}
    by_name |= {name for _, name in VERBS.values()}
    finder = vulture.Vulture(ignore_names=sorted(by_name), ignore_decorators=DECORATED)
    paths = [p for p in sources() if p.suffix == ".py" and "tests" not in p.parts and p.name != "setup.py"]
    finder.scavenge([str(path) for path in paths])
    unused = [item for item in finder.get_unused_code(min_confidence=60) if item.typ not in ("variable", "attribute")]
    unused += [item for item in finder.unused_vars if str(item.name).isupper()]
    assert not [f"{Path(item.filename).relative_to(ROOT)}:{item.first_lineno} {item.name}" for item in unused]


def test_no_group_of_a_pattern_is_possessive() -> None:
    """Python before 3.11.5, as Debian 12 has it, matches some wrongly (gh-106052); a class of letters may be."""
    group = re.compile(r"[^(]\)(?:[*+?]|\{\d*,?\d*\})\+")
    paths = [path for path in sources() if path.suffix == ".py" and house_of(path)]
    texts = [(path.name, one.value) for path in paths for one in nodes(path) if isinstance(one, ast.Constant)]
    assert not [pair for pair in texts if isinstance(pair[1], str) and group.search(pair[1].replace(r"\)", ""))]


def test_a_line_of_syntax_stands_above_each_command_handler() -> None:
    source = ROOT / "module" / "src"
    table = re.findall(r'^    \{"([\w.]+)", (\w+), ', (source / "commands.c").read_text(), re.MULTILINE)
    code = "\n".join(path.read_text() for path in sorted(source.rglob("*.c")))
    comments = re.findall(r"(/\*(?:(?!\*/).)*\*/)\nint (\w+)\(RedisCtx", code, re.DOTALL)
    above = {name: words for words, name in comments}
    assert len(table) > 40
    assert not [command for command, handler in table if not re.search(rf"\b{command}\b", above.get(handler, ""))]


def c_files() -> list[Path]:
    paths = sorted((ROOT / "module").rglob("*.[ch]"))
    assert len(paths) > 60
    return paths


def test_a_head_stands_on_each_unit_of_the_module() -> None:
    """On the .c file or its header."""
    units = {path.stem for path in c_files() if "src" in path.parts}
    assert not units - {path.stem for path in c_files() if path.read_text().startswith("/* ")}


def test_lines_of_the_module_and_the_page_fit_a_screen() -> None:
    page = [path for path in (ROOT / "api" / "page").iterdir() if path.suffix in (".js", ".ts", ".css")]
    assert len(page) > 30
    long = [
        f"{path.name}:{number}"
        for path in [*c_files(), *page]
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > C_COLUMNS
    ]
    assert not long


def test_no_source_file_is_longer_than_one_reads_at_a_sitting() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sources()
        if path.suffix in SUFFIXES and (lines := len(path.read_text().splitlines())) > MAX_LINES
    }
    assert not long


def test_comments_of_the_module_are_wrapped() -> None:
    comment = re.compile(rf"^(/\*| \*).{{{COLUMNS - 1},}}", re.MULTILINE)
    assert not [
        f"{path.name}: {found.group()[:60]}" for path in c_files() for found in comment.finditer(path.read_text())
    ]


def house_of(path: Path) -> str | None:
    folder = path.relative_to(ROOT).parts[0]
    if folder in ASIDE or path.suffix not in SUFFIXES or "tests" in path.parts:
        return None
    return next((house for house, folders in HOUSES.items() if folder in folders), "questions")


def test_each_house_keeps_to_its_budget() -> None:
    lines = Counter[str]()
    for path in sources():
        lines[house_of(path) or ""] += len(path.read_text().splitlines()) if house_of(path) else 0
    assert {house for house, limit in BUDGETS.items() if not 0 < lines[house] <= limit} == set(), lines


def test_benches_take_from_common_what_it_has() -> None:
    """The checker of types sees neither, since `common` is a module beside them and not of a package."""
    folder = ROOT / "bench"
    common = ast.parse((folder / "common.py").read_text())
    there = {
        name
        for node in ast.walk(common)
        for name in (
            [node.name]
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
            else [target.id for target in node.targets if isinstance(target, ast.Name)]
            if isinstance(node, ast.Assign)
            else []
        )
    }
    wrong = [
        f"{path.name}: {alias.name}"
        for path in sorted(folder.glob("*.py"))
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module == "common"
        for alias in node.names
        if alias.name not in there
    ]
    assert not wrong
