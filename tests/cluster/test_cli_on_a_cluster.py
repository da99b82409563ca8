"""The command line against a real cluster: ingest, ask, status, delete, doctor."""

import asyncio
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from shardqa.cluster import node
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from tests.conftest import Output
from tests.unit.files.web.paperless_server import DOCUMENTS, TOKEN, put_documents, served
from tests.unit.files.web.site import serving

SEEDS = Path(__file__).parents[2] / "seeds"
Run = Callable[..., Output]
COMMANDS_OF_HALF = ["+@all", "-shardqa.get", "-rg.trigger"]


@pytest.fixture
def run(
    cluster: LocalCluster, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Callable[..., Output]
) -> Callable[..., Output]:
    """`run("ask", "Who?")`: the program on the shared cluster and this test's own corpus, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    own = {"SHARDQA_REDIS": cluster.seed(), "SHARDQA_CORPUS": corpus, "XDG_CACHE_HOME": str(tmp_path / ".cache")}
    return partial(program, **own)


def documents(run: Run) -> list[str]:
    return sorted(document["id"] for document in run("ls", "--json").json["documents"])


def test_documents_go_in_are_asked_and_go_out_again(run: Run, corpus: str, tmp_path: Path) -> None:
    (tmp_path / "mill.md").write_text("# Mill\n\nThe mill of Brennick was built in **1820** by Ada Holm.\n")
    first = run("ingest", "mill.md", "--json").json
    assert (first["documents"], first["unchanged"], first["skipped"]) == (1, 0, 0)
    answer = run("ask", "When was the mill of Brennick built?", "--json").json
    assert (answer["answer"], answer["document"]) == ("1820", "mill.md")
    assert "was built in »1820« by" in run("ask", "When was the mill of Brennick built?").stdout
    text = "The mill of Brennick was built in 1820 by Ada Holm."
    assert text[answer["start"] : answer["end"]] == "1820"
    german = "Wann wurde die Mühle von Brennick gebaut und von wem?"
    warned = run("ask", german, "--json", "--when", "unsure", code=1).json
    assert "seems to be German" in warned["warnings"][0]
    assert (warned["answer"], warned["score"]) == (None, 0.0)
    assert run("ask", "What does the ferry cost?", "--json", code=1).json["no_answer"] is True
    assert "has no document 'none'" in run("rm", "mill.md", "none", code=4).stderr
    assert "has no document 'none'" in run("rm", "none", code=1).stderr
    remedy = "name another with --corpus, or make it with 'shardqa ingest'"
    fault = run("ask", "When was the mill of Brennick built?", code=1).stderr
    assert fault == f"shardqa: there is no corpus {corpus!r}; {remedy}\n"
    assert run("ask", "When was the mill built?", "--json", code=1).json["code"] == "unknown_corpus"


def test_a_corpus_is_looked_at_and_dropped(run: Run, cluster: LocalCluster, corpus: str, tmp_path: Path) -> None:
    (tmp_path / "mill.txt").write_text("The mill of Brennick was built in 1820.")
    (tmp_path / "weir.txt").write_text("The weir was raised by Tom Reed.")
    run("ingest", "mill.txt", "weir.txt")
    assert [one["documents"] for one in run("corpus", "ls", "--json").json["corpora"] if one["name"] == corpus] == [2]
    assert documents(run) == ["mill.txt", "weir.txt"]
    listed = run("ls", "--limit", "1")
    assert len(listed.stdout.splitlines()) == 2
    assert "--limit 0 lists all" in listed.stderr
    assert run("show", "mill.txt").stdout == "The mill of Brennick was built in 1820.\n"
    assert "'shardqa ls' lists them" in run("show", "none", code=1).stderr
    assert "raised by »Tom« Reed" in run("search", "Who is Tom?").stdout
    assert run("search", "zzz", "--json", code=1).json["passages"] == []
    assert corpus in completed(f"shardqa ls --corpus {corpus[:5]}", cluster)
    assert "add --yes" in run("corpus", "rm", "--corpus", corpus, code=2).stderr
    dropped = run("corpus", "rm", corpus, "--yes", "--wait", "--json").json
    assert dropped == {"corpus": corpus, "documents": 2, "removed": 2, "done": True}
    run("ls", code=1)


def completed(line: str, cluster: LocalCluster) -> list[str]:
    """Gives the words that a shell offers for the third one of the line."""
    words = {"_SHARDQA_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": "3"}
    environment = {**os.environ, **words, "SHARDQA_REDIS": cluster.seed()}
    program = str(Path(sys.executable).parent / "shardqa")
    return subprocess.run([program], env=environment, capture_output=True, text=True, check=True).stdout.split()


def test_a_folder_is_kept_equal_to_its_files(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("mill", "weir", "ferry"):
        (folder / f"{name}.txt").write_text(f"The {name} is old.")
    assert run("ingest", "docs", "--json").json["documents"] == 3
    passed = run("ingest", "docs", "--json").json
    assert (passed["unchanged"], passed["bytes"]) == (3, 0)  # not one was read
    assert run("ingest", "docs", "--json", "--again").json["bytes"] > 0
    (folder / "weir.txt").write_text("The weir is new now.")
    (folder / "mill.txt").unlink()
    changed = run("ingest", "docs", "--prune", "--json").json
    assert (changed["documents"], changed["unchanged"], changed["removed"]) == (1, 1, 1)
    assert documents(run) == ["ferry.txt", "weir.txt"]
    run("rm", "ferry.txt")
    assert run("ingest", "docs", "--json").json["documents"] == 1  # what the corpus has lost is read again
    for path in folder.iterdir():
        path.unlink()
    assert "'corpus rm'" in run("ingest", "docs", "--prune", code=2).stderr
    assert len(documents(run)) == 2


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
@pytest.mark.parametrize("cache", ["/dev/null", "~/.cache"])  # no folder; as it is where no home is known
def test_an_ingest_that_can_remember_nothing_is_done_with_a_warning(run: Run, tmp_path: Path, cache: str) -> None:
    (tmp_path / "mill.txt").write_text("The mill of Brennick was built in 1820.")
    done = run("ingest", "mill.txt", "--json", XDG_CACHE_HOME=cache)
    assert done.json["documents"] == 1
    assert done.json["warnings"][0] in done.stderr
    assert "sizes and times of files are not remembered" in done.stderr
    assert not (tmp_path / "~").exists()


def test_pruning_leaves_what_came_from_elsewhere_and_what_can_not_be_read(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text(f"Document {name}.")
    (tmp_path / "a" / "torn.jsonl").write_text('{"id": "one", "text": "The first."}\n')
    run("ingest", "a", "b")
    (tmp_path / "a" / "torn.jsonl").write_text('{"id": "one"')
    assert run("ingest", "a", "--prune", "--json", code=4).json["removed"] == 0
    assert documents(run) == ["a.txt", "b.txt", "one"]


def test_a_filter_says_which_documents_may_answer(run: Run) -> None:
    lines = [
        {"id": "old", "text": "Ada Holm built the mill.", "metadata": {"year": 1820}},
        {"id": "new", "text": "Jon Brenn built the mill.", "metadata": {"year": 1907}},
    ]
    run("ingest", "-", stdin="\n".join(map(json.dumps, lines)))
    for year, name in ((1820, "Ada Holm"), (1907, "Jon Brenn")):
        wanted = json.dumps({"metadata": {"year": year}})
        assert run("ask", "Who built the mill?", "--filter", wanted, "--json").json["answer"] == name
        found = run("search", "Who built the mill?", "--filter", wanted, "--json").json["passages"]
        assert [one["metadata"] for one in found] == [{"year": year}]
    assert "filter='{' can't be used" in run("ask", "Who built the mill?", "--filter", "{", code=2).stderr


def test_lines_of_json_come_by_stdin(run: Run) -> None:
    lines = '{"id": "mill", "text": "The mill is old."}\n{"text": "The weir is new."}\n'
    assert run("ingest", "-", "--json", stdin=lines).json["documents"] == 2
    assert run("ingest", "-", "--json", stdin=lines).json["unchanged"] == 2
    assert run("show", "mill", "--json").json["text"] == "The mill is old."


def test_stdin_asks_a_question_a_line(run: Run) -> None:
    run("ingest", "-", stdin='{"text": "Ada Holm built the mill. It is red."}')
    done = run("ask", "-", "--json", stdin="Who built the mill?\n\nWho sold the weir?\n", code=1)
    answers = [json.loads(line)["answer"] for line in done.stdout.splitlines()]
    assert answers == ["Ada Holm", None]


def test_pages_of_a_sitemap_go_in_and_are_asked(run: Run, tmp_path: Path) -> None:
    with serving() as site:
        listed = "".join(f"<url><loc>{site.url(target)}</loc></url>" for target in ("/mill", "/gone"))
        site.put("/sitemap.xml", f"<urlset>{listed}</urlset>", "application/xml")
        site.put("/mill", "<title>Mill</title><p>The mill of Brennick was built in 1820 by Ada Holm.</p>", ETag='"1"')
        url = site.url("/sitemap.xml")
        assert "--allow-private" in run("ingest", url, code=1).stderr
        assert not site.requests
        first = run("ingest", url, "--allow-private", "--json", code=4).json
        assert (first["documents"], first["reasons"][0]["reason"]) == (1, "HTTP 404")
        again = run("ingest", url, "--allow-private", "--json", code=4).json
        assert (again["documents"], again["unchanged"], again["bytes"]) == (0, 1, 0)
        answer = run("ask", "When was the mill of Brennick built?", "--json").json
        assert (answer["answer"], answer["document"]) == ("1820", f"localhost:{site.port}/mill")
        assert run("show", answer["document"], "--json").json["source"] == site.url("/mill")
        for words in (["--watch"], [str(tmp_path)]):
            assert "addresses" in run("ingest", url, *words, code=2).stderr
        site.put("/sitemap.xml", f"<urlset><url><loc>{site.url('/weir')}</loc></url></urlset>", "application/xml")
        site.put("/weir", "<title>Weir</title><p>The weir is new.</p>")
        run("ingest", site.url("/mill"), "--allow-private", "--prune")
        pruned = run("ingest", url, "--allow-private", "--prune", "--json").json
        assert (pruned["documents"], pruned["removed"]) == (1, 1)
        assert documents(run) == [f"localhost:{site.port}/weir"]
    assert "wanted is https://HOST/…" in run("ingest", "https://", code=2).stderr


def test_documents_of_paperless_go_in_with_their_tags_and_leave_with_it(run: Run) -> None:
    with served() as site:
        address = f"paperless+{site.url('')}"
        assert "SHARDQA_PAPERLESS_TOKEN is not set" in run("ingest", address, code=2).stderr
        ingest = partial(run, "ingest", address, "--allow-private", "--prune", "--json", SHARDQA_PAPERLESS_TOKEN=TOKEN)
        assert ingest().json["documents"] == 2
        again = ingest().json
        assert (again["documents"], again["unchanged"]) == (0, 2)
        wanted = json.dumps({"metadata": {"tags": "car", "correspondent": "Holm & Sons"}})
        answer = run("ask", "How much is the new clutch?", "--filter", wanted, "--json").json
        assert "412" in answer["answer"]
        assert answer["document"] == f"localhost:{site.port}/documents/7/details"
        put_documents(site, DOCUMENTS[1:])
        assert ingest().json["removed"] == 1


def test_a_watched_folder_is_followed(cluster: LocalCluster, corpus: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "mill.txt").write_text("The mill is old.")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    env = {**clean, "SHARDQA_REDIS": cluster.seed(), "XDG_CACHE_HOME": str(tmp_path / ".cache")}
    command = [str(Path(sys.executable).parent / "shardqa"), "ingest", "docs", "--watch", "--prune", "--json"]
    with subprocess.Popen(
        [*command, "--corpus", corpus], env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        try:
            assert json.loads(watching.stdout.readline())["documents"] == 1
            assert "watching docs" in watching.stderr.readline()
            written = removals = 0
            for n in range(50):  # a watcher that has just begun may miss what is written at once
                (tmp_path / "docs" / "weir.txt").write_text(f"The weir is new {n}.")
                if select.select([watching.stdout], [], [], 2)[0]:
                    written = json.loads(watching.stdout.readline())["documents"]
                    break
            assert written == 1
            (tmp_path / "docs" / "mill.txt").unlink()
            while not removals:
                removals = json.loads(watching.stdout.readline())["removed"]
            assert removals == 1
            watching.send_signal(signal.SIGINT)
            assert watching.wait(30) == 130
        finally:
            watching.kill()


def test_what_can_not_be_ingested_is_told_and_the_rest_goes_in(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("The password of the mill is Ada.")
    (folder / "a.txt").write_text("The weir roars at night.")
    (folder / "b.bin").write_bytes(b"\x00\x01")
    (folder / "c.txt").write_bytes(b"M\xc3")
    (folder / "d.jsonl").write_text('{"id": "a.txt", "text": "The same id."}\n')
    os.mkfifo(folder / "e.txt")
    (folder / "f.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (folder / "sub").symlink_to(tmp_path / "outside")
    output = run("ingest", "mixed", code=4)
    assert "1 document written, 0 unchanged, 6 skipped" in output.stdout
    assert output.stderr.count("a link, which may lead out of the folder") == 2
    for words in ("b.bin: binary", "c.txt: invalid UTF-8", "the id 'a.txt' was met before", "a pipe, socket or device"):
        assert words in output.stderr
    assert run("ingest", "mixed", "--follow-links", "--json", code=4).json["documents"] == 1  # the other is a copy


def test_files_of_one_name_from_two_folders_do_not_replace_each_other(run: Run, tmp_path: Path) -> None:
    for folder, year in (("a", 1820), ("b", 1907)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "note.txt").write_text(f"The mill of {folder} was built in {year}.")
    run("ingest", "a")
    refused = run("ingest", "b", code=1)
    assert f"the id 'note.txt' is taken: its document comes from {tmp_path}/a/note.txt" in refused.stderr
    assert run("ask", "When was the mill of a built?", "--json").json["answer"] == "1820"
    run("ingest", "b", "--prefix", "b/")
    assert run("ask", "When was the mill of b built?", "--json").json["document"] == "b/note.txt"
    (tmp_path / "a" / "note.txt").write_text("The mill of a was built in 1821.")
    assert run("ingest", "a/note.txt", "--json").json["documents"] == 1
    run("ingest", "b", "--replace")
    assert run("ask", "When was the mill of b built?", "--json").json["answer"] == "1907"


def test_status_is_a_line_per_node_with_its_worker_and_slots(run: Run, cluster: LocalCluster) -> None:
    rows = run("status", "--json").json
    assert [row["node"] for row in rows] == [f"{host}:{port}" for host, port in cluster.addresses]
    assert sum(row["slots"] for row in rows) == 16384
    for row in rows:
        assert (row["role"], row["worker"]) == ("master", "ready")
        assert row["models"] >= 1  # tests before may have pushed others
        assert row["tag"]
        assert row["passages"] >= 0
    lines = run("status").stdout.splitlines()
    assert lines[0].split("\t")[:3] == ["node", "role", "slots"]
    assert len(lines) == 4


def test_doctor_finds_a_healthy_cluster_healthy(run: Run) -> None:
    findings = run("doctor", "--json").json
    assert {f["verdict"] for f in findings} == {"ok"}
    assert {"redis-server", "module", "cluster", "ACL shardqa.get", "worker", "AOF", "functions", "reader"} <= {
        f["check"] for f in findings
    }


def test_doctor_tells_a_user_what_right_is_missing(run: Run, cluster: LocalCluster) -> None:
    for _, port in cluster.addresses:
        with node.connected(port) as client:
            client.acl_setuser("half", enabled=True, passwords=["+secret"], keys=["*"], commands=COMMANDS_OF_HALF)
    done = run("doctor", "--user", "half", "--password", "secret", code=1)
    assert "ACL SETUSER half +get +shardqa.get +rg.trigger" in done.stdout


def test_doctor_warns_of_rewrites_that_lose_registrations(run: Run, cluster: LocalCluster) -> None:
    with node.connected(cluster.addresses[0][1]) as client:
        client.config_set("aof-use-rdb-preamble", "no")
        try:
            done = run("doctor", "--json", code=1)
        finally:
            client.config_set("aof-use-rdb-preamble", "yes")
    (finding,) = (f for f in done.json if f["verdict"] != "ok")
    assert (finding["check"], finding["remedy"]) == ("AOF", "CONFIG SET aof-use-rdb-preamble yes")


def test_the_seeds_are_ingested_once(run: Run) -> None:
    first = run("ingest", str(SEEDS / "documents"), "--json").json
    assert first["documents"] >= 40
    again = run("ingest", str(SEEDS / "documents"), "--json").json
    assert (again["documents"], again["unchanged"]) == (0, first["documents"])


def test_prepare_changes_nothing_that_is_there(run: Run) -> None:
    done = run("prepare")
    assert done.stderr.count("none, ") == 2


async def test_the_file_is_kept_beside_its_text_as_an_upload_is(engine: Engine, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "mill.md").write_text("# Mill\n\nIt is old.\n")
    (folder / "boats.csv").write_text("Boat,Hull\nPetrel,oak\nHeron,steel\n")
    (folder / "lines.jsonl").write_text('{"id": "weir", "text": "The weir is new."}\n')
    await asyncio.to_thread(run, "ingest", "docs", "--prefix", "b/")
    files = [await file_of(engine, name) for name in ("b/mill.md", "b/boats.csv/2", "b/boats.csv/3", "weir")]
    assert files == [(folder / name).read_bytes() for name in ("mill.md", "boats.csv", "boats.csv", "lines.jsonl")]
    (folder / "boats.csv").write_text("Boat,Hull\nPetrel,oak\n")
    await asyncio.to_thread(run, "ingest", "docs", "--prefix", "b/", "--prune")
    assert await file_of(engine, "b/boats.csv/2") == (folder / "boats.csv").read_bytes()


async def test_no_file_is_kept_that_is_not_wanted_or_too_large(engine: Engine, run: Run, tmp_path: Path) -> None:
    (tmp_path / "mill.txt").write_text("The mill is old.")
    (tmp_path / "long.txt").write_text("The weir is new. " * 70_000)
    assert (await asyncio.to_thread(run, "ingest", "mill.txt", "--no-keep", "--json")).json["warnings"] == []
    words = ("ingest", "mill.txt", "long.txt", "--json", "--again")
    done = await asyncio.to_thread(run, *words, SHARDQA_KEEP_MEGABYTES="1")
    assert f"1,000,000 bytes a file by SHARDQA_KEEP_MEGABYTES, 32,000,000 a run: {tmp_path}/long.txt" in done.stderr
    assert await file_of(engine, "long.txt") is None
    assert await file_of(engine, "mill.txt") == b"The mill is old."


async def file_of(engine: Engine, name: str) -> bytes | None:
    document = await engine.documents.get(engine.settings.corpus, name)
    assert document is not None, name
    return await engine.files.of(engine.settings.corpus, document)
