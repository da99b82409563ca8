"""Code: no file grows past what one reads at a sitting, nothing is there for nobody, tests stay in proportion."""

import ast
import re
from pathlib import Path

import vulture

from shardqa.cli.verbs import VERBS
from tests.unit.house import ROOMS, ROOT, parsed, sources

MAX_LINES = 600
SUFFIXES = {".py", ".c", ".h", ".js", ".css"}
COLUMNS = 100  # of a comment in C
TEST_SHARE = 0.745  # lines of tests for a line of the product, without the toolchain; it is only ever lowered

# Names that nothing here calls, by who does.
CALLED_BY_OTHERS = {
    "tests": "MAX_PASSAGE with_latency",
    "Python": "__dir__ __getattr__ JsonLines data_received do_GET do_POST log_message",
    "users of the clients": "ask_many",
    "users of shardqa.ai": "model_scan script_delete script_scan",
    "uvicorn": "create_app timeout_keep_alive_handler",
    "frameworks": "ShardqaCorpusReader ShardqaNodeRetriever "
    "ShardqaRetriever _aget_relevant_documents _get_relevant_documents _retrieve load_data count_documents "
    "delete_documents filter_documents from_dict to_dict write_documents",
    "the table of formats": "read_mbox read_tar read_zip",
    "redis-py": "_connection_arguments",
    "click": "format_help",
    "pydantic": "settings_customise_sources",
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


def test_a_line_of_syntax_stands_above_each_command_handler() -> None:
    source = ROOT / "module" / "src"
    table = re.findall(r'^    \{"([\w.]+)", (\w+), ', (source / "commands.c").read_text(), re.MULTILINE)
    code = "\n".join(path.read_text() for path in sorted(source.rglob("*.c")))
    comments = re.findall(r"(/\*(?:(?!\*/).)*\*/)\nint (\w+)\(RedisCtx", code, re.DOTALL)
    above = {name: words for words, name in comments}
    assert len(table) > 40
    assert not [command for command, handler in table if not re.search(rf"\b{command}\b", above.get(handler, ""))]


C_FUNCTION = re.compile(r"^\w[^\n;{}]*?(\w+)\([^;{}]*\) \{\n(?:.*\n)+?\}$", re.MULTILINE)


def test_a_line_stands_above_each_function_of_the_module() -> None:
    """Above each of four lines or more: a shorter one is read as fast as a comment."""
    found, bare = 0, []
    for path in sorted((ROOT / "module" / "src").rglob("*.c")):
        text = path.read_text()
        for function in C_FUNCTION.finditer(text):
            found += 1
            if function.group().count("\n") >= 3 and not text[: function.start()].endswith("*/\n"):
                bare.append(f"{path.relative_to(ROOT)} {function.group(1)}")
    assert found > 400
    assert not bare


def test_no_source_file_is_longer_than_one_reads_at_a_sitting() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sources()
        if path.suffix in SUFFIXES and (lines := len(path.read_text().splitlines())) > MAX_LINES
    }
    assert not long


def test_comments_of_the_module_are_wrapped() -> None:
    comment = re.compile(rf"^(/\*| \*).{{{COLUMNS - 1},}}", re.MULTILINE)
    paths = sorted((ROOT / "module" / "src").rglob("*.[ch]"))
    assert len(paths) > 60
    assert not [f"{path.name}: {found.group()[:60]}" for path in paths for found in comment.finditer(path.read_text())]


def line_count(paths: list[Path]) -> int:
    return sum(len(path.read_text().splitlines()) for path in paths if path.suffix in SUFFIXES)


def test_tests_are_in_proportion_to_the_product() -> None:
    product = line_count([path for path in sources() if path.relative_to(ROOT).parts[0] in {*ROOMS, "src"}])
    tests = line_count([path for path in sources() if "tests" in path.relative_to(ROOT).parts[:2]])
    assert product > 30_000
    assert tests <= TEST_SHARE * product


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
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and node.module == "common"
        for alias in node.names
        if alias.name not in there
    ]
    assert not wrong
