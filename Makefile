# Every target makes its own virtual environment; nothing has to be activated.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-reference check bench campaign clean

demo: $(VENV)/.installed  ## propagate, show, run and check the example training step
	$(BIN)/pyshardy run example

test: $(VENV)/.tested  ## lint, types, and all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto -q

test-reference: $(VENV)/.tested  ## what compares with the reference, on its newest version
	$(BIN)/pytest -n auto -q tests/differential tests/test_filecheck.py

check: test

bench: $(VENV)/.tested  ## pyshardy against the reference
	$(BIN)/python -m benchmarks.compare

campaign: $(VENV)/.tested  ## the long differential campaigns
	$(BIN)/python -m tests.differential.campaign

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.tested: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[test]"
	touch $@

clean:
	rm -rf $(VENV) *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
