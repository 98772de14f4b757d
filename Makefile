# Two commands on a fresh machine: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# uv installs in a tenth of pip's time; where it does not reach the registry, pip may
define INSTALL
for tool in "uv pip" pip; do $(BIN)/python -m $$tool install -q $(1) && break; done
endef

# Files stay whole, but for the last ones: what a module's fixtures compute is computed once
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
# Tests start hundreds of processes: each would compile all that it imports again
unexport PYTHONDONTWRITEBYTECODE
SUITES := mnist cifar10 cifar10-resnet spectra defaults
# Work in this many processes at once needs no threads, which would wait for one another
test test-all test-min coverage: export OMP_NUM_THREADS := 1
test test-all test-min coverage: export OPENBLAS_NUM_THREADS := 1
smoke-%: export OMP_NUM_THREADS := 1

.PHONY: demo test test-all test-min test-others coverage mutants smoke docs wheel lint types format bench pages audit fuzz
.PHONY: release clean

demo: .venv/.demo ## Fit bundled digits, flag what is none, write report.html: offline
	$(BIN)/dipedl demo --out report.html

test: .venv/.dev ## All tests but the slow ones and those in a browser, in minutes
	$(PYTEST) -m "not slow and not browser"

test-all: .venv/.dev ## Every test
	$(PYTEST)

coverage: .venv/.dev ## The tests of `make test` must cover 97 %, branches included
	$(PYTEST) -m "not slow and not browser" --cov --cov-report=term:skip-covered --cov-fail-under=97

test-min: .venv-min/.done ## scikit-learn's contract on the oldest versions the package admits
	.venv-min/bin/python -m pytest -n $(JOBS) --dist worksteal -m "not slow" \
	  tests/test_classifier_sklearn.py tests/test_classifier.py tests/density/test_conformance.py

test-others: .venv-others/.done ## The page "Other libraries", with those of them that install
	.venv-others/bin/python -m pytest -rs tests/apps/adapters research/tests/test_pytorch_ood.py

mutants: .venv/.dev ## Plant mistakes: the tests must notice every one
	$(BIN)/python tests/mutants.py

smoke: $(SUITES:%=smoke-%) ## Each benchmark suite, tiny, from run to table and page

smoke-mnist: ARGUMENTS := --seeds 10
smoke-%: .venv/.dev
	out=$$(mktemp -d) && trap "rm -r $$out" EXIT && \
	$(BIN)/dipedl-bench run $* $(ARGUMENTS) --profile smoke --out $$out --quiet && \
	$(BIN)/dipedl-bench table $* --profile smoke --out $$out --no-trivial >/dev/null && \
	$(BIN)/dipedl-bench page --out $$out --file $$out/$*.html

docs: .venv/.docs ## The site, in docs/_build/html; GALLERY=0 leaves out running its examples
	$(BIN)/python -m sphinx -b html -d docs/_build/doctrees -j $(JOBS) -W --keep-going -q -D plot_gallery=$(or $(GALLERY),1) docs docs/_build/html
	$(BIN)/python scripts/check_docs.py docs/_build/html

wheel: .venv/.dev ## Build the wheel and check what a user would get
	$(BIN)/python scripts/check_wheel.py

lint: .venv/.dev ## Style, and the layers of the imports
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports --no-cache

types: .venv/.dev ## Types
	$(BIN)/mypy

format: .venv/.dev
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

# of minutes; the others (scale, drift, the service, peers) have commands of their own
MEASUREMENTS := startup gaussian_scale default_speed interval_time guarantee set_coverage caution_budget \
	load_speed install_size
WITH_DATA := select_density unknown_classes new_groups accuracy_estimates
bench: .venv/.dev ## Receipts of the measurements of minutes, in research/results (some need DIPEDL_DATA)
	cd research && for name in $(MEASUREMENTS) $(if $(DIPEDL_DATA),$(WITH_DATA)); do \
	  echo "== $$name" && ../$(BIN)/python benchmarks/$$name.py || exit 1; done

pages: .venv/.dev ## Pages of numbers, written from rows and receipts
	cd research && ../$(BIN)/python benchmarks/write_pages.py && ../$(BIN)/python benchmarks/publish.py

clean:
	rm -rf .venv .venv-min .venv-audit .venv-others .venv-release report.html report.json .coverage
	rm -rf docs/_build docs/gallery docs/source docs/reference/api
	find docs -name '*.myst' -delete

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dipedl needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
ifdef HASHES
	$(PIP) install -q uv
endif

.venv/.demo: .venv/bin/python pyproject.toml constraints.txt
ifdef HASHES
	$(call INSTALL,--no-deps --require-hashes -r $(HASHES)/demo.txt)
	$(call INSTALL,--no-deps --no-build-isolation -e .)
else
	$(PIP) install -q -c constraints.txt -e ".[tables]"
endif
	touch $@

.venv/.dev: .venv/.demo
ifdef HASHES
	$(call INSTALL,--no-deps --require-hashes -r $(HASHES)/dev.txt)
	$(PIP) install -q -c constraints.txt torch
	$(call INSTALL,--no-deps --no-build-isolation -e research)
else
	$(PIP) install -q --upgrade "pip>=25.1"
	$(PIP) install -q -c constraints.txt torch
	$(PIP) install -q -c constraints.txt -e ".[torch,flows,data,onnx,spectra,tables]" --group test --group lint
	$(PIP) install -q -c constraints.txt -e research
endif
	touch $@

.venv/.docs: .venv/.dev
ifdef HASHES
	$(call INSTALL,--no-deps --require-hashes -r $(HASHES)/docs.txt)
else
	$(PIP) install -q -c constraints.txt --group docs
endif
	touch $@

audit: .venv-audit/.done ## Known vulnerabilities of the pinned packages; offline it says so and passes
	.venv-audit/bin/python scripts/audit.py constraints.txt

.venv-audit/.done:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install -q pip-audit || echo "pip-audit cannot be installed"
	touch $@

release: .venv-release/.done ## Build into dist/ and check: installations, types, licences, SBOM; publishes nothing
	.venv-release/bin/python scripts/release.py dist

fuzz: .venv/.dev ## Ten minutes of hostile files and inputs; counts go to research/results/fuzz.json
	$(BIN)/python tests/fuzz/run.py --seconds 600 --out research/results/fuzz.json

.venv-min/.done: BIN := .venv-min/bin
.venv-min/.done: pyproject.toml constraints-min.txt
	$(PYTHON) -m venv .venv-min
	$(BIN)/python -m pip install -q uv
	$(call INSTALL,-c constraints-min.txt -e . pytest pytest-xdist hypothesis mpmath pandas)
	touch $@

.venv-others/.done: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-others
	.venv-others/bin/python -m pip install -q --upgrade "pip>=25.1"
	.venv-others/bin/python -m pip install -q -c constraints.txt torch
	.venv-others/bin/python -m pip install -q -c constraints.txt -e ".[tables,torch]" -e research --group test --group others
	touch $@

.venv-release/.done: pyproject.toml
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install -q --upgrade "pip>=25.1"
	.venv-release/bin/python -m pip install -q --group release
	touch $@
