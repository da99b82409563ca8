"""The command line without a cluster: help, options, faults as one line, and what is printed how."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from rich.text import Text

from shardqa import cli
from shardqa.answer_lines import Lines
from shardqa.cli import ask, connection, documents, foreground, output
from shardqa.cli.faults import WrongSetting
from shardqa.cli.options import TARGET_OPTIONS, Target
from shardqa.cli.verbs import CLUSTER_VALUES, VERBS, leaves, summary_of
from shardqa.http_schema import Problem
from shardqa.schema import Answer, FoundPassage, Highlight, Part, Timing
from tests.nodes import free_port

COMMANDS = dict(leaves(typer.main.get_command(cli.app)))
OF_ONE_MACHINE = {"up", "down", "demo", "module-path", "completion", "config init"}
NOBODY = "127.0.0.1:1"  # a port that nothing listens on


@dataclass
class Done:
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The program in this process: `run("ask", "Who?", env={"SHARDQA_REDIS": "…"})`."""

    def run_(*words: str, env: dict[str, str] | None = None) -> Done:
        for name in [name for name in os.environ if name.startswith("SHARDQA_")]:
            monkeypatch.delenv(name)
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["shardqa", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return Done(int(ended.value.code or 0), said.out, said.err)

    return run_


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_listed_with_what_it_says_itself(name: str) -> None:
    help = typer.main.get_command(cli.app).commands[name].help  # type: ignore[attr-defined]
    assert summary_of(*VERBS[name]) == " ".join((help or "").split("\n\n")[0].split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["config", "show"]])
def test_what_needs_no_cluster_imports_nothing_that_speaks_to_one(words: list[str]) -> None:
    code = (
        "import sys; from shardqa import cli\ntry: cli.main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert not {"redis", "numpy", "onnxruntime", "shardqa.engine"} & set(done.stderr.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_exit_codes(name: str) -> None:
    command = COMMANDS[name]
    assert f"Example: {'redis-server' if name == 'module-path' else f'shardqa {name}'}" in (command.help or "")
    assert "3 no cluster" in command.epilog
    assert {param.metavar for param in command.params if getattr(param, "is_flag", False)} <= {""}, "a switch has none"
    helps = [command.help or "", *(getattr(param, "help", None) or "" for param in command.params)]
    assert [text for text in helps if Text.from_markup(text).plain != text] == [], "brackets are no markup"


def test_without_a_command_it_says_what_is_there_and_what_comes_next(run: Run) -> None:
    done = run(env={"SHARDQA_REDIS": NOBODY})
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[1] == f"there is no cluster at {NOBODY}"
    assert [line.split("  ")[1] for line in done.out.splitlines()[3:]] == [
        "shardqa demo",
        "shardqa up",
        "shardqa --help",
    ]


def test_a_key_is_printed_as_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    key = r"doc:house:{b0001}:[red]a[/red]\ "
    monkeypatch.setattr(output.out, "_force_terminal", True)
    output.print_table(["key"], [[key]])
    output.say(key)
    said = capsys.readouterr()
    assert (key.strip() in said.out, key.strip() in said.err) == (True, True)


def test_a_pipe_that_nobody_reads_is_not_a_missing_answer() -> None:
    command = f"{sys.executable} -m shardqa.cli config show --json | exec true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (output.BROKEN_PIPE, "")


def test_help_is_one_screen(run: Run) -> None:
    lines = run("--help").out.splitlines()
    assert (len(lines) <= 40, max(map(len, lines)) <= 80) == (True, True)


@pytest.mark.parametrize("words", [["corpus"], ["corpus", "rm"], ["config", "show"]])
def test_a_switch_takes_no_value_in_help(run: Run, words: list[str]) -> None:
    assert "<bool>" not in run(*words, "--help").out


def test_options_of_the_program_stand_behind_a_command_too(run: Run) -> None:
    """Of a word that is no option, what stands behind -- is one."""
    assert run("config", "show", "-q", "--color", "never", "--json").code == 0
    assert run("ask", "Who?", "--redis", "nonsense", "--quiet").code == 2
    assert "Missing argument" in run("show", "-q").err


def test_a_corpus_is_an_option_and_there_is_one_word_to_list_and_one_to_remove() -> None:
    arguments = [
        name for name, command in COMMANDS.items() for param in command.params
        if param.name == "corpus" and param.param_type_name == "argument"
    ]  # fmt: skip
    assert arguments == []
    assert {"list", "corpora", "delete", "drop", "remove", "revoke"}.isdisjoint(
        word for name in COMMANDS for word in name.split()
    )


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - OF_ONE_MACHINE))
def test_every_command_of_a_cluster_takes_its_address_and_password(name: str) -> None:
    options = {option for param in COMMANDS[name].params for option in param.opts}
    assert {"--redis", "--user", "--password", "--host", "-p", "-a", "-u", "--tls"} <= options


@pytest.mark.parametrize("command", ["status", "keys ls", "gears ls"])
def test_flags_of_a_cluster_may_stand_before_the_command_as_redis_cli_has_them(run: Run, command: str) -> None:
    done = run("--color", "never", "-a", "x", "-p", "1", "--tls", *command.split())
    assert (done.code, done) == (output.NO_CLUSTER, run("-q", *command.split(), "--redis", "rediss://127.0.0.1:1"))
    assert CLUSTER_VALUES | {"--tls"} == {
        flag for param in COMMANDS["status"].params if param.name in TARGET_OPTIONS for flag in param.opts
    }


def test_flags_of_redis_cli_name_a_cluster() -> None:
    target = Target.of(None, None, "secret", "db", None, True, Path("ca.pem"))
    assert target.settings().tls_options["ssl_ca_certs"] == "ca.pem"
    assert target == ("rediss://db:6379?ssl_ca_certs=ca.pem", None, "secret")
    with pytest.raises(WrongSetting, match="--host"):
        Target.of(None, None, None, None, None, True, None)


def test_a_dry_run_names_what_would_go_in_without_a_cluster(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mill.txt").write_text("The mill stands.")
    (tmp_path / "torn.pdf").write_bytes(b"%PDF-")
    done = run("ingest", str(tmp_path), "--dry-run", "--redis", NOBODY)
    assert (done.code, done.out) == (4, "mill.txt\n")
    assert "would write 1 document, 17 characters" in done.err
    assert run("-q", "ingest", str(tmp_path / "mill.txt"), "--dry-run").err == ""
    output.dress("auto", quiet=False)  # for what this process runs next


def test_a_shell_is_given_its_completion(run: Run) -> None:
    assert "#compdef shardqa" in run("completion", "zsh").out


def test_colors_are_as_they_are_asked_for(run: Run) -> None:
    assert "\x1b[" in run("--color", "always", "config", "show").out
    assert "\x1b[" not in run("--color", "never", "config", "show").out
    output.dress("auto", quiet=False)  # for what this process runs next


@pytest.mark.parametrize(
    "words",
    [
        ["ask", "Who?", "--redis", NOBODY],
        ["status", "--redis", NOBODY],
        ["rm", "x", "--redis", NOBODY],
        ["prepare", "--redis", NOBODY],
    ],
)
def test_a_cluster_that_is_not_there_is_one_line_and_a_way_out(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    done = run(*words)
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("shardqa: ")
    assert len(done.err.splitlines()) == 1
    assert "shardqa up" in done.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ask", "Who?", "--redis", "nonsense"], "HOST:PORT"),
        (["ingest", "/nowhere/at/all", "--redis", NOBODY], "/nowhere/at/all"),
        (["ingest", ".", "--corpus", "UPPER", "--redis", NOBODY], "UPPER"),
    ],
)
def test_a_wrong_value_is_named_without_a_traceback(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


@pytest.mark.parametrize(
    ("words", "code", "fault"),
    [
        (["ask", "Who?", "--redis", NOBODY], 3, "cluster_unavailable"),
        (["ask", "Who?", "--redis", "nonsense"], 2, "setup"),
        (["ask", "--nonsense"], 2, "usage"),
        (["ask"], 2, "usage"),
    ],
)
def test_with_json_a_fault_is_a_problem_on_stdout(run: Run, words: list[str], code: int, fault: str) -> None:
    done = run(*words, "--json")
    problem = Problem.model_validate_json(done.out)
    assert (done.code, problem.code) == (code, fault)
    assert problem.detail
    assert done.err


# Arguments with which a command can't succeed here, in an empty folder; most need none.
NOTHING_THERE = {
    "up": "--shards 0", "demo": "nowhere", "ask": "Who?", "search": "mill", "show": "x", "rm": "x",
    "corpus rm": "--corpus c --yes",
    "ingest": "nowhere", "backup": "f.tar",
    "restore": "nowhere.tar", "config show": "--redis nonsense", "keys create": "ada --scope ask", "keys rm": "00",
    "gears run": "nowhere.py",
    "gears rm": "x", "dense push": "nowhere", "corpus set": "dense=off --corpus c", "models push": "nowhere",
    "models rm": "nowhere",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"mcp", "completion"}))  # they print for programs
def test_with_json_stdout_is_one_json_value_whatever_happens(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run(*name.split(), *NOTHING_THERE.get(name, "").split(), "--json", env={"SHARDQA_REDIS": NOBODY})
    said = json.loads(outcome.out)
    assert isinstance(said, dict | list)
    if outcome.code and isinstance(said, dict) and "code" in said:
        assert Problem.model_validate(said).detail
        assert said["code"] != "usage", "the option is there"
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("choices", "complaint"),
    [
        (["vectors=off"], "'vectors=off' is no choice of a corpus; there are bridges=on, bridges=off, dense=on"),
        (["dense"], "'dense' is no choice"),
        (["dense=off", "dense=on"], "'dense' stands twice"),
    ],
)
def test_choices_of_a_corpus_that_say_nothing_clear_are_refused(run: Run, choices: list[str], complaint: str) -> None:
    done = run("corpus", "set", "--corpus", "c", *choices, env={"SHARDQA_REDIS": NOBODY})
    assert (done.code != 0, done.out) == (True, "")
    assert complaint in " ".join(done.err.split())


def test_words_after_two_dashes_are_no_options() -> None:
    assert output.wants_json(["shardqa", "ask", "--json"])
    assert not output.wants_json(["shardqa", "ask", "--", "--json"])


def test_up_without_shards_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("up", "--shards", "0", "--http", str(free_port()), "--data", str(tmp_path / "unused"))
    assert (done.code, done.out) == (1, "")
    assert "at least 1" in done.err


def test_a_fault_leaves_the_program_as_one_line_and_its_exit_code(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shardqa.cli", "status", "--redis", NOBODY]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (3, "", 1)


def test_down_where_nothing_runs_says_so(run: Run, tmp_path: Path) -> None:
    done = run("down", "--data", str(tmp_path / "none"))
    assert (done.code, done.out) == (0, "")
    assert "nothing runs" in done.err


def test_the_answer_is_marked_in_its_sentence_only() -> None:
    passage = "It rained. The lake is 287\nmetres deep (see map). It froze."
    start = passage.index("287")
    marked = ask.sentence(passage, start, start + len("287\nmetres")).plain
    assert marked == "The lake is »287 metres« deep (see map)."
    assert ask.sentence("All of it", 0, 9).plain == "»All of it«"


def test_a_searchs_words_are_marked_wherever_their_passage_begins() -> None:
    passage = FoundPassage(
        key="k", corpus="c", document="d", title="t", text="The mill\nstands.", start=100, end=116, score=1.0,
        highlights=[Highlight(start=104, end=108, term="mill")], place=None, metadata={}, shard="s", node="n",
    )  # fmt: skip
    assert documents.marked(passage).plain == "The »mill« stands."


@pytest.mark.parametrize(("count", "text"), [(0, "0 documents"), (1, "1 document"), (1234, "1,234 documents")])
def test_one_is_not_counted_in_the_plural(count: int, text: str) -> None:
    assert output.counted(count, "document") == text


def refusal(failed: list[str]) -> Answer:
    return Answer(
        question="Who?", corpus="c", answer=None, score=0.1, no_answer=True, document=None, title=None, start=None,
        end=None, passage=None, passage_start=None, n_best=[], cached=False, cache=None, partial=bool(failed),
        failed=failed, shards=[], model="m", timing=Timing(), lines=Lines(0.04, 0.2, 0.41),
    )  # fmt: skip


PART = Part(text="It is\n287 m deep.", corpus="c", document="lake.md", title="The lake", start=0, end=16, score=0.125)


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (refusal(failed=[]), ["answer    no answer was found; other words, or a search, may find one"]),
        (
            refusal(failed=[]).model_copy(update={"parts": [PART]}),
            ["answer    no sure answer", "perhaps   It is 287 m deep. (0.125, lake.md)"],
        ),
        (
            refusal(failed=[]).model_copy(
                update={
                    "form": "list",
                    "answer": "287 m",
                    "start": 6,
                    "passage": "p",
                    "passage_start": 0,
                    "parts": [PART],
                }
            ),
            ["answer    It is 287 m deep.", "in        lake.md (The lake), characters 0 to 16"],
        ),
        (refusal(failed=["a:1", "b:2"]), ["partial   without the documents of a:1, b:2"]),
    ],
    ids=["nothing was read", "nothing is sure", "it has parts", "shards are missing"],
)
def test_an_answers_parts_and_what_is_none_are_said(
    answer: Answer, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    ask.show(answer)
    output = capsys.readouterr().out
    assert [line for line in lines if line not in output] == []


def test_a_line_of_redis_log_becomes_readable_and_noise_goes() -> None:
    line = "123:M 21 Nov 2026 04:00:46.456 # Cluster state changed: ok"
    assert foreground.readable(line) == "04:00:46 ! Cluster state changed: ok"
    assert foreground.readable("123:C 21 Nov 2026 04:00:46.456 # oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo") is None
    assert foreground.readable("") is None
    assert foreground.readable("free words") == "free words"


def test_a_config_file_that_names_a_cluster_is_not_passed_over_for_the_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shardqa.toml").write_text('redis = "10.0.0.5:7000"\n')
    monkeypatch.setattr(connection, "_local_seed", lambda: "127.0.0.1:7000")
    monkeypatch.delenv("SHARDQA_REDIS", raising=False)
    assert connection.settings_of(None, None, None).redis == "127.0.0.1:7000"
    monkeypatch.setenv("SHARDQA_CONFIG", str(tmp_path / "shardqa.toml"))
    assert connection.settings_of(None, None, None).redis == "10.0.0.5:7000"
    assert connection.settings_of("h:1", None, None).redis == "h:1"
