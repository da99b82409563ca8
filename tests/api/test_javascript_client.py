"""The published client shardqa.js, in a real browser against the real API."""

import json
import re
from pathlib import Path

import pytest

import shardqa
from shardqa import filters, http_schema, places, schema
from tests.api.conftest import OpenPage, Server

PAGE = Path(__file__).parents[2] / "api" / "page"
SCRIPT = """
async (corpus) => {
  const { Client, Problem } = await import("/static/shardqa.js");
  const client = new Client();
  const text = "Zoë 🎉 built the mill in 1871.";
  const added = await client.add({ id: "a/mill #1", corpus, text, metadata: { year: 1871 } });
  const many = await client.addMany([{ id: "weir", text: "The weir is old." }, { id: "none", text: "" }], { corpus });
  const file = await client.addFile(new File(["<h1>Inn</h1><p>The inn is blue.</p>"], "inn.html"), { corpus });
  const answer = await client.ask("When was the mill built?", { corpus });
  const ids = [];
  for await (const one of client.documents({ corpus, page: 2 })) ids.push(one.id);
  const found = await client.search("mill", { corpus, limit: 1 });
  const filter = { metadata: { year: { gte: 1900 } } };
  const later = await client.ask("When was the mill built?", { corpus, filter });
  const kept = await client.search("mill", { corpus, filter: { metadata: { year: [1871] } } });
  const left = await client.search("mill", { corpus, filter });
  const why = await client.explain("When was the mill built?", { corpus });
  const batch = await client.askBatch(["When was the mill built?", { question: "", corpus }].map(
    (one) => (typeof one === "string" ? { question: one, corpus } : one)));
  const stored = await client.document("a/mill #1", { corpus });
  await client.delete("weir", { corpus });
  const task = await client.addFiles([new File(["The barn is red."], "barn.txt")], { corpus });
  const { stage, results } = await client.finished(task.id);
  const open = (await client.tasks({ corpus })).length;
  const tasks = [stage, results[0].status, open, (await client.cancel(task.id)).stage];
  const listed = (await client.corpora()).corpora.find((one) => one.name === corpus);
  const size = (await client.corpus(corpus)).corpus.documents;
  const dropped = await client.drop(corpus);
  const formats = await client.formats();
  let fault;
  try {
    await client.ask("When was the mill built?", { corpus });
  } catch (problem) {
    fault = { isProblem: problem instanceof Problem, code: problem.code, status: problem.status };
  }
  let tries = 0;
  const busy = new Client({ retries: 2, fetch: async () => (tries++, new Response("", { status: 503 })) });
  const late = await busy.corpora().catch((problem) => problem.code);
  const nobody = await new Client({ url: "http://127.0.0.1:1", fetch: async () => { throw new TypeError("x"); } })
    .corpora().catch((problem) => problem.code);
  return {
    added: added.document, taken: [many.taken, many.refused], file: file.documents[0].document,
    answer: [...text].slice(answer.start, answer.end).join(""), ids: ids.sort(), found: found.passages[0].document,
    filtered: [later.answer, kept.passages.map((one) => one.document), left.passages.length],
    why: why.answer.answer, batch: batch.map((one) => one.status), year: stored.metadata.year,
    tasks, listed: listed.documents, size, dropped: dropped.documents, formats: formats.length > 5, fault, late, tries,
    nobody,
  };
}
"""


def test_the_client_does_all_that_the_api_does(open_page: OpenPage, api: Server, corpus: str) -> None:
    assert open_page(api, "/docs").evaluate(SCRIPT, corpus) == {
        "added": "a/mill #1",
        "taken": [1, 1],
        "file": "inn.html",
        "answer": "1871",
        "ids": ["a/mill #1", "inn.html", "weir"],
        "found": "a/mill #1",
        "filtered": [None, ["a/mill #1"], 0],
        "why": "1871",
        "batch": [200, 422],
        "year": 1871,
        "tasks": ["done", 201, 0, "done"],
        "listed": 3,
        "size": 3,
        "dropped": 3,
        "formats": True,
        "fault": {"isProblem": True, "code": "unknown_corpus", "status": 404},
        "late": "http_503",
        "tries": 3,
        "nobody": "unreachable",
    }


def test_types_name_every_method() -> None:
    code, types = ((PAGE / name).read_text() for name in ("shardqa.js", "shardqa.d.ts"))
    methods = set(re.findall(r"^  (?:async )?\*?([a-z]\w+)\(.*\) \{$", code, re.MULTILINE)) - {"constructor"}
    assert len(methods) >= 13
    declared = types[types.index("export class Client") :]
    assert methods == set(re.findall(r"^  ([a-z]\w+)\(", declared, re.MULTILINE)) - {"constructor"}


def test_types_have_the_fields_of_the_models() -> None:
    types = (PAGE / "shardqa.d.ts").read_text()
    declared = re.findall(r"^export interface (\w+)( extends \w+)? \{\n(.*?)^\}", types, re.MULTILINE | re.DOTALL)
    other_names = {"ProblemDetails": "Problem", "AskOptions": "Question"}
    fields = {name: set(re.findall(r"^  (\w+)\??:", body, re.MULTILINE)) for name, _, body in declared}
    fields["Question"] |= fields["AskOptions"]
    fields["AskOptions"] |= {"question"}
    models = {**vars(places), **vars(schema), **vars(http_schema), **vars(filters)}
    named = {name: models[other_names.get(name, name)] for name in fields}
    of_model = {name: {*model.model_fields, *model.model_computed_fields} for name, model in named.items()}
    assert len(fields) > 15
    assert fields == of_model


@pytest.mark.parametrize("name", ["shardqa.js", "shardqa.d.ts", "package.json"])
def test_it_is_served_with_its_types(api: Server, name: str) -> None:
    with api.client() as http:
        assert http.get(f"/static/{name}").text == (PAGE / name).read_text()


def test_the_package_has_the_version_of_ours() -> None:
    assert json.loads((PAGE / "package.json").read_text())["version"] == shardqa.__version__
