"""The published figures are those of the receipts."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def its_neighbours_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_receipts_say():
    stale = "run: python benchmarks/tables.py"
    page = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    assert load("tables").page() == page, stale


def test_the_page_of_the_mnist_results_is_what_its_rows_say():
    page = (ROOT / "docs" / "results-mnist.md").read_text(encoding="utf-8")
    assert load("tables").mnist_page() == page, "run: python benchmarks/tables.py"


def test_the_page_of_the_cifar10_results_is_what_its_rows_say():
    page = (ROOT / "docs" / "results-cifar10.md").read_text(encoding="utf-8")
    assert load("tables").cifar10_page() == page, "run: python benchmarks/tables.py"


def test_the_page_of_the_spectra_results_is_what_its_rows_say():
    page = (ROOT / "docs" / "results-spectra.md").read_text(encoding="utf-8")
    assert load("tables").spectra_page() == page, "run: python benchmarks/tables.py"


def test_the_table_of_spectra_in_the_readme_is_what_its_rows_say():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert load("spectra_tables").readme_table() in readme, "paste readme_table() of spectra_tables"


def test_the_page_of_the_study_is_what_its_rows_say():
    if not (ROOT / "results" / "bench" / "honest").exists():
        pytest.skip("the study was not published")
    page = (ROOT / "docs" / "results-honest.md").read_text(encoding="utf-8")
    assert load("tables").honest_page() == page, "run: python benchmarks/tables.py"


def test_every_benchmark_of_the_page_has_a_receipt_with_what_makes_it_again():
    sys.modules.pop("receipt", None)
    for name in load("run").NAMES:
        row = load("tables").receipt(name)
        assert row["command"] == f"python benchmarks/{name}.py"
        assert {"config", "config_hash", "values", "versions", "device", "seconds"} <= set(row)
