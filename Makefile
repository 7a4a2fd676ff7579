# `make demo` shows Holdfast at work, `make test` proves it. Both set themselves up and need python3 (3.10 or
# newer), make and git. Everything that is made lies in this folder: .venv, .cache, .demo.

.DEFAULT_GOAL := help
.PHONY: help setup demo check check-lint check-types check-architecture test compile-tests test-kit test-fast mutants bench compare soak docs clean system-packages

export UV_CACHE_DIR ?= $(CURDIR)/.cache/uv
export PIP_CACHE_DIR ?= $(CURDIR)/.cache/pip

# Without bytecode every process compiles what it imports: half of a short command's time.
unexport PYTHONDONTWRITEBYTECODE

PYTHON_HERE := .venv/bin/python
PYTEST := $(PYTHON_HERE) -m pytest
SETUP_INPUTS := pyproject.toml constraints.txt scripts/setup.py scripts/package_index.py

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-18s%s\n", $$1, $$2}'

setup: .venv/.setup-dev ## Create .venv with Holdfast and the tools for working on it

.venv/.setup-dev: $(SETUP_INPUTS)
	@scripts/with-python scripts/setup.py --dev

.venv/.setup-run: $(SETUP_INPUTS)
	@scripts/with-python scripts/setup.py

demo: .venv/.setup-run ## Create a project, train on this machine, show the history
	@$(PYTHON_HERE) scripts/demo.py

check: setup ## Format, lint, types, architecture: under 20 seconds
	@$(MAKE) --no-print-directory -j 3 --output-sync=target check-lint check-types check-architecture

check-lint:
	$(PYTHON_HERE) -m ruff format --check .
	$(PYTHON_HERE) -m ruff check .

check-types:
	$(PYTHON_HERE) -m mypy

check-architecture:
	$(PYTEST) -q tests/architecture

test: system-packages setup ## Everything: check, then all tests, under 10 minutes
	@$(MAKE) --no-print-directory -j 3 --output-sync=target check-lint check-types check-architecture compile-tests
	$(PYTEST) -n 4 --dist worksteal -m "not soak" --ignore=tests/architecture

# Once, and not by each worker: pytest rewrites the assertions of a test file when it first reads it. The run shows errors.
compile-tests:
	@$(PYTEST) -n 0 -qqq --collect-only -m "not soak" --ignore=tests/architecture > /dev/null || true

test-kit: system-packages setup ## The tests of the tests' own kit and of the bench; notes that they pass
	$(PYTEST) -n 3 --dist worksteal --kit -m "not soak"

test-fast: setup ## Unit and architecture tests, under 45 seconds
	$(PYTEST) -n 2 --dist worksteal -m "not soak" tests/unit tests/architecture

mutants: setup ## See that the tests notice each mistake of tests/mutants
	$(PYTHON_HERE) scripts/mutants.py

bench: system-packages setup ## Measure
	$(PYTHON_HERE) bench/run.py

compare: system-packages setup ## Measure this tree beside an earlier one: BEFORE=<commit>
	$(PYTHON_HERE) bench/compare.py $(BEFORE)

soak: system-packages setup ## The long tests under faults
	$(PYTEST) -n 3 --dist worksteal -m soak

docs: setup ## Write the generated pages of docs/reference anew
	$(PYTHON_HERE) scripts/generate_cli_reference.py
	$(PYTHON_HERE) scripts/generate_protocol_reference.py

clean: ## Remove what the targets above have made
	rm -rf .venv .cache .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

system-packages:
	@scripts/system-packages
