# Every target makes its own virtual environment; nothing has to be activated.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PACKAGES_VENV ?= $(VENV)-packages
PACKAGES_PYTHON ?= $(shell python3.13 -c 'print("python3.13")' 2>/dev/null || echo $(PYTHON))

.PHONY: demo test test-reference test-packages check bench campaign clean

demo: $(VENV)/.installed  ## propagate, show, run and check the example training step
	$(BIN)/pyshardy run example

test: $(VENV)/.tested  ## lint, types, and all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto -q

test-reference: $(VENV)/.tested  ## what compares with the reference, on its newest version
	$(BIN)/pytest -n auto -q tests/differential tests/test_filecheck.py

test-packages: $(PACKAGES_VENV)/.installed  ## programs of published packages, against the reference
	PYTHONHASHSEED=0 $(PACKAGES_VENV)/bin/pytest -n auto -q tests/packages  # numpyro orders operands by hash

check: test

bench: $(VENV)/.tested  ## pyshardy against the reference
	$(BIN)/python -m benchmarks.compare

campaign: $(VENV)/.tested  ## the long campaigns: against the reference, and eight devices against one
	$(BIN)/python -m tests.differential.campaign
	PYTHONPATH=tests $(BIN)/python -m tests.end_to_end.numbers_campaign

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(PACKAGES_VENV)/.installed: pyproject.toml
	$(PACKAGES_PYTHON) -m venv $(PACKAGES_VENV)
	$(PACKAGES_VENV)/bin/pip install --quiet --disable-pip-version-check --editable ".[test,packages]"
	touch $@

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.tested: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[test]"
	touch $@

clean:
	rm -rf $(VENV) $(PACKAGES_VENV) *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
