# One virtual environment, one hash-checked lock; nothing but Python and make is needed beforehand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The machine's own certificates, as pip and browsers use them: behind a proxy uv's bundled ones are not enough.
export UV_SYSTEM_CERTS := 1
MINISTACK := .venv-ministack
# Tests that run longer when they are asked to.
SOAKED = $(shell grep -rlE --include='test_*.py' 'CTXSTEWARD_(SOAK|DAMAGES)' tests | sort)
ROOMS := schemas envelope summarizers steward evals flows console

.PHONY: help demo test soak check bench ministack lock clean

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

test: $(STAMP)  ## every test that CI runs
	$(BIN)/python -m pytest -q

soak: $(STAMP) $(MINISTACK)/.installed  ## the tests of durability, run long, and what an outage costs
	CTXSTEWARD_SOAK=1 CTXSTEWARD_DAMAGES=10000 $(BIN)/python -m pytest -q -s $(SOAKED)
	$(BIN)/python -m ctxsteward.evals.bench journal outage

check: $(STAMP)  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)  ## the figures of docs/benchmarks.md, printed; DATA=FOLDER of public transcripts for all rows
	$(BIN)/python -m ctxsteward.evals.bench $(if $(DATA),--data $(DATA))

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

clean:  ## remove the environments and caches
	rm -rf $(VENV) $(MINISTACK) .pytest_cache .mypy_cache .ruff_cache .hypothesis
