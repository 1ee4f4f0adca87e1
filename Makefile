# Every target makes its own virtual environment; nothing has to be activated.
# Even where the environment forbids bytecode files, tests write them: else each process compiles what it imports anew.
export PYTHONDONTWRITEBYTECODE :=
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PACKAGES_VENV ?= $(VENV)-packages
DOCS_VENV ?= $(VENV)-docs
COMPILED ?= build/compiled
COMPILED_BIN := $(COMPILED)/.venv/bin
CUDA_PLUGIN = $(shell $(COMPILED_BIN)/python -c 'from importlib.metadata import version; print("jax-cuda13-pjrt==" + version("jaxlib"))')
COPIED = $(shell find pyshardy tests benchmarks examples docs -type f -not -name '*.pyc')
PACKAGES ?= packages,torch
PACKAGES_PYTHON ?= $(shell python3.13 -c 'print("python3.13")' 2>/dev/null || echo $(PYTHON))

.PHONY: demo test test-fast test-reference test-packages check bench performance-page campaign fuzz docs refresh notebooks page-scripts release wheel smoke clean

demo: $(VENV)/.installed  ## propagate, show, run and check the example training step
	$(BIN)/pyshardy run example

test: $(VENV)/.tested  ## lint, types, and all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto --dist worksteal -q

test-fast: $(VENV)/.tested  ## tests of every room in a minute or a little more, without those that are marked as slow
	$(BIN)/pytest -n auto -q -m "not slow" --hypothesis-profile=fast -p no:cacheprovider

test-reference: $(COMPILED)/.tested  ## what compares with the reference and with compilers, and the ratios, with the compiled core
	cd $(COMPILED) && .venv/bin/pytest -n auto --dist worksteal -q tests/differential tests/test_filecheck.py tests/cost/test_published.py tests/cost/test_one_gpu.py
	$(COMPILED_BIN)/pip install --quiet --disable-pip-version-check libtpu
	$(COMPILED_BIN)/pip install --quiet --disable-pip-version-check --no-deps $(CUDA_PLUGIN)
	cd $(COMPILED) && .venv/bin/pytest -n auto --dist worksteal -q tests/compilers
	cd $(COMPILED) && .venv/bin/pytest -q tests/test_benchmarks.py

test-packages: $(PACKAGES_VENV)/.installed  ## programs of published packages, against the reference; PACKAGES=packages without PyTorch
	PYTHONHASHSEED=0 $(PACKAGES_VENV)/bin/pytest -n auto -q tests/packages  # numpyro orders operands by hash

check: test

bench: $(COMPILED)/.tested  ## pyshardy, with its compiled core, against the reference
	cd $(COMPILED) && .venv/bin/python -m benchmarks.compare

performance-page: $(COMPILED)/.tested  ## write docs/performance.md anew
	cd $(COMPILED) && .venv/bin/python -m benchmarks.page --interpreted $(CURDIR)
	cp $(COMPILED)/docs/performance.md docs/

campaign: $(VENV)/.tested  ## the long campaigns, once before a release, with fixed seeds: all cases of all tests; against the reference, against XLA's dumps, and eight devices against one
	@failed=; for run in "env PYSHARDY_ALL_TESTS=1 $(BIN)/pytest -n auto --dist worksteal -q" \
	    "$(BIN)/python -m tests.differential.campaign" \
	    "env PYTHONPATH=tests $(BIN)/python -m tests.differential.xla_campaign" \
	    "env PYTHONPATH=tests $(BIN)/python -m tests.end_to_end.numbers_campaign"; \
	do echo "== $$run"; $$run || failed="$$failed\n  $$run"; done; \
	if [ -n "$$failed" ]; then printf "found differences:$$failed\n"; exit 1; fi

fuzz: $(VENV)/.tested  ## hostile programs: mutated texts and bytecodes, random programs by numbers; findings in build/fuzz
	PYTHONPATH=tests $(BIN)/python -m tests.fuzz.campaign $(FUZZ)

docs: $(DOCS_VENV)/.installed  ## the documentation site, in build/docs; warnings are errors
	$(DOCS_VENV)/bin/sphinx-build -W --keep-going -q -d build/doctrees docs build/docs
	@echo "open build/docs/index.html"

refresh: $(VENV)/.tested  ## write again what comes from the tree (outputs on pages, texts of explanations, notebooks), and say what changed; some minutes
	PATH="$(CURDIR)/$(BIN):$$PATH" XLA_FLAGS=--xla_force_host_platform_device_count=8 $(BIN)/python docs/generate.py
	PYTHONPATH=tests $(BIN)/python -m golden.test_explanations
	$(MAKE) notebooks
	git status --short -- README.md CONTRIBUTING.md docs examples tests/golden

page-scripts:  ## bundle what the page of `pyshardy report` takes from npm; needs npm, the result is part of the repository
	cd tools/page && npm ci --no-audit --no-fund && npm run bundle

notebooks: $(VENV)/.tested  ## execute the notebooks of examples/, and keep what they show
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python docs/notebooks.py

release: docs  ## a wheel for this platform, the source, and the site as one archive, in build/release
	$(DOCS_VENV)/bin/pip install --quiet --disable-pip-version-check "build>=1.2"
	rm -rf build/release build/lib build/bdist.*
	$(DOCS_VENV)/bin/python -m build --outdir build/release .
	tar -czf build/release/pyshardy-docs.tar.gz -C build docs

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(PACKAGES_VENV)/.installed: pyproject.toml
	$(PACKAGES_PYTHON) -m venv $(PACKAGES_VENV)
	$(PACKAGES_VENV)/bin/pip install --quiet --disable-pip-version-check --editable ".[test,$(PACKAGES)]"
	touch $@

$(DOCS_VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.tested: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[test]"
	touch $@

# A copy of the tree, as an editable install is compiled only on request: what is edited is not what would run.
$(COMPILED)/.tested: pyproject.toml setup.py $(COPIED)
	mkdir -p $(COMPILED)
	find $(COMPILED) -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +
	tar -cf - --exclude='./.*' --exclude=./build --exclude='*.egg-info' --exclude=__pycache__ . | tar -xf - -C $(COMPILED)
	test -d $(COMPILED)/.venv || $(PYTHON) -m venv $(COMPILED)/.venv
	PYSHARDY_COMPILE=1 $(COMPILED_BIN)/pip install --quiet --disable-pip-version-check --editable "$(COMPILED)[test]"
	touch $@

# The wheel is made of the sdist, so both have all they need. Without a C compiler the first smoke test fails.
wheel: $(VENV)/.tested  ## build/dist: a wheel with the compiled core, and an sdist; both install and work
	rm -rf build/dist build/smoke build/core
	$(BIN)/python -c "from setuptools import build_meta; build_meta.build_sdist('build/dist')"
	PYSHARDY_COMPILE=1 $(BIN)/pip wheel --verbose --no-deps --wheel-dir build/dist build/dist/*.tar.gz
	$(MAKE) smoke SMOKE=build/dist/*.whl CORE=compiled
	PYSHARDY_COMPILE=0 $(MAKE) smoke SMOKE=build/dist/*.tar.gz CORE=interpreted

smoke:
	rm -rf build/smoke
	$(PYTHON) -m venv build/smoke
	build/smoke/bin/pip install --quiet --disable-pip-version-check $(SMOKE)
	build/smoke/bin/python tests/smoke.py $(CORE)

clean:
	rm -rf build $(VENV) $(PACKAGES_VENV) $(DOCS_VENV) *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
