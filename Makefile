# One virtual environment, one hash-checked lock; nothing but Python and make is needed beforehand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The machine's own certificates, as pip and browsers use them: behind a proxy uv's bundled ones are not enough.
export UV_SYSTEM_CERTS := 1
ROOMS := schemas envelope summarizers steward evals flows console

.PHONY: help demo test check bench lock clean

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

check: $(STAMP)  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)  ## the figures of docs/benchmarks.md, printed; DATA=FOLDER of public transcripts for all rows
	$(BIN)/python -m ctxsteward.evals.bench $(if $(DATA),--data $(DATA))

lock: $(STAMP)  ## resolve the lock anew
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --group dev pyproject.toml -o requirements.lock

clean:  ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
