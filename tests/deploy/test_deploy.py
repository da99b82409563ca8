"""Contents of `deploy/`: units, manifests, alerts, dashboard; checked by the tools that read them, where those are."""

import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client import Metric

from shardqa.api import shard_metrics
from shardqa.api.metrics import Metrics, exposition
from shardqa.cluster import redis_server
from shardqa.config import Settings, check_names
from shardqa.engine.activity import BOUNDS, ModelRuns, RegistrationCounts, WorkerState, registrations_of
from tests.nodes import free_port, wait_until

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = [one for one in yaml.safe_load_all((DEPLOY / "kubernetes" / "shardqa.yaml").read_text()) if one]
KUBERNETES = ("1.25", "1.29", "1.33")  # whose schemas the manifests are held against
METRIC = re.compile(r"\b(shardqa_[a-z_]+|up)\b")
EXPOSURE = 20  # tenths, of systemd's 0 to 100: below 30 it says OK


def tool(name: str) -> str:
    """A program of Prometheus' package or Helm, in PATH or where `make setup-test` puts it."""
    found = shutil.which(name) or shutil.which(name, path=str(ROOT / ".venv" / "prometheus"))
    if found is None:
        pytest.skip(f"{name} is not here; .ci/{'helm' if name == 'helm' else 'promtool'} .venv/prometheus fetches it")
    return found


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


# ---- Prometheus and Grafana


def dashboard() -> Any:
    return json.loads((DEPLOY / "grafana" / "shardqa.json").read_text())


def expressions() -> list[str]:
    """Returns the dashboard's expressions, for all instances."""
    panels = dashboard()["panels"]
    return [target["expr"].replace("$instance", ".*") for panel in panels for target in panel["targets"]]


def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def families() -> list[Metric]:
    """All that /metrics tells but the corpora, which have no panel."""
    shards = [
        *shard_metrics.of_registrations([]),
        *shard_metrics.of_models([model_runs(0)]),
        *shard_metrics.of_workers([], ""),
    ]
    return [*Metrics().registry.collect(), *shards]


def names_told() -> set[str]:
    """All names that /metrics may tell."""
    found = {"up"}
    for family in families():
        kinds = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
        found |= {family.name + suffix for suffix in kinds.get(family.type, [""])}
    return found


@pytest.mark.parametrize("expr", [*expressions(), *(rule["expr"] for rule in alerts())])
def test_each_expression_asks_for_metrics_that_there_are(expr: str) -> None:
    names = set(METRIC.findall(expr))
    assert names
    assert not names - names_told()


def test_every_metric_is_on_the_dashboard() -> None:
    shown = {name for expr in expressions() for name in METRIC.findall(expr)}
    missing = {family.name for family in families() if not any(name.startswith(family.name) for name in shown)}
    assert not missing


def lost_fields(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Yields the fields that Grafana's own types have lost when they have read and written them."""
    if isinstance(before, dict):
        for name, value in before.items():
            if not isinstance(after, dict) or name not in after:
                yield f"{place}.{name}"
            else:
                yield from lost_fields(value, after[name], f"{place}.{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True)):
            yield from lost_fields(*pair, f"{place}[{number}]")
    elif before != after:
        yield place


def not_of_grafana(dashboard: Any) -> list[str]:
    register_default_plugins()
    return list(lost_fields(dashboard, json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))))


def test_the_dashboard_has_fields_that_grafana_knows_alone() -> None:
    """In place of a render: Grafana is in no index of packages, its types are."""
    assert not not_of_grafana(dashboard())
    wrong = dashboard()
    wrong["panels"][0]["gridPoz"] = {}
    wrong["panels"][1]["targets"][0]["exprr"] = "up"
    assert not_of_grafana(wrong) == [".panels[0].gridPoz", ".panels[1].targets[0].exprr"]


def test_every_panel_says_what_it_shows() -> None:
    assert not [panel["title"] for panel in dashboard()["panels"] if len(panel.get("description", "")) < 20]


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    cells = [
        (x, y)
        for panel in dashboard()["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in dashboard()["panels"]}) == len(dashboard()["panels"])


def test_alerts_are_rules_that_fire_when_they_should() -> None:
    assert "SUCCESS" in run(tool("promtool"), "check", "rules", DEPLOY / "prometheus" / "alerts.yml")
    assert "SUCCESS" in run(tool("promtool"), "test", "rules", "alerts_test.yml", cwd=DEPLOY / "prometheus")
    for config in ("scrape.yml", "compose.yml"):
        assert "SUCCESS" in run(tool("promtool"), "check", "config", DEPLOY / "prometheus" / config)


def test_each_alert_has_a_case_that_fires_it_and_a_remedy() -> None:
    cases = yaml.safe_load((DEPLOY / "prometheus" / "alerts_test.yml").read_text())["tests"]
    fired = {one["alertname"] for case in cases for one in case["alert_rule_test"] if one["exp_alerts"]}
    assert fired == {rule["alert"] for rule in alerts()}
    assert all(rule["annotations"]["remedy"] for rule in alerts())


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[httpx.Client]:
    """One that scrapes `target` every half second."""
    port = free_port()
    scrape = {"job_name": "shardqa", "static_configs": [{"targets": [target]}]}
    config = {"global": {"scrape_interval": "500ms"}, "scrape_configs": [scrape]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    words = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb"]
    with (folder / "log").open("wb") as log:
        command = [tool("prometheus"), *words, f"--web.listen-address=127.0.0.1:{port}"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            yield client
    finally:
        process.terminate()
        process.wait(20)


def test_prometheus_evaluates_every_panel_over_a_running_api(tmp_path: Path) -> None:
    """The queries are those that Grafana would send; Grafana itself is in no distribution that tests run on."""
    metrics = Metrics()
    serve(metrics)
    with serving(metrics) as target, prometheus(tmp_path, target) as client:
        wait_until(lambda: is_scraped(client), "Prometheus has scraped twice")
        serve(metrics)
        for expr in expressions():
            wait_until(lambda expr=expr: query(client, expr), f"{expr} has a value")  # type: ignore[misc]


def serve(metrics: Metrics) -> None:
    """Some traffic of each kind."""
    metrics.requests.labels("POST", "/v1/ask", "200").inc()
    metrics.rejected.labels("too_many_requests").inc()
    metrics.connected.set(1)
    for cache in ("none", "process", "redis"):
        metrics.ask_seconds.labels("total", cache).observe(0.05)
    for partial in ("true", "false"):
        metrics.answers.labels("answered", partial).inc()
    metrics.documents.labels("changed").inc()


LINE = "name=Rank,triggered={0},succeeded={0},failed={0},aborted=0,queue=1,sum_us={0},le_1ms={0},le_5ms={0}"


def registrations(times: int) -> list[RegistrationCounts]:
    return registrations_of("node:1", {"shardqa_registration_0": LINE.format(times)})


def model_runs(times: int) -> ModelRuns:
    """One more run a scrape, of two requests."""
    spread = (times, *([0] * len(BOUNDS)))
    return ModelRuns("node:1", "model_m", 2 * times, 0, times, 16 * times, 16, spread, spread)


@contextmanager
def serving(metrics: Metrics) -> Iterator[str]:
    """HOST:PORT of /metrics alone."""
    scrapes: list[int] = []

    class Tell(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            serve(metrics)
            scrapes.append(1)
            body = metrics.text() + exposition(shard_metrics.of_registrations(registrations(len(scrapes))))
            body += exposition(shard_metrics.of_models([model_runs(len(scrapes))]))
            body += exposition(shard_metrics.of_workers([WorkerState("node:1", True, len(scrapes), 0, 1)], "reader"))
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Tell)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def query(client: httpx.Client, expr: str) -> list[Any]:
    reply = client.get("/api/v1/query", params={"query": expr, "time": time.time()})
    assert reply.status_code == 200, reply.text
    found: list[Any] = reply.json()["data"]["result"]
    return [one for one in found if one["value"][1] != "NaN"]


def is_scraped(client: httpx.Client) -> bool:
    try:
        is_ready = client.get("/-/ready").status_code == 200  # 503 while it opens its files
        return is_ready and bool(query(client, "count_over_time(up[1m]) > 1"))
    except httpx.TransportError:
        return False


# ---- systemd


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_are_what_systemd_reads_and_open_little(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    here = {"/opt/shardqa/bin/python": sys.executable, "/usr/bin/redis-server": redis_server.find_server()}
    text = unit.read_text()
    for path, found in here.items():
        text = text.replace(f"ExecStart={path} ", f"ExecStart={found} ")
    (tmp_path / unit.name).write_text(text)
    name = unit.name.replace("@", "@7000")
    said = run("systemd-analyze", "verify", "--man=no", tmp_path / name)
    assert unit.name.split("@")[0].split(".")[0] not in said, said
    run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", tmp_path / name)


def test_the_drop_in_for_debian_is_what_systemd_reads(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    folder = tmp_path / "redis-server.service.d"
    folder.mkdir()
    shutil.copy(ROOT / "docs" / folder.name / "shardqa.conf", folder)
    unit = tmp_path / "redis-server.service"
    unit.write_text(f"[Service]\nExecStart={redis_server.find_server()}\n")
    assert "shardqa.conf" not in run("systemd-analyze", "verify", "--man=no", unit)
    with (folder / "shardqa.conf").open("a") as file:
        file.write("ExecPathz=/x\n")
    assert "ExecPathz" in run("systemd-analyze", "verify", "--man=no", unit)


def test_units_set_what_the_programs_know() -> None:
    text = "\n".join(unit.read_text() for unit in UNITS)
    check_names(set(re.findall(r"SHARDQA_[A-Z_]+", text)))


# ---- Kubernetes


@pytest.mark.parametrize("version", KUBERNETES)
def test_manifests_are_what_kubernetes_takes(version: str) -> None:
    """By the schemas of its API, of which kubernetes-validate brings a copy; strict: no field too many."""
    for manifest in MANIFESTS:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_the_folder_is_a_base_of_kustomize() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not here")
    built = [one for one in yaml.safe_load_all(run("kubectl", "kustomize", DEPLOY / "kubernetes")) if one]
    names = [sorted((one["kind"], one["metadata"]["name"]) for one in each) for each in (built, MANIFESTS)]
    assert names[0] == names[1]
    for manifest in built:
        assert manifest["metadata"]["namespace"] == "shardqa"
        kubernetes_validate.validate(manifest, KUBERNETES[-1], strict=True)


def rendered(*settings: str) -> list[dict[str, Any]]:
    """The objects of the chart with these settings."""
    words = [word for one in settings for word in ("--set", one)]
    command: tuple[str | Path, ...] = (
        tool("helm"),
        "template",
        "shardqa",
        DEPLOY / "helm" / "shardqa",
        "--kube-version",
        KUBERNETES[0],
        *words,
    )
    return [one for one in yaml.safe_load_all(run(*command)) if one]


def plain(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """Objects by name, without what the chart alone has: a job of each revision, a label, when to pull."""
    texts = [json.dumps(one).replace("shardqa-prepare-1", "shardqa-prepare") for one in manifests]
    found = [json.loads(one.replace(', "imagePullPolicy": "IfNotPresent"', "")) for one in texts]
    for one in found:
        one["metadata"]["labels"].pop("app.kubernetes.io/component", None)
    return {f"{one['kind']} {one['metadata']['name']}": one for one in found}


def test_the_chart_is_the_manifests_with_values() -> None:
    assert plain(rendered()) == plain(MANIFESTS)
    assert "0 chart(s) failed" in run(tool("helm"), "lint", DEPLOY / "helm" / "shardqa")


def test_values_of_the_chart_reach_their_places() -> None:
    objects = plain(
        rendered("shards=4", "replicas=0", "storage.className=fast", "api.keys=all", "serviceMonitor.enabled=true")
    )
    for one in objects.values():
        if one["kind"] != "ServiceMonitor":
            kubernetes_validate.validate(one, KUBERNETES[-1], strict=True)
    assert objects["StatefulSet shardqa-node"]["spec"]["replicas"] == 4
    assert "for n in 0 1 2 3; do" in objects["ConfigMap shardqa-node"]["data"]["start.sh"]
    api = objects["Deployment shardqa-api"]["spec"]["template"]["spec"]["containers"][0]
    variables = {one["name"]: one.get("value") for one in api["env"]}
    assert variables["SHARDQA_HTTP_KEYS"] == "all"
    assert variables["SHARDQA_REDIS"].count(",") == 3
    assert objects["ServiceMonitor shardqa-api"]["spec"]["endpoints"][0]["path"] == "/metrics"


def pods() -> list[tuple[str, dict[str, Any]]]:
    having = [one for one in MANIFESTS if "template" in one.get("spec", {})]
    return [(one["metadata"]["name"], one["spec"]["template"]) for one in having]


@pytest.mark.parametrize(("name", "pod"), pods())
def test_pods_have_no_rights_they_do_not_need(name: str, pod: dict[str, Any]) -> None:
    spec = pod["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in spec["containers"]:
        wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        assert container["securityContext"] == wanted
        assert container["resources"]["limits"]["memory"]


def test_manifests_fit_together() -> None:
    """Selectors meet labels, names that are referred to exist, variables are settings."""
    labels = [pod["metadata"]["labels"] for _, pod in pods()]
    for manifest in MANIFESTS:
        selector = manifest.get("spec", {}).get("selector")
        wanted = selector.get("matchLabels", selector) if selector else {}
        assert any(wanted.items() <= one.items() for one in labels), manifest["metadata"]["name"]
    maps = {one["metadata"]["name"]: one["data"] for one in MANIFESTS if one["kind"] == "ConfigMap"}
    variables = set[str]()
    for _, pod in pods():
        for volume in pod["spec"]["volumes"]:
            assert volume.get("configMap", {"name": "shardqa-node"})["name"] in maps
        for container in pod["spec"]["containers"]:
            variables |= {variable["name"] for variable in container["env"]}
            if container["command"][0] == "sh":
                assert Path(container["command"][1]).name in maps["shardqa-node"]
    check_names(variables)
    assert Settings(redis=addresses()).addresses[5] == ("shardqa-node-5.shardqa-nodes", 6379)


def addresses() -> str:
    (_, api) = pods()[-1]
    found = {one["name"]: one.get("value") for one in api["spec"]["containers"][0]["env"]}
    return str(found["SHARDQA_REDIS"])


@pytest.mark.parametrize("script", ["start.sh", "prepare.sh"])
def test_scripts_of_the_manifests_are_shell(script: str, tmp_path: Path) -> None:
    (data,) = [one["data"] for one in MANIFESTS if one["kind"] == "ConfigMap"]
    (tmp_path / script).write_text(data[script])
    run("sh", "-n", tmp_path / script)
    if shutil.which("shellcheck"):
        run("shellcheck", tmp_path / script)
