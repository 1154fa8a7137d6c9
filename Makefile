SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
UV_VERSION := 0.13.7

.PHONY: help
help:  ## list the targets
	@awk -F ':.*##' '/^[a-z-]+:.*##/ { printf "%-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(STAMP)  ## make .venv with the locked dependencies and Whence itself, editable

# A name on the PATH is not enough: version managers leave stubs that fail, and Debian ships python3 without ensurepip.
# PYTHON=/path/to/python overrides the search.
define FIND_PYTHON
python=""; \
for candidate in $(if $(PYTHON),'$(PYTHON)',python3.11 python3.12 python3.13 python3); do \
	if "$$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
		python="$$candidate"; break; \
	fi; \
done; \
if [ -z "$$python" ]; then \
	echo "Whence needs Python 3.11 or newer with its venv module (Debian and Ubuntu: python3 and python3-venv)." >&2; \
	echo "None was found$(if $(PYTHON), at $(PYTHON), as python3.11$(comma) python3.12$(comma) python3.13 or python3); name one with: make PYTHON=/path/to/python setup" >&2; \
	exit 1; \
fi
endef
comma := ,

$(STAMP): requirements.lock pyproject.toml
	@$(FIND_PYTHON); \
	echo "$$("$$python" --version) -> $(VENV)"; \
	"$$python" -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --editable .
	tools/ensure_npm.sh
	$(BIN)/python -c 'from whence.serve.assets import main; main()'
	$(BIN)/whence warm
	touch $@

.PHONY: java
java:  ## make sure that a Java for Spark (17 or newer) is there
	tools/ensure_java.sh

.PHONY: postgres
postgres:  ## make sure that a PostgreSQL (14 or newer) is there for the tests
	tools/ensure_postgres.sh

.PHONY: chromium
chromium:  ## make sure that a browser is there for the tests
	tools/ensure_chromium.sh

.PHONY: mosquitto
mosquitto:  ## make sure that an MQTT broker is there for the tests and the building
	tools/ensure_mosquitto.sh

.PHONY: run
run: setup java  ## keep the views of a network current while its links fail, and draw the worst failure
	$(BIN)/python examples/network/main.py

# A test that does not end takes its process with it: compiled loops cannot be interrupted, and signals are for the tests
# themselves. The run ends then and names the test. Another process would be given the same test again, and so on without end.
NO_ENDLESS := --timeout 300 --timeout-method thread --max-worker-restart 0

.PHONY: test
test: setup java postgres chromium mosquitto lint  ## lint, then run every test, in two processes
	$(BIN)/pytest --numprocesses 2 --dist loadfile $(NO_ENDLESS)

.PHONY: test-lang
test-lang: setup  ## the language, its files, plans, and what every program of conformance evaluates to
	$(BIN)/pytest src/whence/{io,lang,plan,reference} tests/{lang,io,plan,reference,conformance,library}

.PHONY: test-engine
test-engine: setup  ## maintenance in one process, and random programs against the reference
	$(BIN)/pytest src/whence/{backends/local,engine,semiring} tests/{engine,semiring,backends/local,properties} tests/test_*.py

.PHONY: test-provenance
test-provenance: setup chromium  ## explanations, causes, repairs; what is equivalent; annotated trees
	$(BIN)/pytest {src/whence,tests}/{provenance,reasoning,trees}

.PHONY: test-pipeline
test-pipeline: setup java postgres mosquitto  ## sources, sinks, state and parts; kill -9 at any instant
	$(BIN)/pytest {src/whence,tests}/{parts,pipeline} tests/faults

.PHONY: test-building
test-building: setup postgres mosquitto  ## the smart building, with its servers
	$(BIN)/pytest tests/building

.PHONY: test-events
test-events: setup java  ## events as they come, what led to them, and topologies
	$(BIN)/pytest {src/whence,tests}/{events,topology}

.PHONY: test-exchange
test-exchange: setup postgres  ## peers that exchange their data
	$(BIN)/pytest {src/whence,tests}/exchange

.PHONY: test-network
test-network: setup  ## placed programs on simulated networks of nodes
	$(BIN)/pytest {src/whence,tests}/{network,runtime}

.PHONY: test-sensors
test-sensors: setup  ## programs on fields of sensors
	$(BIN)/pytest {src/whence,tests}/sensors

.PHONY: test-optimizer
test-optimizer: setup  ## plans of queries, found and found again
	$(BIN)/pytest {src/whence,tests}/optimizer

.PHONY: test-spark
test-spark: setup java  ## evaluation and streams on Spark
	$(BIN)/pytest src/whence/{backends/spark,spark} tests/backends/spark

.PHONY: test-serve
test-serve: setup chromium  ## the server, and its page in a browser
	$(BIN)/pytest {src/whence,tests}/serve

.PHONY: test-docs
test-docs: setup java postgres mosquitto  ## every block of the docs, every example, the commands
	$(BIN)/pytest tests/{docs,cli}

.PHONY: test-long
test-long: setup java postgres chromium mosquitto  ## 20,000 random sequences on each kind of table; all of conformance on Spark; kills at every instant
	WHENCE_EXAMPLES=20500 $(BIN)/pytest --numprocesses 2 tests/library tests/properties/test_sequences.py
	WHENCE_EXAMPLES=2000 $(BIN)/pytest --numprocesses 2 tests/properties --ignore tests/properties/test_sequences.py
	WHENCE_LONG=1 WHENCE_EXAMPLES=1000 $(BIN)/pytest --numprocesses 2 --dist loadfile \
		tests/{backends/spark,engine,events,exchange,faults,network,optimizer,pipeline/parts,plan,provenance,reasoning,sensors,serve,trees}

SEED ?= 0
COUNT ?= 10000
.PHONY: compare-sql
compare-sql: setup  ## random SQL beside DuckDB: COUNT statements from number SEED on
	$(BIN)/python -m tests.lang.sql.beside_duckdb --count $(COUNT) --seed $(SEED)

.PHONY: lint
lint: setup  ## style, types and import order
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# Peers bring versions of their own: they live apart from what is tested.
BENCH := .venv-bench
$(BENCH)/.stamp: requirements-bench.lock pyproject.toml
	@$(FIND_PYTHON); "$$python" -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --disable-pip-version-check --quiet --requirement requirements-bench.lock
	$(BENCH)/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --editable .
	touch $@

.PHONY: bench
bench: $(BENCH)/.stamp java chromium  ## measure against DuckDB, Nemo, clingo, Pathway and Spark; tables and plots go to bench/results
	for suite in load_rules evaluation analyses text tables updates why serve spark_batch spark_stream spark_parts; do $(BENCH)/bin/python bench/$$suite.py; done

EXPERIMENTS := $(filter-out experiments/harness.py experiments/fields.py experiments/networks.py experiments/tpch.py experiments/exchange_workload.py,$(wildcard experiments/*.py))
.PHONY: experiments
experiments: $(BENCH)/.stamp  ## make the papers' figures again; tables and plots go to experiments/results
	$(BENCH)/bin/whence warm
	for figure in $(EXPERIMENTS); do $(BENCH)/bin/python $$figure; done

# The generator of the site lives apart, too: nobody else needs it.
DOCS := .venv-docs
$(DOCS)/.stamp: requirements-docs.lock
	@$(FIND_PYTHON); "$$python" -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --disable-pip-version-check --quiet --requirement requirements-docs.lock
	touch $@

.PHONY: docs
docs: $(DOCS)/.stamp  ## make the documentation a site, with search, in build/site; every link is checked
	$(DOCS)/bin/python tools/site.py build/site

.PHONY: screenshots
screenshots: setup chromium  ## make the pictures of docs/page.md
	$(BIN)/python tools/screenshots.py

.PHONY: format
format: setup  ## rewrite the sources in the house style
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

# The larger set is resolved first and constrains the smaller one, so that benchmarks run on the versions that the tests run on.
.PHONY: lock
lock:  ## pin the newest allowed versions: requirements.lock (dev), requirements-bench.lock (dev and bench), requirements-docs.lock
	@$(FIND_PYTHON); "$$python" -m venv build/lock
	build/lock/bin/pip install --disable-pip-version-check --quiet uv==$(UV_VERSION)
	build/lock/bin/uv pip compile $(LOCK_OPTIONS) --extra dev --extra bench --output-file requirements-bench.lock pyproject.toml
	build/lock/bin/uv pip compile $(LOCK_OPTIONS) --extra dev --constraint requirements-bench.lock --output-file requirements.lock pyproject.toml
	printf 'zensical\n' | build/lock/bin/uv pip compile $(LOCK_OPTIONS) --output-file requirements-docs.lock -
LOCK_OPTIONS := --quiet --upgrade --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links \
	--custom-compile-command "make lock"

.PHONY: clean
clean:  ## remove everything that make made
	rm -rf $(VENV) $(BENCH) $(DOCS) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
