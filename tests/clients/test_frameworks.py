"""LangChain, LlamaIndex, Haystack and an MCP client on shardqa: the real libraries, in one environment of their own.

One for all of them: each alone takes minutes to install, and they agree about what they need. What they are asked is
in integrations_suite.py.
"""

import os
import subprocess
from pathlib import Path

import pytest

from shardqa.cluster.local import LocalCluster
from tests.api.conftest import running_api
from tests.environments import interpreter_of

HERE = Path(__file__).parent
PACKAGES = [
    "haystack-ai==3.4.1",
    "langchain-core==1.7.2",
    "langchain-tests==1.1.9",
    "llama-index-core==0.14.25",
    "mcp==2.3.0",
    "openai==3.57.0",
]


@pytest.mark.slow
@pytest.mark.timeout(900)  # made once, the environment is downloaded
def test_the_libraries_work_on_shardqa(cluster: LocalCluster, corpus: str, tmp_path: Path) -> None:
    python = interpreter_of("frameworks", PACKAGES)
    with running_api(tmp_path, redis=cluster.seed(), timeout=30, http_openings="openai") as api:
        env = {**os.environ, "API_URL": api.url, "API_CORPUS": corpus, "SHARDQA_REDIS": cluster.seed()}
        env |= {"HAYSTACK_TELEMETRY_ENABLED": "False", "OTEL_SDK_DISABLED": "true"}
        words = [str(python), "-m", "pytest", "-q", "--noconftest", "-c", os.devnull, "--rootdir", str(tmp_path)]
        words += ["-p", "no:cacheprovider", "-o", "asyncio_mode=auto", str(HERE / "integrations_suite.py")]
        done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert " passed" in done.stdout, done.stdout[-6000:] + done.stderr[-2000:]
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
