# Two commands matter: `make demo` and `make test`. Both set up all they need, in this folder.
# Nothing global is changed, except that as root a missing browser comes from the distribution's packages.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock"

.PHONY: help demo test test-all snapshots check lint types shape bench soak zoo accuracy coverage mutants docs lock clean setup-demo setup-dev browser
.DEFAULT_GOAL := help

help:
	@echo "make demo      a real page is driven, graded, gated, stored and alerted, in about two minutes"
	@echo "make test      the quick tier: every capability once, in about ten minutes on two cores"
	@echo "make test-all  every test and every row, in about 45 minutes on two cores"
	@echo "make snapshots renew the snapshots of what people read, and show the diff; ONLY=tests/monitors/alerts renews some"
	@echo "make check     lint, types and tests of what a change touches, without browsers and Prefect"
	@echo "make lint      ruff and pyright"
	@echo "make shape     how many files, lines, full folders, repeated names and names that break a rule there are, and how long the way of an alert is"
	@echo "make bench     speed and money, one table of every figure beside its baseline; WRITE=docs/performance.md keeps it"
	@echo "make soak      the long crash and endurance counts, and make demo"
	@echo "make zoo       real chat frameworks and hostile pages, driven without configuration, as a table; ONLY=streams takes some"
	@echo "make accuracy  the graders against labelled data beside the project, into docs/accuracy.md; ROWS=FILE writes the verdict"
	@echo "               of each row instead, AGAINST=FILE says which changed; SETS=answers,pairs takes some of the sets"
	@echo "make coverage  branch coverage by folder, of a run of make test-all; AGAINST=branches.json compares, ONLY=… measures a part"
	@echo "make mutants   which of 100 small faults the tests that cover their line catch; after make coverage; MUTANTS=FILE again"
	@echo "make docs      renew the reference pages that are made from the code"
	@echo "make lock      renew requirements/*.lock from pyproject.toml, and the lists of what is in them"

# The demo's bot has planted faults: a FAIL, exit code 1, is what the demo is for.
demo: setup-demo browser
	@$(BIN)/lookout demo; code=$$?; \
	if [ $$code -eq 1 ]; then exit 0; fi; \
	if [ $$code -eq 0 ]; then echo "The planted faults were not found: that is a fault of Lookout."; exit 1; fi; exit $$code

# Three tests more at once than there are cores: those with a browser or a server wait most of their time.
JOBS ?= $(shell expr 3 + $$(getconf _NPROCESSORS_ONLN))
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
test: setup-dev browser renderers compiled
	$(PYTEST) --tier quick --durations 20 --durations-min 4

# SHARD=2/3 runs the second third of the files: the workflow runs one on each machine.
test-all: setup-dev browser renderers frontends compiled
	$(PYTEST) --tier whole $(if $(SHARD),--shard $(SHARD)) --durations 40 --durations-min 4

# In a fresh checkout three processes compile the tests and what they import. Otherwise each worker does it for itself.
.PHONY: compiled
compiled: setup-dev
	@ls tests/__pycache__/test_shape.*-pytest-*.pyc >/dev/null 2>&1 || { \
	  for half in 1/2 2/2; do $(BIN)/python -m pytest -qq -n 0 --collect-only --shard $$half >/dev/null & done; \
	  env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -c "import prefect.server.api.server"; wait; }

# Only tests that compare with a snapshot run. CI never renews one.
snapshots: setup-dev browser
	$(PYTEST) --snapshots-only --snapshot-update $(ONLY)
	@git --no-pager diff --stat -- '*.ambr' docs/alerts.md; git --no-pager diff -- '*.ambr' docs/alerts.md

check: setup-dev
	@$(BIN)/python -m tests.tools.check

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

shape: setup-dev
	@$(BIN)/python -m tests.tools.shape

# One table of every figure. WRITE=docs/performance.md renews the page, ONLY=probe,help runs some. The exit code of the
# command is how many benches missed a goal, left a figure out, or broke.
bench: setup-dev browser
	$(BIN)/python -m tests.bench $(if $(ONLY),--only $(ONLY)) $(if $(WRITE),--write $(WRITE))

soak: setup-dev browser renderers frontends
	$(MAKE) --no-print-directory demo
	$(PYTEST) --tier whole --hypothesis-profile night
	$(BIN)/python -m tests.soak

# Frameworks that clash with each other live in environments of their own, from locks of their own.
ZOO := gradio4 gradio5 nicegui panel

zoo: setup-dev browser frontends $(ZOO:%=.cache/zoo/%/.made)
	$(BIN)/python -m tests.zoo $(ONLY)

.cache/zoo/%/.made: requirements/zoo-%.lock | uv $(BIN)/python
	@echo "Installing from requirements/zoo-$*.lock"
	@rm -rf .cache/zoo/$* && mkdir -p .cache/zoo
	@if [ -x "$(UV)" ]; then \
	  $(UV) venv --quiet --python $(BIN)/python .cache/zoo/$* && \
	  $(UV) pip sync --quiet --python .cache/zoo/$*/bin/python --require-hashes requirements/zoo-$*.lock ; \
	else \
	  $(BIN)/python -m venv .cache/zoo/$* && \
	  .cache/zoo/$*/bin/python -m pip install --quiet --require-hashes --requirement requirements/zoo-$*.lock ; \
	fi
	@touch $@

# Markdown renderers of real chat pages, in one script. They come by npm; where there is none, their tests are skipped.
RENDERERS := .cache/zoo/renderers

.PHONY: renderers
renderers: | $(BIN)/python
	@if command -v npm >/dev/null 2>&1 && $(MAKE) --no-print-directory $(RENDERERS)/bundle.js; then :; \
	 else rm -rf $(RENDERERS); echo "No renderers by npm: the tests with other people's Markdown renderers are skipped"; fi

$(RENDERERS)/bundle.js: tests/zoo/renderers/package-lock.json tests/zoo/renderers/renderers.jsx
	@echo "Installing from tests/zoo/renderers/package-lock.json"
	@mkdir -p $(RENDERERS) && cp tests/zoo/renderers/package.json tests/zoo/renderers/package-lock.json \
	  tests/zoo/renderers/renderers.jsx $(RENDERERS)/
	@cd $(RENDERERS) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1 \
	  && npm run --silent build && rm -rf node_modules

# Chat front ends of the zoo, a script for each, in the same way.
FRONTENDS := .cache/zoo/frontends

.PHONY: frontends
frontends: | $(BIN)/python
	@if command -v npm >/dev/null 2>&1 && $(MAKE) --no-print-directory $(FRONTENDS)/built/.made; then :; \
	 else rm -rf $(FRONTENDS); echo "No front ends by npm: their tests are skipped"; fi

$(FRONTENDS)/built/.made: $(wildcard tests/zoo/frontends/*)
	@echo "Installing from tests/zoo/frontends/package-lock.json"
	@mkdir -p $(FRONTENDS) && cp tests/zoo/frontends/* $(FRONTENDS)/
	@cd $(FRONTENDS) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1 \
	  && npm run --silent build && rm -rf node_modules && touch built/.made

# Messages have pictures, which need a browser: python -m tests.monitors.alerts.make_docs
docs: setup-dev
	$(BIN)/python -m tests.tools.configuration_reference
	$(BIN)/python -m tests.tools.command_reference
	$(BIN)/python -m tests.tools.outcome_reference
	$(BIN)/python -m tests.tools.test_warehouse_reference
	$(BIN)/python -m tests.extending.recipes
	$(BIN)/python -m tests.deployments.cli.mistakes
	$(BIN)/python -m tests.flows.drill.broken_parts

DATA ?= ../shared/data
ifneq ($(ROWS)$(AGAINST),)
accuracy: setup-dev
	$(BIN)/python -m tests.accuracy.verdicts $(DATA) $(if $(ROWS),--rows $(ROWS)) $(if $(AGAINST),--against $(AGAINST)) \
	  $(if $(SETS),--sets $(SETS))
else
accuracy: setup-dev browser
	$(BIN)/python -m tests.accuracy $(DATA) docs/accuracy.md \
	  --date "$$(date -u +%Y-%m-%d)" --commit "$$(git rev-parse --short HEAD)"
endif

# A run of the tests under coverage.py takes about twice as long as one without; the data stays in .cache/coverage.
coverage: setup-dev browser renderers frontends
	$(BIN)/python -m tests.tools.branch_coverage $(if $(AGAINST),--against $(AGAINST)) -- \
	  -n $(JOBS) --dist worksteal --tier whole $(ONLY)

mutants: setup-dev browser renderers frontends
	$(BIN)/python -m tests.tools.mutants $(if $(MUTANTS),--mutants $(MUTANTS))

# --- setting up -------------------------------------------------------------------------------------------

setup-demo: $(VENV)/.demo
setup-dev: $(VENV)/.dev

# The development environment holds everything the demo needs, so it serves for both.
$(VENV)/.demo: requirements/demo.lock pyproject.toml | uv $(BIN)/python
	@if [ -e $(VENV)/.dev ] && [ $(VENV)/.dev -nt requirements/dev.lock ]; then touch $@; \
	 else $(MAKE) --no-print-directory sync LOCK=demo; fi

$(VENV)/.dev: requirements/dev.lock pyproject.toml | uv $(BIN)/python
	@$(MAKE) --no-print-directory sync LOCK=dev

.PHONY: sync uv
sync:
	@echo "Installing from requirements/$(LOCK).lock"
	@if [ -x "$(UV)" ]; then \
	  $(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements/$(LOCK).lock && \
	  $(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable . ; \
	else \
	  $(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/$(LOCK).lock && \
	  $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . ; \
	fi
	@touch $(VENV)/.$(LOCK)

$(BIN)/python: | uv
	@$(PYTHON) deployments/start.py
	@if [ -x "$(UV)" ]; then $(UV) venv --quiet --python $(PYTHON) $(VENV); else $(PYTHON) -m venv $(VENV); fi

# uv of one's own, in a virtual environment of its own; where it cannot be had, pip does the same from the same lock.
uv:
	@if [ ! -x "$(UV)" ]; then \
	  $(PYTHON) deployments/start.py && $(PYTHON) -m venv .uv && \
	  .uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/bootstrap.lock \
	  || { rm -rf .uv; echo "uv could not be installed; going on with pip"; }; \
	fi

browser: $(VENV)/.browser
$(VENV)/.browser:
	@$(BIN)/lookout browser install
	@touch $@

lock: | uv
	$(COMPILE) pyproject.toml --group dev -o requirements/dev.lock
	$(COMPILE) pyproject.toml --group demo -c requirements/dev.lock -o requirements/demo.lock
	$(COMPILE) pyproject.toml -c requirements/dev.lock -o requirements/runtime.lock
	$(MAKE) --no-print-directory setup-dev
	$(BIN)/python -m tests.tools.dependencies
	echo uv | $(COMPILE) - -o requirements/bootstrap.lock
	echo gradio==5.50.0 | $(COMPILE) - -o requirements/zoo-gradio5.lock
	echo nicegui==3.18.0 | $(COMPILE) - -o requirements/zoo-nicegui.lock
	echo panel==1.9.4 | $(COMPILE) - -o requirements/zoo-panel.lock
	printf '%s\n' $(GRADIO4) | $(COMPILE) - -o requirements/zoo-gradio4.lock

# An old major with what was current then: it does not say itself that it breaks on newer ones.
GRADIO4 = 'gradio==4.44.1' 'huggingface-hub<1' 'pydantic<2.11' 'starlette<0.42' 'fastapi<0.116' 'websockets<13' \
  'numpy<2.3' 'pandas<3'

clean:
	rm -rf .venv .uv .cache .pytest_cache .ruff_cache .hypothesis .lookout-demo
