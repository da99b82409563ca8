"""The house: links equal folders, imports go down only, no file grows past what one reads at a sitting."""

import ast
import functools
import os
import re
import runpy
import subprocess
from pathlib import Path

import pytest
import vulture

from shardqa.cli.verbs import VERBS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "shardqa"
ROOMS = {"api", "cluster", "gears_functions", "loader", "models", "module", "seeds"}
MAX_LINES = 600
LIST_ITEM = re.compile(r"\s*([*-]|\d+\.)\s")
COLUMNS = 100  # of prose in Markdown
README_LINES = 150
SUBJECT = 72  # columns of a commit's first line
RULE_OF_SUBJECTS = "8a2bbfc6d146b313c04fc52b6f21381463614bc4"
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")

# A room may import the rooms named here, itself, and nothing else of shardqa's.
PLAIN = {
    "address",
    "analysis",
    "answer_lines",
    "api_keys",
    "bridges",
    "request",
    "spans",
    "tensors",
    "keys",
    "transient",
    "schema",
    "http_schema",
    "config",
    "errors",
    "filters",
    "extras",
    "checks",
    "description",
    "machine",
    "statistics",
    "streaming",
    "languages",
    "metadata",
    "places",
    "topology",
    "__init__",
}
MAY_IMPORT = {
    **dict.fromkeys(PLAIN, PLAIN),
    "__init__": PLAIN | {"client", "engine", "models"},  # what programs import, loaded when asked for
    "ai": PLAIN,
    "client": PLAIN,
    "integrations": PLAIN | {"client", "engine", "models"},
    "engine": PLAIN | {"models"},
    "models": PLAIN,
    "gears_functions": PLAIN | {"models"},
    "module": PLAIN | {"models", "gears_functions"},
    "cluster": PLAIN,
    "gears": PLAIN | {"module"},  # for tests of functions: the worker's own code without Redis
    "loader": PLAIN | {"engine", "models", "cluster"},
    "api": PLAIN | {"engine", "loader", "models"},
    "__main__": {"cli", "cluster", "extras"},
    "cli": PLAIN | ROOMS | {"integrations", "engine"},
    "toolchain": PLAIN | {"models", "cli", "engine", "gears_functions"},
}


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def sources() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listed.splitlines()]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def room_of(path: Path) -> str | None:
    parts = path.relative_to(ROOT).parts
    if parts[:2] == ("src", "shardqa"):
        return Path(parts[2]).stem
    return parts[0] if parts[0] in {*ROOMS, "toolchain"} else None


def imported_rooms(path: Path) -> set[str]:
    found = set[str]()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "shardqa":
            names = [f"shardqa.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("shardqa.")}
    return found


def test_every_room_is_linked_into_the_import_package() -> None:
    links = {link.name: os.readlink(link) for link in PACKAGE.iterdir() if link.is_symlink()}
    assert links == {room: f"../../{room}" for room in ROOMS}


def test_imports_go_down_only() -> None:
    wrong = []
    for path in sources():
        room = room_of(path) if path.suffix == ".py" and "tests" not in path.parts else None
        if room is None:
            continue
        for other in imported_rooms(path) - {room}:
            if other not in MAY_IMPORT[room]:
                wrong.append(f"{path.relative_to(ROOT)} imports shardqa.{other}")
    assert not wrong


def imported_packages(path: Path) -> set[str]:
    """All top packages that a file imports, inside functions and for type checkers too."""
    names = set[str]()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.split(".")[0] for name in names}


def test_nothing_of_shardqa_imports_the_toolchain() -> None:
    rooms = [path for path in sources() if path.suffix == ".py" and room_of(path) not in (None, "toolchain")]
    assert len(rooms) > 200
    assert not [path for path in rooms if "shardqa_toolchain" in imported_packages(path)]


@pytest.mark.parametrize(
    ("tests", "package"),
    [(ROOT / "tests" / "unit", PACKAGE), (ROOT / "toolchain" / "tests", ROOT / "toolchain/src/shardqa_toolchain")],
)
def test_tests_of_units_lie_as_their_sources_do(tests: Path, package: Path) -> None:
    """A folder of tests is one of the package."""
    folders = {path.parent for path in tests.rglob("test_*.py")}
    names = {folder.relative_to(tests).as_posix() for folder in folders} - {"."}
    assert names
    assert not {name for name in names if not (package / name).is_dir()}


def test_a_top_level_folder_of_models_is_a_reader() -> None:
    folders = {path.relative_to(ROOT / "models").parts[0] for path in sources() if (ROOT / "models") in path.parents}
    assert {name for name in folders if "." not in name} == {"reader-v2-int8"}


def test_only_keys_spells_a_key() -> None:
    words = ("doc:{", "passage:{", "tokens:{", "answer:{", "ask:{", "rank:{", "epoch:{", "model:{")
    wrong = []
    for path in sources():
        if path.suffix == ".py" and room_of(path) not in (None, "keys") and "tests" not in path.parts:
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.JoinedStr) and any(ast.unparse(node)[2:].startswith(word) for word in words):
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong


def test_no_source_file_is_longer_than_one_reads_at_a_sitting() -> None:
    suffixes = {".py", ".c", ".h", ".js", ".css"}
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sources()
        if path.suffix in suffixes and (lines := len(path.read_text().splitlines())) > MAX_LINES
    }
    assert not long


def markdown() -> list[Path]:
    """All Markdown that people read; the documents of seeds/ are data."""
    return [path for path in sources() if path.suffix == ".md" and path.parent != ROOT / "seeds" / "documents"]


def prose(path: Path) -> list[tuple[int, str]]:
    """(number, line) without code, tables, headings and what can't be wrapped."""
    found, fenced, listed = list[tuple[int, str]](), False, False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        listed = LIST_ITEM.match(line) is not None or (listed and (not line.strip() or line.startswith(" ")))
        code = fenced or (line.startswith("    ") and not listed)
        if not code and " " in line.strip() and not line.lstrip().startswith(("|", "#")):
            found.append((number, line))
    return found


def test_prose_is_wrapped() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{number} has {len(line)} columns, more than {COLUMNS}"
        for path in markdown()
        for number, line in prose(path)
        if len(line) > COLUMNS
    ]
    assert not wrong


def test_comments_of_the_module_are_wrapped() -> None:
    comment = re.compile(rf"^(/\*| \*).{{{COLUMNS - 1},}}", re.MULTILINE)
    paths = sorted((ROOT / "module" / "src").rglob("*.[ch]"))
    assert len(paths) > 60
    assert not [f"{path.name}: {found.group()[:60]}" for path in paths for found in comment.finditer(path.read_text())]


def changelog() -> list[str]:
    return [" ".join(entry.split()) for entry in (ROOT / "CHANGELOG.md").read_text().split("\n* ")[1:]]


def test_a_changelog_entry_stands_there_once() -> None:
    """A merge that keeps both sides of a reflowed file keeps everything twice."""
    assert not {entry for entry in changelog() if changelog().count(entry) > 1}


def test_a_changelog_entry_is_short_and_dated() -> None:
    assert not [entry for entry in changelog() if not re.match(r"\d{4}-\d\d-\d\d: ", entry) or len(entry) > 200]


def test_decisions_are_numbered_in_order() -> None:
    numbers = [int(n) for n in re.findall(r"^(\d+)\. \*\*", (ROOT / "docs" / "decisions.md").read_text(), re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_subject_of_a_commit_is_short() -> None:
    """Since the day the rule was made; a clone without the history has nothing to check."""
    command = ["git", "log", "--no-merges", "--format=%s", f"{RULE_OF_SUBJECTS}..HEAD"]
    log = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not [subject for subject in log.stdout.splitlines() if len(subject) > SUBJECT]


def test_the_pdfs_of_the_tutorial_are_what_their_script_draws(tmp_path: Path) -> None:
    folder = ROOT / "docs" / "examples"
    script = runpy.run_path(str(folder / "make.py"))
    for name in script["FILES"]:
        script["draw"](name, tmp_path)
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), "run python docs/examples/make.py"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_links_between_documents_lead_somewhere() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} links {target}"
        for path in markdown()
        for target in LINK.findall(path.read_text())
        if not (path.parent / target).exists()
    ]
    assert not wrong


def test_the_picture_is_what_its_script_draws() -> None:
    pictures = ROOT / "docs" / "pictures"
    drawn = runpy.run_path(str(pictures / "overview.py"))["picture"]()
    assert drawn == (pictures / "overview.svg").read_text(), "run python docs/pictures/overview.py"


# Found by name alone, or kept for people who call them.
CALLED_BY_OTHERS = {
    "_do_*",  # commands of the local key space, found by name
    "MAX_PASSAGE",  # says what a test holds
    "JsonLines",  # by logging's configuration
    "__dir__",
    "__getattr__",
    "ask_many",  # of the clients
    *(
        "connect",
        "config_get",
        "config_set",
        "graph",
        "info",
        "model_delete",
        "model_scan",
        "reset_info",
    ),  # of shardqa.ai
    *("script_delete", "script_scan"),
    "create_app",  # by uvicorn
    "do_GET",  # by http.server, as the next two
    "do_POST",
    "log_message",
    "every_document",  # of an engine
    *(
        "ShardqaDocumentStore",
        "ShardqaExtractiveReader",
        "ShardqaCorpusReader",
        "ShardqaNodeRetriever",
        "ShardqaRetriever",
    ),  # for frameworks, which call what follows
    *("_aget_relevant_documents", "_get_relevant_documents", "_retrieve", "load_data"),
    *("count_documents", "delete_documents", "filter_documents", "from_dict", "to_dict", "write_documents"),
    *("ask_batch", "explain"),  # of the clients
    "read_mbox",  # by loader.formats, as are the next two
    "read_tar",
    "read_zip",
    "_connection_arguments",  # by redis-py's connection
    "data_received",  # by asyncio
    "timeout_keep_alive_handler",  # by uvicorn's protocol
    "shell_complete",  # by typer
    "settings_customise_sources",  # by pydantic
    "with_latency",  # of model cards
    *("avg", "batchgroupby", "countby", "distinct", "groupby"),  # of RedisGears' builder
    *("continueFailed", "continueRun"),  # of RedisGears' future
    *("OpsFromString", "ScriptRun", "TensorGet", "TensorSet"),  # of redisAI's graphs
}
DECORATED = ["@app.*", "@found.tool", "@router.*", "@*.command", "@*.callback", "@*validator*", "@*serializer*"]


def test_no_function_class_or_constant_is_there_for_nobody() -> None:
    by_name = CALLED_BY_OTHERS | {verb.name for verb in VERBS.values()}
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


def test_the_tour_of_the_code_matches_the_tree() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    tour = text[text.index("## A tour of the code") :]
    named = set(re.findall(r"`([\w/.-]+(?:\.py|\.c|\.h|/))`", tour))
    files = [path.relative_to(ROOT) for path in sources() if path.suffix in (".py", ".c", ".h")]
    folders = {path.parent for path in files if path.parts[0] not in ("tests", "bench", "docs")} - {Path(".")}
    known = {path.name for path in files} | {path.as_posix() for path in files}
    assert not {name for name in named if not name.endswith("/") and name not in known}
    shown = {Path(name).name for name in named if name.endswith("/")}
    assert not shown - {part for folder in folders for part in folder.parts}
    assert not {folder.as_posix() for folder in folders if folder.name not in shown}


def test_benches_take_from_common_what_it_has() -> None:
    """mypy sees neither: `common` is a module beside them, not of a package."""
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
