# Two commands on a fresh machine: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test test-min lint types format bench clean

demo: .venv/.demo ## Fit, print the table, write report.html: offline, on the bundled data
	$(BIN)/dipedl demo --out report.html

test: .venv/.dev ## The whole test suite, with the coverage gate of the core
	$(BIN)/python -m pytest -n $(JOBS) --cov --cov-report=term:skip-covered --cov-fail-under=97

test-min: .venv-min/.done ## scikit-learn's contract on the oldest versions the package admits
	.venv-min/bin/python -m pytest -n $(JOBS) tests/test_classifier_sklearn.py tests/test_classifier.py \
	  tests/test_evidence.py tests/density

lint: .venv/.dev ## Style, and the layers of the imports
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports --no-cache

types: .venv/.dev ## Types
	$(BIN)/mypy

format: .venv/.dev
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

bench: .venv/.dev ## Speed and quality receipts under results/ (minutes; full MNIST needs DIPEDL_DATA)
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf .venv .venv-min report.html report.json .coverage

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dipedl needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv

.venv/.demo: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) install -q -c constraints.txt -e ".[cli,report]"
	touch $@

.venv/.dev: .venv/.demo
	$(PIP) install -q --upgrade "pip>=25.1"
	$(PIP) install -q -c constraints.txt torch
	$(PIP) install -q -c constraints.txt -e ".[torch,flows,data,cli,report,save,onnx,spectra]" --group test --group lint
	touch $@

.venv-min/.done: pyproject.toml constraints-min.txt
	$(PYTHON) -m venv .venv-min
	.venv-min/bin/python -m pip install -q --upgrade "pip>=25.1"
	.venv-min/bin/python -m pip install -q -c constraints-min.txt -e . \
	  pytest pytest-xdist hypothesis mpmath pandas
	touch $@
